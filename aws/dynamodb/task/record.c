/* One record: LOOK, DECIDE and WRITE. */
#include "aws/dynamodb/task/task.h"
#include "contract/parts.h"

#include <stdio.h>

json_object *idem__task_under_table(const struct idem__task *task,
                                    json_object *body, const char *member)
{
    json_object *object;
    json_object *list;

    if (!json_object_object_get_ex(body, member, &object) ||
        !json_object_object_get_ex(object, task->env->table.name, &list)) {
        return NULL;
    }
    return list;
}

int idem__task_read(struct idem__task *task, json_object *object,
                    const uint8_t *id, struct idem_error *ret_error)
{
    return idem__layout_read(&task->env->table, object, id,
                             &task->base.found_memory, &task->scratch,
                             &task->found, ret_error);
}

/* True if the op is a release in a layout that deletes released items, and an earlier copy
 * of it was not answered. Then a missing item is what the caller wanted. */
static bool deleted_before(const struct idem__task *task)
{
    return task->base.ambiguous && task->base.op->verb == IDEM_OP_END &&
           idem__layout_deletes(&task->env->table, &task->item.record);
}

idem__state idem__task_found(struct idem__task *task, json_object *object)
{
    struct idem__flight *flight = &task->base;
    struct idem_error error;

    flight->remembered = false;
    flight->has_found = object != NULL;
    if (object == NULL && deleted_before(task)) {
        (void)idem__verb_answer(flight->op, &flight->decision, &flight->given);
        flight->op->changed = true;
        return IDEM__STATE_DONE;
    }
    if (object != NULL &&
        idem__task_read(task, object, flight->op->id, &error) != 0) {
        return idem__flight_fail(flight, &error);
    }
    return IDEM__STATE_DECIDE;
}

bool idem__look_found_nothing(json_object *body)
{
    int known = json_object_object_get_ex(body, "ConsumedCapacity", NULL);

    return body == NULL || json_object_object_length(body) == known;
}

idem__state idem__look_answered(struct idem__task *task,
                                struct idem__answer *answer)
{
    json_object *item = NULL;
    bool there;

    there = json_object_object_get_ex(answer->body, "Item", &item);
    /* An answer that is not understood does not prove absence. */
    if (there ? item == NULL : !idem__look_found_nothing(answer->body)) {
        return idem__flight_fail_with(&task->base, IDEM_ECORRUPT,
                                      "DynamoDB: malformed answer");
    }
    return idem__task_found(task, item);
}

idem__state idem__look_ask(struct idem__task *task)
{
    idem__request_get(idem__task_out(task), &task->env->table,
                      task->base.op->id, task->base.op->key);
    return idem__task_ask(task, IDEM__TARGET("GetItem"));
}

/* ---- DECIDE: a table's part, beside the rules of all stores (core/decide.h) ---- */

enum {
    OWNER_MS =
        200, /* Time for an owner to extend its claim: waits_for_owner(). */
    OWNER_PART = 8, /* At most this part of the time for the op: an eighth. */
};

/* A process dates its first claim by its own clock. If that clock is slow, the answer tells
 * it the time, and its next request extends the lease. Until then the claim looks as if its
 * owner had died long ago. So this op waits once before the write that would end the claim.
 * That write is conditional on the record that was found, so it is refused if the owner has
 * extended the lease meanwhile, and nobody calls a person for nothing. An owner that needs
 * longer takes its claim back (core/decide_begin.c). */
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

/* The service refused a write of the caller's, and so applied none of the transaction: the
 * attempt goes on, or the key stays free. */
static idem__state refuse_caller_write(struct idem__task *task)
{
    struct idem_decision *decision = &task->base.decision;
    bool begins = task->base.op->verb == IDEM_OP_BEGIN;

    task->base.op->commit->refused = task->caller_write;
    decision->change = IDEM_CHANGE_NONE;
    decision->verdict = begins ? IDEM_RELEASED : decision->verdict;
    (void)idem__verb_given(task->base.op, begins ? NULL : &task->found.record,
                           decision, &task->base.given);
    task->base.given.result.bytes = idem_bytes(NULL, 0);
    (void)idem__verb_answer(task->base.op, decision, &task->base.given);
    return IDEM__STATE_DONE;
}

idem__state idem__task_decide(struct idem__flight *flight,
                              const struct idem_record *there)
{
    struct idem__task *task = (struct idem__task *)flight;
    const struct idem_now at = idem__gate_now(task);
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
    /* A write of the caller's was refused in doubt. The record has been read since, and it
     * shows that no earlier copy of the transaction was applied. */
    return task->caller_write != 0 && task->transacts
               ? refuse_caller_write(task)
               : IDEM__STATE_NONE;
}

idem__state idem__task_prepare(struct idem__flight *flight)
{
    struct idem__task *task = (struct idem__task *)flight;
    struct idem__item *item = &task->item;
    struct idem_error error;

    /* Bodies that were read in an earlier round belong to the record of that round. */
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

/* ---- Settling ---- */

idem__state idem__task_settle(struct idem__flight *flight, bool wrote)
{
    struct idem__task *task = (struct idem__task *)flight;

    if (wrote && task->transacts) {
        flight->op->commit->committed = true;
    }
    /* The claim is on record, but the last reading of the mark is too old to answer
     * STARTED: the table may have been moved since, and listed without this claim. */
    if (idem__gate_doubts(task)) {
        task->claimed = true;
        flight->ambiguous = true;
        return IDEM__STATE_GATE;
    }
    flight->settled = true;
    return wrote ? IDEM__STATE_SETTLE : IDEM__STATE_DONE;
}

/* ---- WRITE ---- */

/* The transport may have sent the request twice, over two connections. Then this refusal
 * may answer the second copy, and the reason for it may be that the first was applied. */
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
    /* An earlier copy of the transaction may have been applied, and may itself be what made
     * the condition fail. Read the record to find out. */
    return task->base.ambiguous ? IDEM__STATE_LOOK : refuse_caller_write(task);
}

idem__state idem__write_answered(struct idem__task *task,
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
    next = idem__flight_written(&task->base, answer->said, answer->sent,
                                &answer->error);
    if (next != IDEM__STATE_NONE) {
        return next;
    }
    /* No item in the answer is not the same as none in the table. */
    return answer->item != NULL ? idem__task_found(task, answer->item)
                                : IDEM__STATE_LOOK;
}

idem__state idem__write_ask(struct idem__task *task)
{
    const struct idem__table_conf *table = &task->env->table;
    const struct idem_slice *old =
        task->base.has_found ? &task->found.head : NULL;
    struct idem_slice head = idem__buffer_slice(&task->base.head);
    struct idem__buffer *out = idem__task_out(task);

    if (task->transacts) {
        idem__request_transact(out, table, &task->item, head, old,
                               task->base.op->commit->writes);
        return idem__task_ask(task, IDEM__TARGET("TransactWriteItems"));
    }
    idem__request_put(out, table, &task->item, head, old);
    return idem__task_ask(task, idem__layout_deletes(table, &task->item.record)
                                    ? IDEM__TARGET("DeleteItem")
                                    : IDEM__TARGET("PutItem"));
}
