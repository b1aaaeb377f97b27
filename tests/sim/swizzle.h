/* Clients and stores are stopped one after the other, in a random order, and
 * started again in another. */
#ifndef SIM_SWIZZLE_H
#define SIM_SWIZZLE_H

#include "world.h"

/* Nothing is stopped. In the swizzle class the first round is drawn up. */
void swizzle_start(struct world *w);

/* Stops and starts what is due by now, and draws up the next round. */
void swizzle_go(struct world *w);

/* Starts all that is stopped. */
void swizzle_end(struct world *w);

/* When the next stop or start is due; INT64_MAX: never. */
int64_t swizzle_next_time(const struct world *w);

/* True if it may not go on because what it needs is stopped. */
bool swizzle_holds_client(const struct world *w, const struct client *c);
bool swizzle_holds_flight(const struct world *w, const struct flight *f);

#endif
