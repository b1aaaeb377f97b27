/* One op on its way through the table. */
#include "aws/dynamodb/task/task.h"

#include "aws/client/backoff.h"
#include "aws/dynamodb/task/commit.h"
#include "core/decide.h"
#include "core/error.h"

#include <assert.h>
#include <idem/store_parts.h>
#include <stdio.h>

enum {
    KEEP_BYTES = 16 * 1024, /* Memory that a task keeps for the next op. */
    ROUNDS_MAX = 16,
    TRIES_MAX = 12,
    AWAY_TRIES_MAX = 4, /* Not even a connection. */
    PAUSE_BASE_MS = 25,
    PAUSE_CAP_MS = 2000,
};

static void decide(struct idem__task *task, const struct idem_now *now);
static void put_head(struct idem__task *task, const struct idem_now *now);

/* ---- The end ---- */

void idem__task_done(struct idem__task *task)
{
    task->next = IDEM__TASK_DONE;
}

void idem__task_fail(struct idem__task *task, const struct idem_error *error)
{
    struct idem_op *op = task->op;

    if (task->settled) {
        memset(&op->error, 0, sizeof(op->error));
        idem__task_done(task);
        return;
    }
    op->error = *error;
    switch (error->code) {
    case IDEM_EUNAVAILABLE:
    case IDEM_EUNKNOWN:
        /* An op that only read, or wrote a part of a body, changed nothing. */
        op->error.code = task->ambiguous ? IDEM_EUNKNOWN : IDEM_EUNAVAILABLE;
        break;
    case IDEM_ECONFIG:
    case IDEM_EDENIED:
    case IDEM_ENOMEM:
        /* Once a copy may have been applied, "nothing was done" is not ours to
         * say. */
        op->error.code = task->ambiguous ? IDEM_EUNKNOWN : error->code;
        break;
    default:
        break;
    }
    idem__task_done(task);
}

void idem__task_fail_with(struct idem__task *task, int code, const char *text)
{
    struct idem_error error;

    (void)idem__error(&error, code, "%s", text);
    idem__task_fail(task, &error);
}

void idem__task_give_up(struct idem__task *task)
{
    idem__task_fail_with(task, IDEM_EUNAVAILABLE,
                         task->op->error.text[0] != '\0'
                             ? task->op->error.text
                             : "DynamoDB did not answer in time");
}

/* ---- Sending, and asking again ---- */

struct idem__buffer *idem__task_out(struct idem__task *task)
{
    idem__buffer_reset(&task->out, KEEP_BYTES);
    return &task->out;
}

void idem__task_send(struct idem__task *task, const char *target,
                     void (*then)(struct idem__task *task,
                                  const struct idem_now *now,
                                  struct idem__answer *answer))
{
    if (task->out.failed) {
        idem__task_fail_with(task, IDEM_ENOMEM, idem_error_text(IDEM_ENOMEM));
        return;
    }
    task->request.target = target;
    task->request.body = idem__buffer_slice(&task->out);
    task->then = then;
    task->next = IDEM__TASK_SEND;
}

static int64_t jitter(const struct idem__task *task)
{
    const struct idem_host *host = &task->env->host;
    uint64_t random = 0;

    (void)host->random(host->ctx, &random, sizeof(random));
    return idem__aws_backoff(task->tries, PAUSE_BASE_MS, PAUSE_CAP_MS, random);
}

static void pause_then(struct idem__task *task,
                       void (*again)(struct idem__task *task,
                                     const struct idem_now *now))
{
    task->pause_ms = jitter(task);
    task->again = again;
    task->next = IDEM__TASK_PAUSE;
}

void idem__task_retry(struct idem__task *task,
                      const struct idem__answer *answer,
                      void (*again)(struct idem__task *task,
                                    const struct idem_now *now))
{
    unsigned most = answer->sent ? TRIES_MAX : AWAY_TRIES_MAX;

    if (task->settled) {
        idem__task_done(task); /* A purge finds what is left. */
        return;
    }
    /* The obstacle, should the time be up. */
    task->op->error = answer->error;
    task->tries++;
    if (answer->said == IDEM__SAID_NEVER || task->tries >= most ||
        answer->error.code == IDEM_ENOMEM) {
        idem__task_fail(task, &answer->error);
        return;
    }
    pause_then(task, again);
}

