/* ACT, EXTEND and WRITE: does what was decided. */
#include "aws/dynamodb/task/task.h"
#include "contract/parts.h"
#include "core/decide.h"
#include "core/error.h"
#include "store/remote/own.h"
#include "store/remote/pending.h"

#include <stdio.h>

bool idem__task_encode(struct idem__task *task)
{
    size_t len;
    int rc = idem__record_encode(&task->item.record, task->env->scratch,
                                 IDEM_HEAD_MAX, &len);

    if (rc == 0) {
        task->head.len = 0;
        idem__buffer_add(&task->head, task->env->scratch, len);
    }
    if (rc != 0 || task->head.failed) {
        rc = rc != 0 ? rc : IDEM_ENOMEM;
        (void)idem__task_fail_with(task, rc, idem_error_text(rc));
        return false;
    }
    return true;
}

enum idem__state idem__task_refuse_caller_write(struct idem__task *task)
{
    struct idem_decision *decision = &task->decision;
    bool begins = task->op->verb == IDEM_OP_BEGIN;

    task->op->commit->refused = task->caller_write;
    decision->change = IDEM_CHANGE_NONE;
    decision->verdict = begins ? IDEM_RELEASED : decision->verdict;
    (void)idem__verb_given(task->op, begins ? NULL : &task->found.record,
                           decision, &task->given);
    task->given.result.bytes = idem_bytes(NULL, 0);
    idem__verb_answer(task->op, decision, &task->given);
    return IDEM__STATE_DONE;
}

/* ---- Claims that are too short ---- */

static bool claimed_too_short(const struct idem__task *task,
                              const struct idem_record *record,
                              const struct idem_now *now)
{
    return idem__own_claim_is_short(task->op, &task->decision, record, now);
}

/* However this ends, the claim was made: that is why the op is ambiguous from here
 * on, whatever becomes of this write. */
enum idem__state idem__extend_step(struct idem__task *task,
                                   const struct idem_now *now)
{
    task->extending = true;
    task->ambiguous = true;
    task->item = task->found;
    idem__lease_extend(&task->item.record, task->item.record.lease_ms, now);
    idem__lease_extend(&task->given, task->given.lease_ms, now);
    return idem__task_encode(task) ? IDEM__STATE_WRITE : IDEM__STATE_DONE;
}

/* Takes what was written as what is there. False: the op failed. After a takeover
 * the item has texts of its predecessor, which stay where they were read. */
static bool find_written(struct idem__task *task)
{
    task->written.len = 0;
    idem__buffer_add(&task->written, task->head.base, task->head.len);
    if (task->written.failed) {
        (void)idem__task_fail_with(task, IDEM_ENOMEM,
                                   idem_error_text(IDEM_ENOMEM));
        return false;
    }
    task->has_found = true;
    task->found = task->item;
    task->found.head = idem__buffer_slice(&task->written);
    return true;
}

/* The claim is on record, and too short. */
static enum idem__state extend_written(struct idem__task *task)
{
    if (!idem__layout_of(&task->env->table)->ours) {
        /* The next write is conditional on attributes that only a reading
         * shows. */
        task->ambiguous = true;
        return IDEM__STATE_LOOK;
    }
    return find_written(task) ? IDEM__STATE_EXTEND : IDEM__STATE_DONE;
}

/* @next, which settles what was answered, or the gate before it. */
static enum idem__state gate_or(struct idem__task *task,
                                const struct idem_now *now,
                                enum idem__state next)
{
    if (idem__gate_doubts(task, now)) {
        task->claimed = true;
        task->ambiguous = true;
        return IDEM__STATE_GATE;
    }
    task->settled = true;
    return next;
}

/* ---- Acting ---- */

/* Bodies are written before the head says that they are there: a reader that finds
 * a head must find what it names. Each of them comes back to this state. */
enum idem__state idem__act_step(struct idem__task *task,
                                const struct idem_now *now)
{
    const struct idem_decision *decision = &task->decision;
    enum idem__state first;

    if (decision->change == IDEM_CHANGE_NONE &&
        claimed_too_short(task, &task->found.record, now)) {
        return IDEM__STATE_EXTEND; /* It is ours; its answer was lost. */
    }
    if (decision->change == IDEM_CHANGE_NONE) {
        idem__verb_answer(task->op, decision, &task->given);
        task->op->changed = task->ambiguous;
        return gate_or(task, now, IDEM__STATE_DONE);
    }
    first = idem__bodies_store(task);
    return first != IDEM__STATE_NONE ? first : IDEM__STATE_WRITE;
}

