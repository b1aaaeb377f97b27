/* Ops that their store has not begun. */
#include "queue/pending.h"

#include <assert.h>

void idem__pending_append(struct idem__pending *pending, struct idem_op *op)
{
    op->next = NULL;
    op->prev = pending->last;
    if (op->prev == NULL) {
        pending->first = op;
    } else {
        op->prev->next = op;
    }
    pending->last = op;
    pending->len++;
}

static void take_off(struct idem__pending *pending, struct idem_op *op)
{
    if (op->prev == NULL) {
        pending->first = op->next;
    } else {
        op->prev->next = op->next;
    }
    if (op->next == NULL) {
        pending->last = op->prev;
    } else {
        op->next->prev = op->prev;
    }
    op->next = NULL;
    op->prev = NULL;
    pending->len--;
}

void idem__pending_run(struct idem__pending *pending, struct idem_op *op)
{
    take_off(pending, op);
    if (op->queue != NULL) {
        idem_op_run(op);
    }
}

enum idem_cancel idem__pending_cancel(struct idem__pending *pending,
                                      struct idem_op *op)
{
    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != IDEM_OP_PENDING) {
        return idem_op_detach(op);
    }
    take_off(pending, op);
    return IDEM_CANCEL_TAKEN_BACK;
}

void idem__pending_drop(struct idem__pending *pending)
{
    while (pending->first != NULL) {
        struct idem_op *op = pending->first;

        assert(op->queue == NULL);
        take_off(pending, op);
        idem_op_destroy(op);
    }
}
