/* LOOK, DECIDE and LOAD: what is there, what is answered, and what is written. The rules
 * are those of all stores (core/decide.h). */
#include "base/heap.h"
#include "contract/parts.h"
#include "core/error.h"
#include "core/slice.h"
#include "postgres/task.h"
#include "store/remote/own.h"
#include "store/remote/pending.h"

enum {
    /* Decisions of one op. Each but the first means that another changed the record
     * between our reading and our write. */
    ROUNDS_MAX = 64,
    PAUSE_FROM = 3, /* The first of them are taken at once. */
};

/* ---- Looking ---- */

bool idem__pg_found(struct idem__pg_task *task)
{
    const struct idem__pg_request *request = &task->request;
    const struct idem_op *op = task->op;

    task->remembered = false;
    task->has_found = request->row_code == 1;
    if (request->row_code < 0) {
        (void)idem__pg_fail(task, &request->error);
        return false;
    }
    if (!task->has_found) {
        return true;
    }
    task->found = request->row;
    if (!idem__slice_equal(task->found.record.scope, op->scope) ||
        !idem__slice_equal(task->found.record.key, op->key)) {
        (void)idem__pg_fail_with(task, IDEM_ECORRUPT,
                                 "the record cannot be trusted: its scope and "
                                 "key do not match it");
        return false;
    }
    if (idem__pg_row_keep(&task->found, &task->found_memory) != 0) {
        (void)idem__pg_fail_with(task, IDEM_ENOMEM,
                                 idem_error_text(IDEM_ENOMEM));
        return false;
    }
    return true;
}

enum idem__pg_where_to idem__pg_look(struct idem__pg_task *task,
                                     const struct idem_now *now)
{
    (void)now;
    (void)idem__pg_ask(task, IDEM__PG_ASK_LOOK);
    return IDEM__PG_TO_LOOK;
}

enum idem__pg_where_to idem__pg_look_answered(struct idem__pg_task *task,
                                              const struct idem_now *now)
{
    (void)now;
    if (task->request.said != IDEM__PG_OK) {
        return idem__pg_retry(task, IDEM__PG_TO_LOOK);
    }
    return idem__pg_found(task) ? IDEM__PG_TO_DECIDE : IDEM__PG_TO_DONE;
}

/* ---- Deciding ---- */

/* Makes the record that is to be written. False: the op failed. */
static bool make_next(struct idem__pg_task *task)
{
    size_t len;
    int rc;

    task->next = task->decision.next;
    memcpy(task->next.id, task->op->id, IDEM_ID_LEN);
    rc = idem__record_encode(&task->next, task->env->scratch, IDEM_HEAD_MAX,
                             &len);
    if (rc == 0) {
        task->head.len = 0;
        idem__buffer_add(&task->head, task->env->scratch, len);
        rc = task->head.failed ? IDEM_ENOMEM : 0;
    }
    if (rc != 0) {
        (void)idem__pg_fail_with(task, rc, idem_error_text(rc));
    }
    return rc == 0;
}

/* The op's commit gets the head: one block of memory. */
static bool give_head(struct idem__pg_task *task)
{
    struct idem_slice head = idem__buffer_slice(&task->head);
    struct idem_commit *commit = idem__alloc(sizeof(*commit) + head.len);

    if (commit == NULL) {
        return false;
    }
    *commit = *task->op->commit;
    memcpy(commit + 1, head.base, head.len);
    commit->writes = idem_bytes(commit + 1, head.len);
    idem__free(task->op->commit);
    task->op->commit = commit;
    return true;
}

/* The caller writes the end of its attempt itself, over a record in progress alone: what
 * people were told of one that its lease has ended may not change by an effect that they
 * do not see. */
static enum idem__pg_where_to answer_for_caller(struct idem__pg_task *task)
{
    if (task->decision.change == IDEM_CHANGE_NONE) {
        return idem__pg_fail_with(task, IDEM_ELOST,
                                  "the attempt was completed before, with this "
                                  "outcome: it is on record");
    }
    if (task->found.record.status != IDEM_STATUS_IN_PROGRESS) {
        return idem__pg_fail_with(
            task, IDEM_ELOST,
            "the lease of the attempt ended, and its record "
            "is no longer in progress");
    }
    if (!give_head(task)) {
        return idem__pg_fail_with(task, IDEM_ENOMEM,
                                  idem_error_text(IDEM_ENOMEM));
    }
    idem__verb_answer(task->op, &task->decision, &task->given);
    return IDEM__PG_TO_DONE;
}

