/* What breaks. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "world.h"

/* Breaks something. */
void faults_strike(struct world *w);

/* Starts one of the clients that are gone again; false: none may be. */
bool faults_restart(struct world *w);

/* From here on nothing breaks, and what was broken is mended. */
void faults_end(struct world *w);

#endif
