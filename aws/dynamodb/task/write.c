/* WRITE: its request, what is refused, and what settles it. */
#include "aws/dynamodb/task/task.h"
#include "contract/parts.h"

#include <stdio.h>

idem__state idem__task_refuse_caller_write(struct idem__task *task)
{
    struct idem_decision *decision = &task->base.decision;
    bool begins = task->base.op->verb == IDEM_OP_BEGIN;

    task->base.op->commit->refused = task->caller_write;
    decision->change = IDEM_CHANGE_NONE;
    decision->verdict = begins ? IDEM_RELEASED : decision->verdict;
    (void)idem__verb_given(task->base.op, begins ? NULL : &task->found.record,
                           decision, &task->base.given);
    task->base.given.result.bytes = idem_bytes(NULL, 0);
    idem__verb_answer(task->base.op, decision, &task->base.given);
    return IDEM__STATE_DONE;
}

/* ---- Settling ---- */

idem__state idem__task_settle(struct idem__flight *flight,
                              const struct idem_now *now, bool wrote)
{
    struct idem__task *task = (struct idem__task *)flight;

    if (wrote && task->transacts) {
        flight->op->commit->committed = true;
    }
    if (idem__gate_doubts(task, now)) {
        task->claimed = true;
        flight->ambiguous = true;
        return IDEM__STATE_GATE;
    }
    flight->settled = true;
    return wrote ? IDEM__STATE_SETTLE : IDEM__STATE_DONE;
}

/* ---- Writing the head ---- */

/* The transport may have sent the request a second time over another connection, and
 * this is the answer to the second copy: then the first, which was applied, may be
 * why it was refused. */
static void doubt_copies(struct idem__task *task)
{
    if (task->request.sends > 1) {
        task->base.ambiguous = true;
        idem__bodies_forget(task);
    }
}

static idem__state caller_write_refused(struct idem__task *task,
                                        const struct idem__answer *answer)
{
    struct idem_commit *commit = task->base.op->commit;

    task->caller_write = answer->caller_write;
    (void)snprintf(commit->text, sizeof(commit->text), "%s",
                   answer->error.text);
    doubt_copies(task);
    /* An earlier copy may be why: a reading tells. */
    return task->base.ambiguous ? IDEM__STATE_LOOK
                                : idem__task_refuse_caller_write(task);
}

idem__state idem__write_answered(struct idem__task *task,
                                 const struct idem_now *now,
                                 struct idem__answer *answer)
{
    idem__state next;

    if (answer->said == IDEM__SAID_CALLER_WRITE) {
        return caller_write_refused(task, answer);
    }
    if (answer->said == IDEM__SAID_REFUSED) {
        doubt_copies(task);
    } else if (answer->said == IDEM__SAID_UNKNOWN) {
        idem__bodies_forget(task);
    }
    next = idem__flight_written(&task->base, now, answer->said, answer->sent,
                                &answer->error);
    if (next != IDEM__STATE_NONE) {
        return next;
    }
    /* No item in the answer is not the same as none in the table. */
    return answer->item != NULL ? idem__task_found(task, answer->item)
                                : IDEM__STATE_LOOK;
}

idem__state idem__write_ask(struct idem__task *task, const struct idem_now *now)
{
    const struct idem__table_conf *table = &task->env->table;
    const struct idem_slice *old =
        task->base.has_found ? &task->found.head : NULL;
    struct idem_slice head = idem__buffer_slice(&task->base.head);
    struct idem__buffer *out = idem__task_out(task);

    (void)now;
    if (task->transacts) {
        idem__request_transact(out, table, &task->item, head, old,
                               task->base.op->commit->writes);
        return idem__task_ask(task, IDEM__TARGET("TransactWriteItems"));
    }
    idem__request_put(out, table, &task->item, head, old);
    return idem__task_ask(task, idem__layout_deletes(table->layout,
                                                     &task->item.record)
                                    ? IDEM__TARGET("DeleteItem")
                                    : IDEM__TARGET("PutItem"));
}
