/* Starts, pauses and answers the ops of a remote store, for the leader that drive.c
 * chooses. */
#ifndef IDEM_STORE_REMOTE_FLIGHTS_H
#define IDEM_STORE_REMOTE_FLIGHTS_H

#include "store/remote/remote.h"

/* Called by the leader: does all work that needs no waiting. Returns the time at which
 * more work is due. */
int64_t idem__flights_round(struct idem__remote *remote);

/* With the mutex held: true if @op may be queued; ends and renewals always may. Started
 * ops beyond sending_max count as queued. */
bool idem__flights_has_room(const struct idem__remote *remote,
                            const struct idem_op *op);

/* With the mutex held: true if a round would start a pending op. */
bool idem__flights_may_start(const struct idem__remote *remote);

/* Ends all ops and frees all flights. No thread may lead any more. */
void idem__flights_drop(struct idem__remote *remote);

#endif
