/* What clients do: begin, work, say how it ended, come too late. */
#ifndef SIM_WORK_H
#define SIM_WORK_H

#include "world.h"

/* Draws what clients do much, a little or not at all in this schedule. */
void work_choose(struct world *w);

/* The life of a client: as many rounds as it was given. */
void work_main(void *arg);

/* Looks after all keys when nothing goes wrong any more: each of them has to
 * come to an end. */
void probe_main(void *arg);

#endif
