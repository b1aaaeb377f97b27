/* The work of a store, which drive.c finds somebody for. */
#ifndef IDEM_STORE_REMOTE_FLIGHTS_H
#define IDEM_STORE_REMOTE_FLIGHTS_H

#include "store/remote/remote.h"

/* The leader's: everything that can be done without waiting. Says when there is
 * more. */
int64_t idem__flights_round(struct idem__remote *remote);

/* With the mutex held: @op can be taken, as an end or a renewal always is. Ops that are
 * paused count as queued, but for as many as may send at once. */
bool idem__flights_has_room(const struct idem__remote *remote,
                            const struct idem_op *op);

/* With the mutex held: a round would start an op that is pending. */
bool idem__flights_may_start(const struct idem__remote *remote);

/* Lets go of everything, when nobody leads any more. */
void idem__flights_drop(struct idem__remote *remote);

#endif
