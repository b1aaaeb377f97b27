/* What goes next, in each class of schedules.
 *
 * Uniform: any of what is ready, each as likely as the other.
 *
 * Priority: each client, each operation under way, and time itself have a
 * priority from the seed, and the highest of what is ready goes. At up to three
 * steps that the seed has chosen, what would go falls behind all others for good.
 * A mistake that needs few things in one order is met more surely so than by
 * chance at each step ("probabilistic concurrency testing").
 *
 * Swizzle: as uniform, while clients and stores are stopped one after the other
 * and started again in another order (swizzle.h). */
#ifndef SIM_ORDER_H
#define SIM_ORDER_H

#include "world.h"

enum {
    CHOICES_MAX = CLIENTS_MAX + FLIGHTS_MAX + 1
};

struct choice {
    struct client *client; /* Or: */
    struct flight *flight; /* Or neither: time goes on to what comes next. */
};

/* Draws what holds for the whole schedule. */
void order_start(struct world *w);

/* The priority of a new client or operation, as the seed has it. */
unsigned order_priority(struct world *w);

/* All that is ready, time excepted; returns how many there are. */
unsigned order_gather(struct world *w, struct choice choices[CHOICES_MAX]);

/* Which of the @n that are ready goes next. */
struct choice order_choose(struct world *w, struct choice *choices, unsigned n);

/* When something will be ready that is not; INT64_MAX: never. */
int64_t order_next_time(const struct world *w);

#endif
