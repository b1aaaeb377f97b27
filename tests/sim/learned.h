/* What the client of a remote store learns of its time. */
#ifndef SIM_LEARNED_H
#define SIM_LEARNED_H

#include "world.h"

/* An answer came that the store dated @date_ms (whole seconds, rounded down) to
 * a request that was sent when the client's boot clock showed @sent_boot_ms. */
void learned_add(struct client *c, int64_t date_ms, int64_t sent_boot_ms);

/* Store time by what was learned: an interval that has the truth in it. False:
 * nothing was learned so far. */
bool learned_now(struct client *c, struct idem_now *ret_now);

/* The latest that store time can be when the boot clock shows @boot_ms. */
int64_t learned_latest(const struct client *c, int64_t boot_ms);

/* What is left when nothing was learned: the wall clock, taken at its word. */
void learned_by_wall(struct client *c, struct idem_now *ret_now);

#endif
