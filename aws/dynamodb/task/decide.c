/* DECIDE: what is answered, and what is written, for what is there. The rules are
 * those of all stores (core/decide.h); here is what a table adds to them. */
#include "aws/dynamodb/task/commit.h"
#include "aws/dynamodb/task/task.h"
#include "contract/parts.h"
#include "core/decide.h"
#include "core/error.h"
#include "store/remote/own.h"
#include "store/remote/pending.h"

enum {
    /* Decisions of one op. Each but the first means that another changed the record
     * between our reading and our write. */
    ROUNDS_MAX = 16,
    OWNER_MS =
        200, /* In which a claim is mended: see waits_for_owner(). Less */
    OWNER_PART = 8, /* where it is more than this part of the op's time. */
};

/* An import whose answer was lost finds the record that it added. */
static void own_import(struct idem__task *task)
{
    if (task->ambiguous && task->has_found &&
        idem__own_import(task->op, &task->found.record)) {
        task->op->u.import.added = true;
    }
}

/* A release that deletes, whose answer was lost: there is nothing, which is what
 * was asked for. */
static bool deleted_before(const struct idem__task *task)
{
    return task->ambiguous && !task->has_found &&
           task->op->verb == IDEM_OP_END &&
           idem__layout_deletes(task->env->table.layout, &task->item.record);
}

/* False: the op failed, the layout has no room for what is to be written. */
static bool fits(struct idem__task *task)
{
    struct idem_error error;

    if (idem__layout_fits(&task->env->table, &task->item, task->head.len,
                          &error) == 0) {
        return true;
    }
    (void)idem__task_fail(task, &error);
    return false;
}

/* Makes the item that is to be written. False: the op failed. */
static bool make_item(struct idem__task *task)
{
    task->item.record = task->decision.next;
    if (!idem__task_encode(task)) {
        return false;
    }
    task->item.has_writes = task->transacts;
    if (task->transacts) {
        memcpy(task->item.writes, task->op->commit->digest, IDEM__TAG_LEN);
    }
    idem__bodies_place(task);
    return fits(task);
}

/* A write of ours may change yet what was found: looks again, until it has or the time is
 * up. */
static enum idem__state look_again(struct idem__task *task)
{
    struct idem__answer answer = {.said = IDEM__SAID_NOT_APPLIED, .sent = true};

    task->tries = task->tries_before;
    (void)idem__error(&answer.error, IDEM_EUNAVAILABLE,
                      "DynamoDB: a write was not answered, and may be done "
                      "yet");
    return idem__task_retry(task, &answer, IDEM__STATE_LOOK);
}

/* The first claim of a process has the time of its own clock; where that is slow, the
 * answer tells, and the next request mends the lease. In between the claim looks like one
 * whose owner died long ago. So the write that would end it waits: made on condition of what
 * was found, it is refused once the owner has mended that, and nobody is called for
 * nothing. An owner that is slower still takes its claim back (core/decide_begin.c). */
static bool waits_for_owner(const struct idem__task *task)
{
    const struct idem_decision *decision = &task->decision;

    return task->op->verb == IDEM_OP_BEGIN && !task->waited &&
           decision->change == IDEM_CHANGE_REPLACE && decision->next.by_lease;
}

static enum idem__state wait_for_owner(struct idem__task *task)
{
    int64_t most_ms = task->op->store->options.timeout_ms / OWNER_PART;

    task->waited = true;
    task->pause_ms = OWNER_MS < most_ms ? OWNER_MS : most_ms;
    task->after_pause = IDEM__STATE_DECIDE;
    return IDEM__STATE_PAUSE;
}

enum idem__state idem__decide_step(struct idem__task *task,
                                   const struct idem_now *now)
{
    const struct idem_record *there =
        task->has_found ? &task->found.record : NULL;
    const struct idem_now at = idem__gate_now(task, now);
    struct idem_decision *decision = &task->decision;
    bool wants;

    if (deleted_before(task)) {
        idem__verb_answer(task->op, decision, &task->given);
        task->op->changed = true;
        return IDEM__STATE_DONE;
    }
    /* Each round but the first is another's success, so that all of them together
     * get on; one op alone may not. */
    if (task->rounds++ == ROUNDS_MAX) {
        return idem__task_fail_with(
            task, IDEM_EUNAVAILABLE,
            "DynamoDB: the record changes faster than it can be read");
    }
    task->extending = false;
    idem__verb_decide(there, task->op, &at, decision);
    /* A remembered item is good for a write that is conditional on it, and for
     * no answer: it may be long gone. */
    if ((decision->code != 0 || decision->change == IDEM_CHANGE_NONE) &&
        task->remembered) {
        return IDEM__STATE_LOOK;
    }
    if (task->op->commit != NULL && decision->code == 0) {
        idem__commit_decide(task->op, task->has_found ? &task->found : NULL,
                            &at, decision);
    }
    if ((decision->code != 0 || decision->change == IDEM_CHANGE_NONE) &&
        task->has_found && idem__pending_holds(task->op, task->found.head)) {
        return look_again(task);
    }
    if (decision->code != 0) {
        return idem__task_fail_with(task, decision->code, decision->text);
    }
    if (waits_for_owner(task)) {
        return wait_for_owner(task);
    }
    task->transacts = idem__commit_transacts(task->op, decision);
    if (task->caller_write != 0 && task->transacts) {
        /* The reading since then shows that no earlier copy was applied. */
        return idem__task_refuse_caller_write(task);
    }
    own_import(task);
    idem__own_claim_note(task->op, &task->found.record, decision);
    wants = idem__verb_given(task->op, there, decision, &task->given);
    /* Bodies that were read belong to what was found before. */
    task->result.loading = false;
    task->input.loading = false;
    if (decision->change != IDEM_CHANGE_NONE && !make_item(task)) {
        return IDEM__STATE_DONE;
    }
    return wants ? IDEM__STATE_LOAD : IDEM__STATE_ACT;
}