void idem__task_busy(struct idem__task *task, bool progress, const char *what,
                     void (*again)(struct idem__task *task,
                                   const struct idem_now *now))
{
    struct idem__answer answer = {.said = IDEM__SAID_NOT_APPLIED, .sent = true};

    task->tries = progress ? 0 : task->tries_before;
    if (task->settled && progress) {
        pause_then(task, again);
        return;
    }
    (void)idem__error(&answer.error, IDEM_EUNAVAILABLE,
                      "DynamoDB is too busy to %s", what);
    idem__task_retry(task, &answer, again);
}

void idem__task_resume(struct idem__task *task, const struct idem_now *now)
{
    task->again(task, now);
}

void idem__task_answered(struct idem__task *task, const struct idem_now *now)
{
    struct idem__answer answer;

    idem__answer_read(&task->request, task->env->table.name, &answer);
    task->tries_before = task->tries;
    if (task->op->verb == IDEM_OP_PURGE) {
        idem__purge_bill(task, &answer);
    }
    if (answer.said == IDEM__SAID_OK || answer.said == IDEM__SAID_REFUSED) {
        task->tries = 0;
        memset(&task->op->error, 0, sizeof(task->op->error));
    }
    task->then(task, now, &answer);
    idem__answer_finish(&answer);
}

/* ---- What is there ---- */

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
    const struct idem__table_conf *table = &task->env->table;

    return table->layout == IDEM__LAYOUT_OWN
               ? idem__item_read(object, id, &task->found_memory, &task->found,
                                 ret_error)
               : idem__layout_read(table, object, id, &task->found_memory,
                                   &task->scratch, &task->found, ret_error);
}

/* Takes @object (NULL: none) as what is there, and decides on it. */
static void found(struct idem__task *task, json_object *object,
                  const struct idem_now *now)
{
    struct idem_error error;

    task->remembered = false;
    task->has_found = object != NULL;
    if (object != NULL &&
        idem__task_read(task, object, task->op->id, &error) != 0) {
        idem__task_fail(task, &error);
        return;
    }
    decide(task, now);
}

/* GetItem's answer for an item that does not exist: {} (NULL), and what it
 * cost. */
static bool says_nothing(json_object *body)
{
    int known = json_object_object_get_ex(body, "ConsumedCapacity", NULL);

    return body == NULL || json_object_object_length(body) == known;
}

static void looked(struct idem__task *task, const struct idem_now *now,
                   struct idem__answer *answer)
{
    json_object *item = NULL;
    bool there;

    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, idem__task_look);
        return;
    }
    there = json_object_object_get_ex(answer->body, "Item", &item);
    /* An answer that is not understood does not prove absence. */
    if (there ? item == NULL : !says_nothing(answer->body)) {
        idem__task_fail_with(
            task, IDEM_ECORRUPT,
            "DynamoDB: the answer has a form that is not its own");
        return;
    }
    found(task, item, now);
}

void idem__task_look(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__request_get(idem__task_out(task), &task->env->table, task->op->id,
                      task->op->key);
    idem__task_send(task, IDEM__TARGET("GetItem"), looked);
}

/* ---- Writing the head ---- */

static void remember(struct idem__task *task)
{
    const struct idem_record *record = &task->item.record;

    if (task->env->claims == NULL) {
        return;
    }
    if (record->status == IDEM_STATUS_IN_PROGRESS && !record->retry &&
        memcmp(record->nonce, task->op->nonce, sizeof(record->nonce)) == 0) {
        idem__claims_put(task->env->claims, &task->item,
                         idem__buffer_slice(&task->head));
    } else {
        idem__claims_forget(task->env->claims, record->id);
    }
}

/* Encodes the head that is to be written. False: the op failed. */
static bool encode(struct idem__task *task)
{
    size_t len;
    int rc = idem_record_encode(&task->item.record, task->env->scratch,
                                IDEM_HEAD_MAX, &len);

    if (rc == 0) {
        task->head.len = 0;
        idem__buffer_add(&task->head, task->env->scratch, len);
    }
    if (rc != 0 || task->head.failed) {
        rc = rc != 0 ? rc : IDEM_ENOMEM;
        idem__task_fail_with(task, rc, idem_error_text(rc));
        return false;
    }
    return true;
}

/* A claim that was made by a slow clock ends sooner in the store's time than its
 * owner counts; it is extended before the owner hears of it, whether the answer
 * came or the claim was read back. Of the four seconds between an owner's last deed
 * and a taker's first, one may go to clocks that are a little off. */