enum idem__pg_where_to idem__pg_decide(struct idem__pg_task *task,
                                       const struct idem_now *now)
{
    const struct idem_record *there =
        task->has_found ? &task->found.record : NULL;
    struct idem_decision *decision = &task->decision;
    bool wants;

    if (task->rounds++ == ROUNDS_MAX) {
        return idem__pg_fail_with(
            task, IDEM_EUNAVAILABLE,
            "PostgreSQL: the record changes faster than it can be read");
    }
    task->extending = false;
    idem__verb_decide(there, task->op, now, decision);
    /* What is remembered is good for a write that is conditional on it, and for no
     * answer: it may be long gone. */
    if ((decision->code != 0 || decision->change == IDEM_CHANGE_NONE) &&
        task->remembered) {
        return IDEM__PG_TO_LOOK;
    }
    if ((decision->code != 0 || decision->change == IDEM_CHANGE_NONE) &&
        task->has_found && idem__pending_holds(task->op, task->found.head)) {
        return idem__pg_again(task, IDEM__PG_TO_LOOK,
                              "a write was not answered, and may be done yet");
    }
    if (decision->code == IDEM_ECORRUPT && now->fence_floor >= INT64_MAX) {
        return idem__pg_fail_with(
            task, IDEM_ECORRUPT,
            "nothing can begin: fence_floor in the table idem_store, up to "
            "which fences count as purged, leaves none above it; idem store "
            "check prints the SQL that mends it");
    }
    if (decision->code != 0) {
        return idem__pg_fail_with(task, decision->code, decision->text);
    }
    if (task->ambiguous && there != NULL && idem__own_import(task->op, there)) {
        task->op->u.import.added = true;
    }
    idem__own_claim_note(task->op, there, decision);
    wants = idem__verb_given(task->op, there, decision, &task->given);
    if (decision->change != IDEM_CHANGE_NONE && !make_next(task)) {
        return IDEM__PG_TO_DONE;
    }
    if (task->op->commit != NULL) {
        return answer_for_caller(task);
    }
    return wants ? IDEM__PG_TO_LOAD : IDEM__PG_TO_ACT;
}

/* ---- Bodies ---- */

/* Takes the bodies of found, once they are in it. Returns the next state. */
static enum idem__pg_where_to take_bodies(struct idem__pg_task *task)
{
    struct idem_record bodies = task->found.record;
    struct idem_error error;

    bodies.result.bytes = task->found.result;
    bodies.input = task->found.input;
    if (idem__verb_check_bodies(&bodies, &error) != 0) {
        return idem__pg_fail(task, &error);
    }
    idem__verb_take_bodies(&task->decision, &bodies, &task->given);
    return IDEM__PG_TO_ACT;
}

enum idem__pg_where_to idem__pg_load(struct idem__pg_task *task,
                                     const struct idem_now *now)
{
    (void)now;
    if (task->found.has_bodies) {
        return take_bodies(task);
    }
    (void)idem__pg_ask(task, IDEM__PG_ASK_LOAD);
    return IDEM__PG_TO_LOAD;
}

enum idem__pg_where_to idem__pg_load_answered(struct idem__pg_task *task,
                                              const struct idem_now *now)
{
    const PGresult *result = task->request.result;
    struct idem_slice tag;

    (void)now;
    if (task->request.said != IDEM__PG_OK) {
        return idem__pg_retry(task, IDEM__PG_TO_LOAD);
    }
    if (!idem__pg_bytes(result, 0, 0, &tag) || tag.len != IDEM__PG_TAG_LEN ||
        memcmp(tag.base, task->found.tag, IDEM__PG_TAG_LEN) != 0) {
        return IDEM__PG_TO_LOOK; /* It has changed since. */
    }
    (void)idem__pg_bytes(result, 0, 1, &task->found.result);
    (void)idem__pg_bytes(result, 0, 2, &task->found.input);
    task->found.has_bodies = true;
    if (idem__pg_row_keep(&task->found, &task->loaded) != 0) {
        return idem__pg_fail_with(task, IDEM_ENOMEM,
                                  idem_error_text(IDEM_ENOMEM));
    }
    return IDEM__PG_TO_DECIDE;
}
