/* What breaks. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "world.h"

/* Breaks something. */
void faults_strike(struct world *w);

/* The fate of a request among @n with their @weights, of which the first is that
 * nothing happens to it; in a small world one of the first @small. */
unsigned faults_fate(struct world *w, const unsigned *weights, unsigned n,
                     unsigned small);

/* Starts one of the clients that are gone again; false: none may be. */
bool faults_restart(struct world *w);

/* From here on nothing breaks, and what was broken is mended. */
void faults_end(struct world *w);

#endif