static bool claimed_too_short(const struct idem__task *task,
                              const struct idem_record *record,
                              const struct idem_now *now)
{
    enum {
        TOLERATED_MS = 1000
    };
    int64_t asked_ms = now->store_ms + now->store_err_ms -
                       (now->boot_ms - task->op->asked_boot_ms);

    return task->op->verb == IDEM_OP_BEGIN && task->op->commit == NULL &&
           task->decision.verdict == IDEM_STARTED &&
           record->lease_end_ms != IDEM_NEVER &&
           record->lease_end_ms - record->lease_ms + TOLERATED_MS < asked_ms;
}

/* Makes the claim that was found last as long as its owner counts. However this
 * ends, the claim was made. */
static void extend(struct idem__task *task, const struct idem_now *now)
{
    task->extending = true;
    task->ambiguous = true;
    task->item = task->found;
    idem__lease_extend(&task->item.record, task->item.record.lease_ms, now);
    idem__lease_extend(&task->given, task->given.lease_ms, now);
    if (encode(task)) {
        put_head(task, now);
    }
}

/* Takes what was written as what is there. False: the op failed. After a takeover
 * the item has texts of its predecessor, which stay where they were read. */
static bool find_written(struct idem__task *task)
{
    task->written.len = 0;
    idem__buffer_add(&task->written, task->head.base, task->head.len);
    if (task->written.failed) {
        idem__task_fail_with(task, IDEM_ENOMEM, idem_error_text(IDEM_ENOMEM));
        return false;
    }
    task->has_found = true;
    task->found = task->item;
    task->found.head = idem__buffer_slice(&task->written);
    return true;
}

/* A write of the caller's was refused, and so nothing was done: an attempt goes
 * on, a key is free. */
static void refuse_caller_write(struct idem__task *task)
{
    struct idem_decision *decision = &task->decision;
    bool begins = task->op->verb == IDEM_OP_BEGIN;

    task->op->commit->refused = task->caller_write;
    decision->change = IDEM_CHANGE_NONE;
    decision->verdict = begins ? IDEM_RELEASED : decision->verdict;
    (void)idem_verb_given(task->op, begins ? NULL : &task->found.record,
                          decision, &task->given);
    task->given.result.bytes = idem_bytes(NULL, 0);
    idem_verb_answer(task->op, decision, &task->given);
    idem__task_done(task);
}

static void wrote_head(struct idem__task *task, const struct idem_now *now,
                       struct idem__answer *answer)
{
    switch (answer->said) {
    case IDEM__SAID_OK:
        remember(task);
        if (!task->extending &&
            claimed_too_short(task, &task->item.record, now)) {
            if (task->env->table.layout != IDEM__LAYOUT_OWN) {
                task->ambiguous = true;
                idem__task_look(task,
                                now); /* The item that it is conditional on is
                                         read. */
            } else if (find_written(task)) {
                extend(task, now);
            }
            return;
        }
        if (task->op->verb == IDEM_OP_IMPORT) {
            task->op->u.import.added = true;
        }
        idem_verb_answer(task->op, &task->decision, &task->given);
        task->op->changed = true;
        if (task->transacts) {
            task->op->commit->committed = true;
        }
        idem__lifetime_settle(task, now);
        return;
    case IDEM__SAID_REFUSED:
        /* It may be the second copy that was. */
        task->ambiguous = task->ambiguous || task->request.sends > 1;
        if (task->env->claims != NULL && task->remembered) {
            idem__claims_forget(task->env->claims, task->op->id);
        }
        if (answer->item != NULL) {
            found(task, answer->item, now);
        } else {
            idem__task_look(task, now);
        }
        return;
    case IDEM__SAID_NOT_APPLIED:
        idem__task_retry(task, answer, put_head);
        return;
    case IDEM__SAID_UNKNOWN:
        task->ambiguous = true;
        idem__task_retry(task, answer, idem__task_look);
        return;
    case IDEM__SAID_NEVER:
        idem__task_fail(task, &answer->error);
        return;
    case IDEM__SAID_CALLER_WRITE:
        task->caller_write = answer->caller_write;
        (void)snprintf(task->op->commit->text, sizeof(task->op->commit->text),
                       "%s", answer->error.text);
        task->ambiguous = task->ambiguous || task->request.sends > 1;
        if (task->ambiguous) {
            idem__task_look(task, now); /* An earlier copy may be why. */
        } else {
            refuse_caller_write(task);
        }
        return;
    }
}

