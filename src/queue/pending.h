/* Ops that their store has not begun, oldest first. The caller holds the
 * store's mutex. */
#ifndef IDEM_QUEUE_PENDING_H
#define IDEM_QUEUE_PENDING_H

#include <idem/store.h>

struct idem__pending {
    struct idem_op *first; /* Linked both ways. */
    struct idem_op *last;
    size_t len;
};

void idem__pending_append(struct idem__pending *pending, struct idem_op *op);

/* Takes @op, which is one of them, off: it is run now. */
void idem__pending_run(struct idem__pending *pending, struct idem_op *op);

/* cancel of struct idem_store_ops, for an op that may be one of them. */
enum idem_cancel idem__pending_cancel(struct idem__pending *pending,
                                      struct idem_op *op);

/* Ends those that are left when a store is closed: it destroys claims that nobody
 * wanted and that were not given back, and answers those of a queue that should have
 * been destroyed before: nothing was done. */
void idem__pending_drop(struct idem__pending *pending);

#endif
