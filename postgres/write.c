/* ACT, EXTEND and WRITE: does what was decided. */
#include "contract/parts.h"
#include "core/decide.h"
#include "core/error.h"
#include "postgres/task.h"
#include "store/remote/own.h"
#include "store/remote/pending.h"

/* ---- Claims that are too short ---- */

/* However this ends, the claim was made: that is why the op is ambiguous from here on,
 * whatever becomes of this write. */
enum idem__pg_where_to idem__pg_extend(struct idem__pg_task *task,
                                       const struct idem_now *now)
{
    size_t len;
    int rc;

    task->extending = true;
    task->ambiguous = true;
    task->next = task->found.record;
    idem__lease_extend(&task->next, task->next.lease_ms, now);
    idem__lease_extend(&task->given, task->given.lease_ms, now);
    rc = idem__record_encode(&task->next, task->env->scratch, IDEM_HEAD_MAX,
                             &len);
    if (rc == 0) {
        task->head.len = 0;
        idem__buffer_add(&task->head, task->env->scratch, len);
        rc = task->head.failed ? IDEM_ENOMEM : 0;
    }
    return rc == 0 ? IDEM__PG_TO_WRITE
                   : idem__pg_fail_with(task, rc, idem_error_text(rc));
}

/* Takes what was written as what is there; its texts stay where they were read. */
static enum idem__pg_where_to extend_written(struct idem__pg_task *task)
{
    task->last.len = 0;
    idem__buffer_add(&task->last, task->head.base, task->head.len);
    if (task->last.failed) {
        task->ambiguous = true;
        return idem__pg_fail_with(task, IDEM_ENOMEM,
                                  idem_error_text(IDEM_ENOMEM));
    }
    task->found.record = task->next;
    task->found.head = idem__buffer_slice(&task->last);
    task->found.has_bodies = false;
    task->has_found = true;
    return IDEM__PG_TO_EXTEND;
}

/* ---- Acting ---- */

enum idem__pg_where_to idem__pg_act(struct idem__pg_task *task,
                                    const struct idem_now *now)
{
    const struct idem_decision *decision = &task->decision;

    if (decision->change != IDEM_CHANGE_NONE) {
        return IDEM__PG_TO_WRITE;
    }
    if (task->has_found && idem__own_claim_is_short(task->op, decision,
                                                    &task->found.record, now)) {
        return IDEM__PG_TO_EXTEND; /* It is ours; its answer was lost. */
    }
    idem__verb_answer(task->op, decision, &task->given);
    task->op->changed = task->ambiguous;
    return IDEM__PG_TO_DONE;
}

/* ---- Writing ---- */

enum idem__pg_where_to idem__pg_write(struct idem__pg_task *task,
                                      const struct idem_now *now)
{
    bool claims =
        !task->extending && task->decision.change == IDEM_CHANGE_INSERT;
    struct idem__pg_request *request =
        idem__pg_ask(task, claims ? IDEM__PG_ASK_CLAIM : IDEM__PG_ASK_UPDATE);

    (void)now;
    request->write = (struct idem__pg_write){
        .record = &task->next,
        .head = idem__buffer_slice(&task->head),
        .set_result = !task->extending && task->decision.set_result,
        .set_input = !task->extending && task->decision.set_input,
        .old_fence = task->op->verb == IDEM_OP_IMPORT,
        .begins = (task->op->verb == IDEM_OP_BEGIN && !task->extending) ||
                  (task->op->verb == IDEM_OP_RESOLVE && task->next.retry),
    };
    if (!claims) {
        request->found = task->found.head;
    }
    return IDEM__PG_TO_WRITE;
}

static enum idem__pg_where_to applied(struct idem__pg_task *task,
                                      const struct idem_now *now)
{
    idem__pg_remember(task); /* First: whatever follows, it is in the table. */
    if (!task->extending &&
        idem__own_claim_is_short(task->op, &task->decision, &task->next, now)) {
        return extend_written(task);
    }
    if (task->op->verb == IDEM_OP_IMPORT) {
        task->op->u.import.added = true;
    }
    idem__verb_answer(task->op, &task->decision, &task->given);
    task->op->changed = true;
    return IDEM__PG_TO_DONE;
}

/* True for a claim that came with the time of a slow clock; the answer has told the right
 * one. */
static bool came_too_late(const struct idem__pg_task *task,
                          const struct idem_now *now)
{
    return task->request.ask == IDEM__PG_ASK_CLAIM &&
           !task->request.write.old_fence && task->rounds == 1 &&
           task->next.lease_end_ms <= now->store_ms;
}

/* Another was faster, or holds the row in a transaction of its own. */
static enum idem__pg_where_to refused(struct idem__pg_task *task,
                                      const struct idem_now *now)
{
    bool claimed = task->request.ask == IDEM__PG_ASK_CLAIM;

    if (task->remembered) {
        idem__claims_forget(task->env->claims, task->op->id);
    }
    if (claimed && task->request.row_code != 0) {
        return idem__pg_found(task) ? IDEM__PG_TO_DECIDE : IDEM__PG_TO_DONE;
    }
    if (came_too_late(task, now)) {
        return IDEM__PG_TO_DECIDE;
    }
    /* A record that was not shown or is gone by now, or a fence that is not high enough:
     * a look tells. */
    return task->rounds == 1
               ? IDEM__PG_TO_LOOK
               : idem__pg_again(task, IDEM__PG_TO_LOOK,
                                "another transaction holds the record");
}

/* It may be applied yet, while we read. If not by then, the write that is decided on what
 * was read is conditional on that, and whichever comes first refuses the other. */
static enum idem__pg_where_to not_answered(struct idem__pg_task *task)
{
    const struct idem__pg_request *request = &task->request;

    task->ambiguous = true;
    if (request->ask == IDEM__PG_ASK_UPDATE && !task->extending &&
        idem__pending_note(task->op, request->found) != 0) {
        return idem__pg_fail_with(task, IDEM_ENOMEM,
                                  idem_error_text(IDEM_ENOMEM));
    }
    return idem__pg_retry(task, IDEM__PG_TO_LOOK);
}

enum idem__pg_where_to idem__pg_write_answered(struct idem__pg_task *task,
                                               const struct idem_now *now)
{
    switch (task->request.said) {
    case IDEM__PG_OK:
        task->tries = 0;
        return task->request.applied ? applied(task, now) : refused(task, now);
    case IDEM__PG_NOT_APPLIED:
        /* A claim that waited for another one's is told of that next time. */
        return idem__pg_retry(task, IDEM__PG_TO_WRITE);
    case IDEM__PG_UNKNOWN:
        return not_answered(task);
    case IDEM__PG_NEVER:
        return idem__pg_fail(task, &task->request.error);
    }
    return IDEM__PG_TO_DONE;
}
