/* A world before anything happens in it, and after. */
#ifndef SIM_SETUP_H
#define SIM_SETUP_H

#include "world.h"

/* Forgets all of the last schedule, so that nothing of it can be in the next. */
void setup_clear(struct world *w, uint64_t seed, struct stats *stats,
                 bool live);

/* Keys, hosts, store and clients as w->config says. No client is started. */
void setup_world(struct world *w);

/* A schedule may end wherever it is: takes back what its operations hold. */
void setup_undo(struct world *w);

#endif