static void put_head(struct idem__task *task, const struct idem_now *now)
{
    const struct idem_slice *old = task->has_found ? &task->found.head : NULL;
    struct idem_slice head = idem__buffer_slice(&task->head);

    struct idem__buffer *out = idem__task_out(task);

    (void)now;
    if (task->transacts) {
        idem__request_transact(out, &task->env->table, &task->item, head, old,
                               task->op->commit->writes);
        idem__task_send(task, IDEM__TARGET("TransactWriteItems"), wrote_head);
        return;
    }
    idem__request_put(out, &task->env->table, &task->item, head, old);
    idem__task_send(task,
                    idem__layout_deletes(task->env->table.layout,
                                         &task->item.record)
                        ? IDEM__TARGET("DeleteItem")
                        : IDEM__TARGET("PutItem"),
                    wrote_head);
}

/* Bodies are written before the head says that they are there. */
void idem__task_change(struct idem__task *task, const struct idem_now *now)
{
    const struct idem_decision *decision = &task->decision;

    if (decision->change == IDEM_CHANGE_NONE &&
        claimed_too_short(task, &task->found.record, now)) {
        extend(task, now);
        return;
    }
    if (decision->change == IDEM_CHANGE_NONE) {
        idem_verb_answer(task->op, decision, &task->given);
        task->op->changed = task->ambiguous;
        idem__task_done(task);
        return;
    }
    if (!idem__bodies_store(task, now)) {
        put_head(task, now);
    }
}

/* ---- Deciding ---- */

