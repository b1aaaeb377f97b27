/* One record: LOOK, LOAD and WRITE, and the database's part of a decision. The rules are
 * those of all stores (core/decide.h). */
#include "postgres/task.h"

#include "base/heap.h"
#include "contract/parts.h"
#include "core/decide.h"
#include "core/slice.h"

enum {
    LARGE_BODY = 256 * 1024,
};

/* ---- Looking ---- */

idem__state idem__pg_found(struct idem__pg_task *task)
{
    const struct idem__pg_request *request = &task->request;
    const struct idem_op *op = task->base.op;

    task->base.remembered = false;
    task->base.has_found = request->row_code == 1;
    if (request->row_code < 0) {
        return idem__flight_fail(&task->base, &request->error);
    }
    if (!task->base.has_found) {
        return IDEM__STATE_DECIDE;
    }
    task->found = request->row;
    if (!idem__slice_equal(task->found.record.scope, op->scope) ||
        !idem__slice_equal(task->found.record.key, op->key)) {
        return idem__flight_fail_with(
            &task->base, IDEM_ECORRUPT,
            "the record cannot be trusted: its scope and "
            "key do not match it");
    }
    if (idem__pg_row_keep(&task->found, &task->base.found_memory) != 0) {
        return idem__flight_no_memory(&task->base);
    }
    return IDEM__STATE_DECIDE;
}

idem__state idem__pg_look_answered(struct idem__pg_task *task)
{
    return idem__pg_found(task);
}

/* ---- Deciding ---- */

/* Gives the encoded head to the op's commit, in the same block of memory. */
static bool give_head(struct idem__pg_task *task)
{
    struct idem_slice head = idem__buffer_slice(&task->base.head);
    struct idem_commit *commit = idem__alloc(sizeof(*commit) + head.len);

    if (commit == NULL) {
        return false;
    }
    *commit = *task->base.op->commit;
    memcpy(commit + 1, head.base, head.len);
    commit->writes = idem_bytes(commit + 1, head.len);
    idem__free(task->base.op->commit);
    task->base.op->commit = commit;
    return true;
}

/* Answers a caller that writes the end of its attempt itself (completion.c). It may
 * overwrite only a record in progress: once the record has left that state, people may
 * have been told so, and an effect that they do not see must not change it. */
static idem__state answer_for_caller(struct idem__pg_task *task)
{
    if (task->base.decision.change == IDEM_CHANGE_NONE) {
        return idem__flight_fail_with(
            &task->base, IDEM_ELOST,
            "the attempt was already completed with this outcome");
    }
    if (task->found.record.status != IDEM_STATUS_IN_PROGRESS) {
        return idem__flight_fail_with(
            &task->base, IDEM_ELOST,
            "the lease of the attempt ended, and its record "
            "is no longer in progress");
    }
    if (!give_head(task)) {
        return idem__flight_no_memory(&task->base);
    }
    (void)idem__verb_answer(task->base.op, &task->base.decision,
                            &task->base.given);
    return IDEM__STATE_DONE;
}

idem__state idem__pg_task_decide(struct idem__flight *flight,
                                 const struct idem_record *there)
{
    struct idem_decision *decision = &flight->decision;

    idem__verb_decide(there, flight->op, flight->now, decision);
    if (decision->code == IDEM_ECORRUPT &&
        flight->now->fence_floor >= INT64_MAX) {
        idem__refuse(decision, IDEM_ECORRUPT,
                     "nothing can begin: fence_floor in the table idem_store, "
                     "up to which fences count as purged, leaves none above "
                     "it; idem store check prints the SQL that mends it");
    }
    return IDEM__STATE_NONE;
}

idem__state idem__pg_task_prepare(struct idem__flight *flight)
{
    return flight->op->commit != NULL
               ? answer_for_caller((struct idem__pg_task *)flight)
               : IDEM__STATE_NONE;
}

/* ---- Bodies ---- */

/* Verifies the bodies of the record found, and gives them to the decision. Returns the
 * next state. */
