/* A table's own part of a decision, beside the rules of all stores (core/decide.h). */
#include "aws/dynamodb/task/commit.h"
#include "aws/dynamodb/task/task.h"
#include "contract/parts.h"

enum {
    OWNER_MS =
        200, /* In which a claim is mended: see waits_for_owner(). Less */
    OWNER_PART = 8, /* where it is more than this part of the op's time. */
};

/* The first claim of a process has the time of its own clock; where that is slow, the
 * answer tells, and the next request mends the lease. In between the claim looks like one
 * whose owner died long ago. So the write that would end it waits: made on condition of what
 * was found, it is refused once the owner has mended that, and nobody is called for
 * nothing. An owner that is slower still takes its claim back (core/decide_begin.c). */
static bool waits_for_owner(const struct idem__task *task)
{
    const struct idem_decision *decision = &task->base.decision;

    return task->base.op->verb == IDEM_OP_BEGIN && !task->waited &&
           decision->change == IDEM_CHANGE_REPLACE && decision->next.by_lease;
}

static idem__state wait_for_owner(struct idem__task *task)
{
    int64_t most_ms = task->base.op->store->options.timeout_ms / OWNER_PART;

    task->waited = true;
    task->base.pause_ms = OWNER_MS < most_ms ? OWNER_MS : most_ms;
    task->base.after_pause = IDEM__STATE_DECIDE;
    return IDEM__STATE_PAUSE;
}

idem__state idem__task_decide(struct idem__flight *flight,
                              const struct idem_record *there,
                              const struct idem_now *now)
{
    struct idem__task *task = (struct idem__task *)flight;
    const struct idem_now at = idem__gate_now(task, now);
    struct idem_decision *decision = &flight->decision;
    struct idem_op *op = flight->op;

    idem__verb_decide(there, op, &at, decision);
    if (op->commit != NULL && decision->code == 0) {
        idem__commit_decide(op, there != NULL ? &task->found : NULL, &at,
                            decision);
    }
    if (decision->code != 0) {
        return IDEM__STATE_NONE;
    }
    if (waits_for_owner(task)) {
        return wait_for_owner(task);
    }
    task->transacts = idem__commit_transacts(op, decision);
    /* The reading since then shows that no earlier copy was applied. */
    return task->caller_write != 0 && task->transacts
               ? idem__task_refuse_caller_write(task)
               : IDEM__STATE_NONE;
}

idem__state idem__task_prepare(struct idem__flight *flight)
{
    struct idem__task *task = (struct idem__task *)flight;
    struct idem__item *item = &task->item;
    struct idem_error error;

    /* Bodies that were read belong to what was found before. */
    task->result.loading = false;
    task->input.loading = false;
    if (flight->decision.change == IDEM_CHANGE_NONE) {
        return IDEM__STATE_NONE;
    }
    item->has_writes = task->transacts;
    if (task->transacts) {
        memcpy(item->writes, flight->op->commit->digest, IDEM__TAG_LEN);
    }
    idem__bodies_place(task);
    return idem__layout_fits(&task->env->table, item, flight->head.len,
                             &error) == 0
               ? IDEM__STATE_NONE
               : idem__flight_fail(flight, &error);
}
