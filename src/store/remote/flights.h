/* The work of a store, which the leader does that drive.c chooses. */
#ifndef IDEM_STORE_REMOTE_FLIGHTS_H
#define IDEM_STORE_REMOTE_FLIGHTS_H

#include "store/remote/remote.h"

/* For the leader: does all work that needs no waiting. Returns the time at which more
 * is due. */
int64_t idem__flights_round(struct idem__remote *remote);

/* With the mutex held: true if @op may be queued, as ends and renewals always may. Of the
 * ops that have started, those beyond sending_max count as queued, too. */
bool idem__flights_has_room(const struct idem__remote *remote,
                            const struct idem_op *op);

/* With the mutex held: true if a round would start a pending op. */
bool idem__flights_may_start(const struct idem__remote *remote);

/* Ends all ops and frees all flights, once no thread leads any more. */
void idem__flights_drop(struct idem__remote *remote);

#endif
