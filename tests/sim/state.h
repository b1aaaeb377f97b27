/* The state of a small world as a number: all on which it depends what can still
 * happen and how it will be judged.
 *
 * The stack of a client is not looked at. What a client does follows from what it
 * was told since it was last between two calls: every reading of a clock and
 * every answer. Their hash stands for the inside of its call. */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include "world.h"

uint64_t state_of(const struct world *w);

/* The part of it that is one operation under way. */
uint64_t state_of_flight(const struct world *w, const struct flight *f);

/* @c is told @what. */
void state_told(struct client *c, uint64_t what);

/* @c is told the answer that is in @op. */
void state_answered(struct client *c, const struct idem_op *op);

/* @c is between two calls: all that it knows is where it is in its script, @note,
 * and what it holds. Its random numbers begin anew from there. */
void state_rest(struct client *c, int line, int64_t note);

#endif
