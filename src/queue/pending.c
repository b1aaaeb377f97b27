/* Ops that their store has not begun. */

#include "base/list.h"

#include <idem/queue.h>
#include <idem/store_parts.h>

void idem_pending_append(struct idem_pending *pending, struct idem_op *op)
{
    IDEM__LIST_APPEND(pending, op);
    pending->len++;
}

static void take_off(struct idem_pending *pending, struct idem_op *op)
{
    IDEM__LIST_REMOVE(pending, op);
    pending->len--;
}

void idem_pending_run(struct idem_pending *pending, struct idem_op *op)
{
    take_off(pending, op);
    if (op->queue != NULL) {
        idem_op_run(op);
    }
}

enum idem_cancel idem_pending_cancel(struct idem_pending *pending,
                                     struct idem_op *op)
{
    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != IDEM_OP_PENDING) {
        return idem_op_detach(op);
    }
    take_off(pending, op);
    return IDEM_CANCEL_TAKEN_BACK;
}

void idem_pending_drop(struct idem_pending *pending)
{
    while (pending->first != NULL) {
        struct idem_op *op = pending->first;

        take_off(pending, op);
        if (op->queue != NULL) { /* It should have been destroyed before. */
            (void)idem_op_fail(op, IDEM_EUNAVAILABLE,
                               "the store was closed; nothing was done");
            idem_op_answer(op);
        } else {
            idem_op_destroy(op);
        }
    }
}
