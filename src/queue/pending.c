/* Ops that their store has not begun. */

#include "base/list.h"
#include "contract/parts.h"

#include <idem/queue.h>

void idem__pending_append(struct idem_pending *pending, struct idem_op *op)
{
    IDEM__LIST_APPEND(pending, op);
    pending->len++;
}

static void take_off(struct idem_pending *pending, struct idem_op *op)
{
    IDEM__LIST_REMOVE(pending, op);
    pending->len--;
}

void idem__pending_run(struct idem_pending *pending, struct idem_op *op)
{
    take_off(pending, op);
    if (op->queue != NULL) {
        idem__op_run(op);
    }
}

enum idem_cancel idem__pending_cancel(struct idem_pending *pending,
                                      struct idem_op *op)
{
    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != IDEM_OP_PENDING) {
        return idem__op_detach(op);
    }
    take_off(pending, op);
    return IDEM_CANCEL_TAKEN_BACK;
}

void idem__pending_drop(struct idem_pending *pending)
{
    while (pending->first != NULL) {
        struct idem_op *op = pending->first;

        take_off(pending, op);
        if (op->queue != NULL) { /* It should have been destroyed before. */
            (void)idem__op_fail(op, IDEM_EUNAVAILABLE,
                                "the store was closed; nothing was done");
            idem__op_answer(op);
        } else {
            idem_op_destroy(op);
        }
    }
}