/* ---- Writing the head ---- */

/* A claim of this handle is remembered until it is ended. */
static void remember(struct idem__task *task)
{
    const struct idem_record *record = &task->item.record;

    if (task->env->claims == NULL) {
        return;
    }
    if (record->status == IDEM_STATUS_IN_PROGRESS && !record->retry &&
        memcmp(record->nonce, task->op->nonce, sizeof(record->nonce)) == 0) {
        idem__claimed_put(task->env->claims, &task->item,
                          idem__buffer_slice(&task->head));
    } else {
        idem__claims_forget(task->env->claims, record->id);
    }
}

static enum idem__state applied(struct idem__task *task,
                                const struct idem_now *now)
{
    remember(task); /* First: whatever follows, it is in the table. */
    if (!task->extending && claimed_too_short(task, &task->item.record, now)) {
        return extend_written(task);
    }
    if (task->op->verb == IDEM_OP_IMPORT) {
        task->op->u.import.added = true;
    }
    idem__verb_answer(task->op, &task->decision, &task->given);
    task->op->changed = true;
    if (task->transacts) {
        task->op->commit->committed = true;
    }
    return gate_or(task, now, IDEM__STATE_SETTLE);
}

/* The transport may have sent the request a second time over another connection, and
 * this is the answer to the second copy: then the first, which was applied, may be
 * why it was refused. */
static void doubt_copies(struct idem__task *task)
{
    if (task->request.sends > 1) {
        task->ambiguous = true;
        idem__bodies_forget(task);
    }
}

static enum idem__state refused(struct idem__task *task, json_object *item)
{
    doubt_copies(task);
    if (task->env->claims != NULL && task->remembered) {
        /* Another changed the record since: the claim is read again, or lost. */
        idem__claims_forget(task->env->claims, task->op->id);
    }
    /* No item in the answer is not the same as none in the table. */
    return item != NULL ? idem__task_found(task, item) : IDEM__STATE_LOOK;
}

static enum idem__state caller_write_refused(struct idem__task *task,
                                             const struct idem__answer *answer)
{
    task->caller_write = answer->caller_write;
    (void)snprintf(task->op->commit->text, sizeof(task->op->commit->text), "%s",
                   answer->error.text);
    doubt_copies(task);
    /* An earlier copy may be why: a reading tells. */
    return task->ambiguous ? IDEM__STATE_LOOK
                           : idem__task_refuse_caller_write(task);
}

/* It may be applied yet, while we read. If not by then, the write that is decided on
 * what was read is conditional on that, and whichever comes first refuses the
 * other. */
static enum idem__state not_answered(struct idem__task *task,
                                     const struct idem__answer *answer)
{
    task->ambiguous = true;
    idem__bodies_forget(task);
    if (task->has_found && !task->extending &&
        idem__pending_note(task->op, task->found.head) != 0) {
        return idem__task_fail_with(task, IDEM_ENOMEM,
                                    idem_error_text(IDEM_ENOMEM));
    }
    return idem__task_retry(task, answer, IDEM__STATE_LOOK);
}

enum idem__state idem__write_answered(struct idem__task *task,
                                      const struct idem_now *now,
                                      struct idem__answer *answer)
{
    switch (answer->said) {
    case IDEM__SAID_OK:
        return applied(task, now);
    case IDEM__SAID_REFUSED:
        return refused(task, answer->item);
    case IDEM__SAID_NOT_APPLIED:
        return idem__task_retry(task, answer, IDEM__STATE_WRITE);
    case IDEM__SAID_UNKNOWN:
        return not_answered(task, answer);
    case IDEM__SAID_NEVER:
        return idem__task_fail(task, &answer->error);
    case IDEM__SAID_CALLER_WRITE:
        return caller_write_refused(task, answer);
    }
    return IDEM__STATE_DONE;
}

const char *idem__write_ask(struct idem__task *task, const struct idem_now *now)
{
    const struct idem__table_conf *table = &task->env->table;
    const struct idem_slice *old = task->has_found ? &task->found.head : NULL;
    struct idem_slice head = idem__buffer_slice(&task->head);
    struct idem__buffer *out = idem__task_out(task);

    (void)now;
    if (task->transacts) {
        idem__request_transact(out, table, &task->item, head, old,
                               task->op->commit->writes);
        return IDEM__TARGET("TransactWriteItems");
    }
    idem__request_put(out, table, &task->item, head, old);
    return idem__layout_deletes(table->layout, &task->item.record)
               ? IDEM__TARGET("DeleteItem")
               : IDEM__TARGET("PutItem");
}