/* An import whose answer was lost finds the record that it added. */
static void own_import(struct idem__task *task)
{
    const struct idem_record *ours = task->op->u.import.record;

    if (task->op->verb == IDEM_OP_IMPORT && task->ambiguous &&
        task->has_found &&
        memcmp(task->found.record.nonce, ours->nonce, sizeof(ours->nonce)) ==
            0) {
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

    if (task->env->table.layout == IDEM__LAYOUT_OWN ||
        idem__layout_fits(&task->item, task->head.len, &error) == 0) {
        return true;
    }
    idem__task_fail(task, &error);
    return false;
}

static void decide(struct idem__task *task, const struct idem_now *now)
{
    const struct idem_record *there =
        task->has_found ? &task->found.record : NULL;
    struct idem_decision *decision = &task->decision;
    bool wants;

    if (deleted_before(task)) {
        idem_verb_answer(task->op, decision, &task->given);
        task->op->changed = true;
        idem__task_done(task);
        return;
    }
    if (task->rounds++ == ROUNDS_MAX) {
        idem__task_fail_with(
            task, IDEM_EUNAVAILABLE,
            "DynamoDB: the record changes faster than it can be read");
        return;
    }
    task->extending = false;
    idem_verb_decide(there, task->op, now, decision);
    /* A remembered item is good for a write that is conditional on it, and for
     * no answer. */
    if ((decision->code != 0 || decision->change == IDEM_CHANGE_NONE) &&
        task->remembered) {
        idem__task_look(task, now);
        return;
    }
    if (task->op->commit != NULL && decision->code == 0) {
        idem__commit_decide(task->op, task->has_found ? &task->found : NULL,
                            now, decision);
    }
    if (decision->code != 0) {
        idem__task_fail_with(task, decision->code, decision->text);
        return;
    }
    task->transacts = idem__commit_transacts(task->op, decision);
    if (task->caller_write != 0 && task->transacts) {
        refuse_caller_write(task);
        return;
    }
    own_import(task);
    if (task->op->verb == IDEM_OP_BEGIN) {
        const struct idem_record *claim =
            decision->change == IDEM_CHANGE_NONE ? there : &decision->next;

        /* One that is ended with its claim leaves none to give back. */
        task->op->fence =
            decision->verdict == IDEM_STARTED && task->op->commit == NULL
                ? claim->fence
                : 0;
    }
    wants = idem_verb_given(task->op, there, decision, &task->given);
    task->result.loading = false;
    task->input.loading = false;
    if (decision->change != IDEM_CHANGE_NONE) {
        task->item.record = decision->next;
        if (!encode(task)) {
            return;
        }
        task->item.has_writes = task->transacts;
        if (task->transacts) {
            memcpy(task->item.writes, task->op->commit->digest, IDEM__TAG_LEN);
        }
        idem__bodies_place(task);
        if (!fits(task)) {
            return;
        }
    }
    if (wants) {
        idem__bodies_load(task, now);
    } else {
        idem__task_change(task, now);
    }
}

/* ---- The life of a task ---- */

void idem__task_no_clock(struct idem__task *task)
{
    if (task->next == IDEM__TASK_SEND && task->then == wrote_head &&
        task->request.outcome != IDEM__AWS_NOT_SENT) {
        task->ambiguous = true; /* Its answer is not looked at. */
    }
    idem__task_fail_with(task, IDEM_EUNAVAILABLE, "the clock does not answer");
}

void idem__task_init(struct idem__task *task, const struct idem__task_env *env)
{
    task->env = env;
    task->result.kind = 'r';
    task->input.kind = 'i';
}

/* A waiter, a claim that is probably refused, and one whose input would have to
 * be written before it can be refused. */
static bool looks_first(const struct idem_op *op)
{
    return op->u.begin.join_fence != 0 ||
           (op->u.begin.flags & IDEM_LIKELY_REPLAY) != 0 ||
           op->u.begin.input.len > IDEM__UNIT;
}

void idem__task_start(struct idem__task *task, struct idem_op *op,
                      const struct idem_now *now)
{
    struct idem_error error;

    task->op = op;
    op->changed = false;
    task->tries = 0;
    task->rounds = 0;
    task->ambiguous = false;
    task->result.written = false;
    task->input.written = false;
    task->has_found = false;
    task->remembered = false;
    task->looked_again = false;
    task->settled = false;
    task->keeping = NULL;
    memset(&task->kept, 0, sizeof(task->kept));
    memset(&task->old_result, 0, sizeof(task->old_result));
    memset(&task->old_input, 0, sizeof(task->old_input));
    task->keep = IDEM__KEEP_AS_IT_IS;
    task->transacts = false;
    task->caller_write = 0;
    if (idem__layout_check(&task->env->table, op, &error) != 0) {
        idem__task_fail(task, &error);
        return;
    }
    if (op->commit != NULL && idem__commit_check(op->commit, &op->error) != 0) {
        idem__task_done(task);
        return;
    }
    switch (op->verb) {
    case IDEM_OP_BEGIN:
        if (looks_first(op)) {
            idem__task_look(task, now);
        } else {
            decide(task, now);
        }
        return;
    case IDEM_OP_IMPORT:
        decide(task, now);
        return;
    case IDEM_OP_END:
    case IDEM_OP_RENEW:
    case IDEM_OP_EXPIRE:
        if (task->env->claims != NULL &&
            idem__claims_get(task->env->claims, op, &task->found_memory,
                             &task->found)) {
            task->has_found = true;
            task->remembered = true;
            decide(task, now);
        } else {
            idem__task_look(task, now);
        }
        return;
    case IDEM_OP_GET:
    case IDEM_OP_RESOLVE:
        idem__task_look(task, now);
        return;
    case IDEM_OP_LIST:
        idem__walk_list(task, now);
        return;
    case IDEM_OP_PURGE:
        idem__walk_purge(task, now);
        return;
    case IDEM_OP_LIMIT:
        idem__limit_start(task, now);
        return;
    case IDEM_OP_COUNT:
        break;
    }
    assert(!"an op that no table answers");
}

static void for_all_buffers(struct idem__task *task,
                            void (*apply)(struct idem__buffer *buffer))
{
    apply(&task->found_memory);
    apply(&task->head);
    apply(&task->written);
    apply(&task->result.stored);
    apply(&task->result.bytes);
    apply(&task->input.stored);
    apply(&task->input.bytes);
    apply(&task->out);
}

static void shrink(struct idem__buffer *buffer)
{
    idem__buffer_reset(buffer, 2 * IDEM_HEAD_MAX);
}

void idem__task_reset(struct idem__task *task)
{
    for_all_buffers(task, shrink);
    if (task->request.answer_cap > KEEP_BYTES) {
        idem__aws_request_finish(&task->request);
    }
    task->op = NULL;
    task->ambiguous = false;
    task->settled = false;
}

void idem__task_free(struct idem__task *task)
{
    for_all_buffers(task, idem__buffer_free);
    idem__scratch_free(&task->scratch);
    idem__walk_free(task->walk);
    idem__limiter_free(task->limiter);
    idem__aws_request_finish(&task->request);
}
