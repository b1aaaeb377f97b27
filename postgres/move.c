/* MARK, MARK_WAIT and MARK_READ: the mark of a store that is moved.
 *
 * A claim checks the mark in its own statement. One that was sent before the mark was
 * committed does not see it: MARK_WAIT waits for those, as no list would. */
#include "core/move.h"

#include "postgres/task.h"

idem__state idem__pg_mark(struct idem__pg_task *task,
                          const struct idem_now *now)
{
    const struct idem_op *op = task->base.op;
    struct idem__pg_request *request;

    (void)now;
    if (!op->u.move.set) {
        return IDEM__STATE_MARK_READ;
    }
    request = idem__pg_ask(task, IDEM__PG_ASK_MARK);
    request->name = op->u.move.was;
    request->subject = op->u.move.mark;
    request->numbers[0] = idem__move_closes(op->u.move.mark);
    request->numbers[1] = (int64_t)op->u.move.fence_floor;
    return IDEM__STATE_SEND;
}

idem__state idem__pg_mark_answered(struct idem__pg_task *task,
                                   const struct idem_now *now)
{
    (void)now;
    if (task->request.said == IDEM__SAID_UNKNOWN) {
        task->base.ambiguous = true;
    }
    if (task->request.said != IDEM__SAID_OK) {
        return idem__pg_retry(task, IDEM__STATE_MARK);
    }
    task->base.ambiguous = true; /* It may be ours: reading tells. */
    return IDEM__STATE_MARK_WAIT;
}

idem__state idem__pg_mark_wait_answered(struct idem__pg_task *task,
                                        const struct idem_now *now)
{
    (void)now;
    (void)task;
    return IDEM__STATE_MARK_READ;
}

idem__state idem__pg_mark_read_answered(struct idem__pg_task *task,
                                        const struct idem_now *now)
{
    struct idem_op *op = task->base.op;
    bool marked = task->base.ambiguous;
    struct idem_slice found;
    char mark[IDEM_MARK_MAX];

    if (!idem__pg_bytes(task->request.result, 0, 0, &found) ||
        found.len >= sizeof(mark)) {
        return idem__flight_fail_with(
            &task->base, IDEM_ECORRUPT,
            "the mark in the table idem_store cannot be "
            "trusted");
    }
    if (found.len > 0) {
        memcpy(mark, found.base, found.len);
    }
    mark[found.len] = '\0';
    idem__move_answer(op, mark, now);
    op->changed = marked && op->error.code == 0;
    return IDEM__STATE_DONE;
}