static idem__state take_bodies(struct idem__pg_task *task)
{
    struct idem_record bodies = task->found.record;
    struct idem_error error;

    bodies.result.bytes = task->found.result;
    bodies.input = task->found.input;
    if (idem__verb_check_bodies(&bodies, &error) != 0) {
        return idem__flight_fail(&task->base, &error);
    }
    idem__verb_take_bodies(&task->base.decision, &bodies, &task->base.given);
    return IDEM__STATE_ACT;
}

idem__state idem__pg_load(struct idem__pg_task *task)
{
    if (task->found.has_bodies) {
        return take_bodies(task);
    }
    (void)idem__pg_ask(task, IDEM__PG_ASK_LOAD);
    task->base.large = true;
    return IDEM__STATE_SEND;
}

idem__state idem__pg_load_answered(struct idem__pg_task *task)
{
    const PGresult *result = task->request.result;
    struct idem_slice tag;

    if (!idem__pg_bytes(result, 0, 0, &tag) || tag.len != IDEM__PG_TAG_LEN ||
        memcmp(tag.base, task->found.tag, IDEM__PG_TAG_LEN) != 0) {
        /* The record has changed since: these bodies are not those of the record found. */
        return IDEM__STATE_LOOK;
    }
    (void)idem__pg_bytes(result, 0, 1, &task->found.result);
    (void)idem__pg_bytes(result, 0, 2, &task->found.input);
    task->found.has_bodies = true;
    if (idem__pg_row_keep(&task->found, &task->loaded) != 0) {
        return idem__flight_no_memory(&task->base);
    }
    return IDEM__STATE_DECIDE;
}

/* ---- Writing ---- */

idem__state idem__pg_write(struct idem__pg_task *task)
{
    bool claims = !task->base.extending &&
                  task->base.decision.change == IDEM_CHANGE_INSERT;
    struct idem__pg_request *request =
        idem__pg_ask(task, claims ? IDEM__PG_ASK_CLAIM : IDEM__PG_ASK_UPDATE);

    request->write = (struct idem__pg_write){
        .record = &task->next,
        .head = idem__buffer_slice(&task->base.head),
        .set_result = !task->base.extending && task->base.decision.set_result,
        .set_input = !task->base.extending && task->base.decision.set_input,
        .old_fence = task->base.op->verb == IDEM_OP_IMPORT,
        .begins =
            (task->base.op->verb == IDEM_OP_BEGIN && !task->base.extending) ||
            (task->base.op->verb == IDEM_OP_RESOLVE && task->next.retry),
    };
    task->base.large =
        task->next.result.bytes.len + task->next.input.len > LARGE_BODY;
    if (!claims) {
        request->found = task->found.head;
    }
    return IDEM__STATE_SEND;
}

/* True if the server refused the claim because a slow clock of ours had made its lease end
 * in the past. The answer has told the time by now. */
static bool came_too_late(const struct idem__pg_task *task)
{
    return task->request.ask == IDEM__PG_ASK_CLAIM &&
           !task->request.write.old_fence && task->base.rounds == 1 &&
           task->next.lease_end_ms <= task->base.now->store_ms;
}

/* The write was refused: another was faster, or holds the row in its open transaction. */
static idem__state refused(struct idem__pg_task *task)
{
    bool claimed = task->request.ask == IDEM__PG_ASK_CLAIM;

    if (claimed && task->request.row_code != 0) {
        return idem__pg_found(task);
    }
    if (came_too_late(task)) {
        return IDEM__STATE_DECIDE;
    }
    /* The record was not shown, or is gone by now, or the fence was not above the floor: a
     * look finds out. After the first round pause before it: the holder needs time. */
    return task->base.rounds == 1
               ? IDEM__STATE_LOOK
               : idem__flight_again(&task->base, IDEM__STATE_LOOK,
                                    "another transaction holds the record");
}

idem__state idem__pg_write_answered(struct idem__pg_task *task)
{
    const struct idem__pg_request *request = &task->request;
    bool is_refused = request->said == IDEM__SAID_OK && !request->applied;
    idem__state next =
        idem__flight_written(&task->base,
                             is_refused ? IDEM__SAID_REFUSED : request->said,
                             request->sent, &request->error);

    return next != IDEM__STATE_NONE ? next : refused(task);
}
