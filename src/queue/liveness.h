/* Whether a store is open, for its queues, which may outlive it by mistake. */
#ifndef IDEM_QUEUE_LIVENESS_H
#define IDEM_QUEUE_LIVENESS_H

#include "contract/store.h"

/* Of an open store; its store holds it. NULL when memory ran out. */
struct idem_liveness *idem__liveness_create(void);

/* The store is closed: nobody may follow a pointer to it any more. Lets go of it.
 * NULL is allowed. */
void idem__liveness_end(struct idem_liveness *liveness);

/* Each queue that is not on the stack of a call holds it, too. */
struct idem_liveness *idem__liveness_hold(struct idem_liveness *liveness);
void idem__liveness_drop(struct idem_liveness *liveness);

bool idem__liveness_is_closed(const struct idem_liveness *liveness);

/* 0 if the store is open, and this process opened it; else IDEM_EINVALID, with a
 * sentence. */
int idem__liveness_check(const struct idem_liveness *liveness,
                         struct idem_error *error);

#endif
