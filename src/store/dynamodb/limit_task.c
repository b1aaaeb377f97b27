/* A rate limit on its way through the table; see limit_request.h for what lies
 * there.
 *
 * All of these writes may be sent again without a look: each is conditional on
 * there being no entry of the request, and whoever finds one is shown it. That is
 * how an unanswered write is read back, and how a retry hears what the first try
 * was told. */
#include "aws/error.h"
#include "base/heap.h"
#include "core/error.h"
#include "store/dynamodb/limit_known.h"
#include "store/dynamodb/task.h"

enum {
    ROUNDS_MAX = 64,
    BOUNDS_MS = 1000, /* How old a count may be that is given as remaining. */
};

struct idem__limiter {
    struct idem__limit_decision decision;
    uint64_t takes[IDEM__LIMIT_SHARDS_MAX];
    uint64_t shares[IDEM__LIMIT_SHARDS_MAX];
    /* The bounds that the transaction was planned with. Once it is applied at least
     * that and what it took was taken from a shard. By then the bounds may have been
     * raised by a reading that saw it already: to add it twice would be too much. */
    uint64_t used[IDEM__LIMIT_SHARDS_MAX];
    unsigned spread; /* Shards that were in the way of others. */
    bool marks;      /* The transaction says that there are shards. */
    bool saw_small;  /* The item of small limits has no entry of the request. */

    /* Of a small limit: what its item says, and what a greater one took. */
    struct idem__limit_state own;
    bool is_beside;
    uint64_t others_used;
};

void idem__limiter_free(struct idem__limiter *limiter)
{
    idem__free(limiter);
}

static void corrupt(struct idem__task *task)
{
    idem__task_fail_with(
        task, IDEM_ECORRUPT,
        "DynamoDB: what was counted in this window has a form that is not ours");
}

/* Decides on what was found. False: the op failed. */
static bool settle(struct idem__task *task,
                   const struct idem__limit_state *found,
                   const struct idem_now *now)
{
    struct idem__limit_decision *decision = &task->limiter->decision;

    if (task->rounds++ == ROUNDS_MAX) {
        idem__task_fail_with(
            task, IDEM_EUNAVAILABLE,
            "DynamoDB: the count changes faster than it can be read");
        return false;
    }
    idem__limit_decide(&task->op->u.limit.limit, found, now, decision);
    if (decision->code != 0) {
        idem__task_fail_with(task, decision->code, decision->text);
        return false;
    }
    return true;
}

static void answer_with(struct idem__task *task, bool changed)
{
    task->op->u.limit.answer = task->limiter->decision.limited;
    task->op->changed = changed;
    idem__task_done(task);
}

static json_object *item_of(json_object *body)
{
    json_object *item = NULL;

    (void)json_object_object_get_ex(body, "Item", &item);
    return json_object_is_type(item, json_type_object) ? item : NULL;
}

static bool has_code(json_object *reason, const char *name)
{
    json_object *code = NULL;

    return json_object_is_type(reason, json_type_object) &&
           json_object_object_get_ex(reason, "Code", &code) &&
           json_object_is_type(code, json_type_string) &&
           strcmp(json_object_get_string(code), name) == 0;
}

static json_object *reason_at(json_object *reasons, size_t i)
{
    return reasons != NULL ? json_object_array_get_idx(reasons, i) : NULL;
}

/* Why a transaction was cancelled, or NULL: the answer was another one. */
static json_object *reasons_of(const struct idem__aws_request *request,
                               json_object **ret_body)
{
    struct idem_slice text = {request->answer, request->answer_len};
    struct idem__aws_error error;
    json_object *reasons = NULL;
    int rc;

    *ret_body = NULL;
    if (request->outcome != IDEM__AWS_ANSWERED || request->status != 400) {
        return NULL;
    }
    *ret_body = idem__json_parse(text, &rc);
    if (*ret_body == NULL) {
        return NULL;
    }
    idem__aws_error_read(request->status, request->error_type, *ret_body,
                         &error);
    if (!idem__aws_error_is(&error, "TransactionCanceledException") ||
        !json_object_object_get_ex(*ret_body, "CancellationReasons",
                                   &reasons) ||
        !json_object_is_type(reasons, json_type_array)) {
        return NULL;
    }
    return reasons;
}

/* ---- Small limits ---- */

static void admit(struct idem__task *task, const struct idem_now *now);
static void refuse(struct idem__task *task, const struct idem_now *now);
static void look(struct idem__task *task, const struct idem_now *now);
static void look_at_all(struct idem__task *task, const struct idem_now *now);
static void write_beside(struct idem__task *task);

static struct idem__limit_bounds *bounds_of(struct idem__task *task)
{
    return idem__limit_known_of(task->env->limits, task->op);
}

/* What was counted by a small limit and by others, and what follows. */
static void decide_small(struct idem__task *task, const struct idem_now *now)
{
    const struct idem__limiter *limiter = task->limiter;
    const struct idem__limit_decision *decision = &limiter->decision;
    struct idem__limit_state found = limiter->own;

    if (limiter->is_beside) {
        found.has_window = true;
        found.used += limiter->others_used;
    }
    if (!settle(task, &found, now)) {
        return;
    }
    if (!decision->remember) {
        answer_with(task, /* changed= */ false);
    } else if (limiter->is_beside) {
        write_beside(task);
    } else if (decision->limited.admitted) {
        admit(task, now);
    } else {
        refuse(task, now);
    }
}

/* What a window's item says, and what follows. Where a greater limit counted, too,
 * its counts and the request's item are looked at. */
static void found_window(struct idem__task *task, json_object *item,
                         const struct idem_now *now)
{
    struct idem__limiter *limiter = task->limiter;
    bool big;

    if (idem__limit_read_window(item, task->op, &limiter->own, &big) != 0) {
        corrupt(task);
    } else if (big && !limiter->own.has_entry) {
        look_at_all(task, now);
    } else {
        decide_small(task, now);
    }
}

/* The items that a reading of several found; NULL: none. */
static json_object *items_of(const struct idem__task *task, json_object *body)
{
    json_object *list = idem__task_under_table(task, body, "Responses");

    return json_object_is_type(list, json_type_array) ? list : NULL;
}

/* One of all items of a window, or the request's. 0 or IDEM_ECORRUPT. */
static int add_item(struct idem__task *task, json_object *item,
                    struct idem__limit_state *ret_entry)
{
    struct idem__limiter *limiter = task->limiter;
    const struct idem_op *op = task->op;
    uint64_t refusals;
    uint64_t used;
    bool big;
    int rc;

    if (idem__limit_is_item(item, op->u.limit.window)) {
        return idem__limit_read_window(item, op, &limiter->own, &big);
    }
    if (idem__limit_is_item(item, op->u.limit.request)) {
        return idem__limit_read_entry(item, ret_entry);
    }
    if (idem__limit_shard_of(item) < 0) {
        return IDEM_ECORRUPT;
    }
    rc = idem__limit_read_shard(item, &used, &refusals);
    limiter->others_used += rc == 0 ? used : 0;
    return rc;
}

/* A key that was left out counts for nothing: then all are read again. */
static void looked_at_all(struct idem__task *task, const struct idem_now *now,
                          struct idem__answer *answer)
{
    struct idem__limiter *limiter = task->limiter;
    struct idem__limit_state entry = {.has_entry = false};
    json_object *list;
    size_t n;
    size_t i;

    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, look_at_all);
        return;
    }
    if (idem__task_under_table(task, answer->body, "UnprocessedKeys") != NULL) {
        idem__task_busy(task, false, "read the count", look_at_all);
        return;
    }
    memset(&limiter->own, 0, sizeof(limiter->own));
    limiter->is_beside = true;
    limiter->others_used = 0;
    list = items_of(task, answer->body);
    n = list == NULL ? 0 : json_object_array_length(list);
    for (i = 0; i < n; i++) {
        if (add_item(task, json_object_array_get_idx(list, i), &entry) != 0) {
            corrupt(task);
            return;
        }
    }
    bounds_of(task)->is_marked = true; /* The next begins with this. */
    if (entry.has_entry) {
        limiter->own = entry;
    }
    decide_small(task, now);
}

static void look_at_all(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__limit_request_all(idem__task_out(task), &task->env->table, task->op);
    idem__task_send(task, IDEM__TARGET("BatchGetItem"), looked_at_all);
}

static void looked(struct idem__task *task, const struct idem_now *now,
                   struct idem__answer *answer)
{
    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, look);
        return;
    }
    found_window(task, item_of(answer->body), now);
}

static void look(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__limit_request_get(idem__task_out(task), &task->env->table,
                            task->op->u.limit.window);
    idem__task_send(task, IDEM__TARGET("GetItem"), looked);
}

/* What came of an update. True: it was applied. */
static bool was_updated(struct idem__task *task, struct idem__answer *answer,
                        void (*again)(struct idem__task *task,
                                      const struct idem_now *now),
                        const struct idem_now *now)
{
    switch (answer->said) {
    case IDEM__SAID_OK:
        return true;
    case IDEM__SAID_REFUSED:
        if (answer->item != NULL) {
            found_window(task, answer->item, now);
        } else {
            look(task, now);
        }
        return false;
    case IDEM__SAID_UNKNOWN:
        task->maybe = true;
        break;
    default:
        break;
    }
    idem__task_retry(task, answer, again);
    return false;
}

/* The count after an update is what the service says it is. */
static void admitted(struct idem__task *task, const struct idem_now *now,
                     struct idem__answer *answer)
{
    struct idem_limited *limited = &task->limiter->decision.limited;
    json_object *item = NULL;
    struct idem__limit_state state;
    bool big;

    if (!was_updated(task, answer, admit, now)) {
        return;
    }
    (void)json_object_object_get_ex(answer->body, "Attributes", &item);
    if (idem__limit_read_window(item, task->op, &state, &big) != 0 ||
        !state.has_entry || state.entry < 0 ||
        (uint64_t)state.entry >= task->op->u.limit.limit.max) {
        /* It was applied, and can be asked for again. */
        task->maybe = true;
        idem__task_fail_with(
            task, IDEM_EUNKNOWN,
            "DynamoDB: the answer has a form that is not its own");
        return;
    }
    limited->admitted = true;
    limited->repeated = false;
    limited->remaining = (uint64_t)state.entry;
    answer_with(task, /* changed= */ true);
}

static void admit(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__limit_request_admit(idem__task_out(task), &task->env->table,
                              task->op);
    idem__task_send(task, IDEM__TARGET("UpdateItem"), admitted);
}

static void refused(struct idem__task *task, const struct idem_now *now,
                    struct idem__answer *answer)
{
    if (was_updated(task, answer, refuse, now)) {
        answer_with(task, /* changed= */ true);
    }
}

static void refuse(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__limit_request_refuse(idem__task_out(task), &task->env->table,
                               task->op, &task->limiter->decision);
    idem__task_send(task, IDEM__TARGET("UpdateItem"), refused);
}

/* ---- Small limits beside greater ones ---- */

static void found_entry(struct idem__task *task, json_object *item,
                        const struct idem_now *now);

static void wrote_beside(struct idem__task *task, const struct idem_now *now,
                         struct idem__answer *answer)
{
    json_object *body;
    json_object *reasons = reasons_of(&task->request, &body);
    json_object *first = reason_at(reasons, 0);
    json_object *entry = item_of(first);

    if (reasons == NULL && answer->said == IDEM__SAID_OK) {
        answer_with(task, /* changed= */ true);
    } else if (reasons == NULL) {
        task->maybe = task->maybe || answer->said == IDEM__SAID_UNKNOWN;
        idem__task_retry(task, answer, look_at_all);
    } else if (has_code(first, "ConditionalCheckFailed") && entry != NULL) {
        memset(&task->op->error, 0, sizeof(task->op->error));
        found_entry(task, entry, now);
    } else {
        /* Another request was counted meanwhile, or is being counted. */
        idem__task_busy(task,
                        has_code(reason_at(reasons, 1),
                                 "ConditionalCheckFailed"),
                        "count the request", look_at_all);
    }
    (void)json_object_put(body);
}

static void write_beside(struct idem__task *task)
{
    idem__limit_request_beside(idem__task_out(task), &task->env->table,
                               task->op, &task->limiter->own,
                               &task->limiter->decision);
    idem__task_send(task, IDEM__TARGET("TransactWriteItems"), wrote_beside);
}

/* ---- Large limits ---- */

static void plan(struct idem__task *task, const struct idem_now *now);
static void look_for_entry(struct idem__task *task, const struct idem_now *now);
static void read_shards(struct idem__task *task, const struct idem_now *now);

static bool is_approximate(const struct idem__task *task)
{
    return (task->op->u.limit.limit.flags & IDEM_LIMIT_APPROXIMATE) != 0;
}

/* The request's item, which is there. */
static void found_entry(struct idem__task *task, json_object *item,
                        const struct idem_now *now)
{
    struct idem__limit_state found;

    if (idem__limit_read_entry(item, &found) != 0) {
        corrupt(task);
    } else if (settle(task, &found, now)) {
        answer_with(task, /* changed= */ false);
    }
}

/* What the item of small limits says, with an entry of the request or without. */
static void found_small(struct idem__task *task, json_object *item,
                        const struct idem_now *now)
{
    struct idem__limit_state small;
    bool big;

    if (idem__limit_read_window(item, task->op, &small, &big) != 0) {
        corrupt(task);
    } else if (small.has_entry) {
        if (settle(task, &small, now)) {
            answer_with(task, /* changed= */ false);
        }
    } else {
        idem__limit_bounds_see(bounds_of(task), &small, big);
        task->limiter->saw_small = true;
        plan(task, now);
    }
}

static void look_at_small(struct idem__task *task, const struct idem_now *now);

static void looked_at_small(struct idem__task *task, const struct idem_now *now,
                            struct idem__answer *answer)
{
    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, look_at_small);
    } else {
        found_small(task, item_of(answer->body), now);
    }
}

static void look_at_small(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__limit_request_get(idem__task_out(task), &task->env->table,
                            task->op->u.limit.window);
    idem__task_send(task, IDEM__TARGET("GetItem"), looked_at_small);
}

/* Why the last part of a transaction failed, which marks the window. NULL: it had
 * none. */
static json_object *mark_of(const struct idem__limiter *limiter,
                            json_object *reasons)
{
    size_t at = 1;
    unsigned i;

    for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        at += limiter->takes[i] > 0;
    }
    at += !limiter->decision.limited.admitted;
    return limiter->marks ? reason_at(reasons, at) : NULL;
}

/* Learns from the shards that stood in the way. False: none did. */
static bool learn(struct idem__task *task, json_object *reasons)
{
    const struct idem__limiter *limiter = task->limiter;
    struct idem__limit_bounds *bounds = bounds_of(task);
    bool learnt = false;
    size_t at = 1;
    unsigned i;

    for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        json_object *reason;
        json_object *code = NULL;
        uint64_t beyond = limiter->shares[i] - limiter->takes[i] + 1;
        uint64_t used;
        uint64_t refusals;

        if (limiter->takes[i] == 0) {
            continue;
        }
        reason = json_object_array_get_idx(reasons, at++);
        (void)json_object_object_get_ex(reason, "Code", &code);
        if (code == NULL || strcmp(json_object_get_string(code),
                                   "ConditionalCheckFailed") != 0) {
            continue;
        }
        learnt = true;
        if (item_of(reason) == NULL ||
            idem__limit_read_shard(item_of(reason), &used, &refusals) != 0) {
            used = beyond;
        }
        idem__limit_bounds_raise(bounds, i, used);
    }
    return learnt;
}

/* Nothing was applied. */
static void cancelled(struct idem__task *task, json_object *reasons,
                      const struct idem_now *now)
{
    struct idem__answer busy = {
        .said = IDEM__SAID_NOT_APPLIED,
        .sent = true,
    };
    json_object *first = json_object_array_get_idx(reasons, 0);

    /* What stood in the way before does not any more. */
    memset(&task->op->error, 0, sizeof(task->op->error));
    if (has_code(first, "ConditionalCheckFailed")) {
        task->tries = 0;
        if (item_of(first) != NULL) {
            found_entry(task, item_of(first), now);
        } else {
            look_for_entry(task, now);
        }
        return;
    }
    if (has_code(mark_of(task->limiter, reasons), "ConditionalCheckFailed")) {
        task->tries = 0;
        look_at_small(task, now); /* There is an entry of the request. */
        return;
    }
    if (!task->limiter->decision.limited.admitted &&
        has_code(json_object_array_get_idx(reasons, 1),
                 "ConditionalCheckFailed")) {
        bounds_of(task)->refusals = IDEM_LIMIT_REFUSALS;
        plan(task, now);
        return;
    }
    if (learn(task, reasons)) {
        task->tries = 0;
        plan(task, now);
        return;
    }
    if (has_code(mark_of(task->limiter, reasons), "TransactionConflict")) {
        /* Another one marks the window, which a reading will show. */
        bounds_of(task)->read_boot_ms = now->boot_ms - BOUNDS_MS;
    }
    /* Another transaction, or too many of them. */
    task->tries = task->vain;
    task->limiter->spread++;
    (void)idem__error(&busy.error, IDEM_EUNAVAILABLE,
                      "DynamoDB is too busy to count the request");
    idem__task_retry(task, &busy, plan);
}

/* The request is counted, or its refusal remembered. */
static void counted(struct idem__task *task)
{
    struct idem__limit_bounds *bounds = bounds_of(task);
    const struct idem__limiter *limiter = task->limiter;
    unsigned i;

    for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        idem__limit_bounds_raise(bounds, i,
                                 limiter->used[i] + limiter->takes[i]);
    }
    bounds->refusals += !limiter->decision.limited.admitted;
    bounds->is_marked = bounds->is_marked || limiter->marks;
    answer_with(task, /* changed= */ true);
}

static void transacted(struct idem__task *task, const struct idem_now *now,
                       struct idem__answer *answer)
{
    json_object *body;
    json_object *reasons = reasons_of(&task->request, &body);

    if (reasons != NULL) {
        cancelled(task, reasons, now);
    } else if (answer->said == IDEM__SAID_OK) {
        counted(task);
    } else {
        task->maybe = task->maybe || answer->said == IDEM__SAID_UNKNOWN;
        idem__task_retry(task, answer, plan);
    }
    (void)json_object_put(body);
}

static void put(struct idem__task *task, const struct idem_now *now,
                struct idem__answer *answer)
{
    if (answer->said == IDEM__SAID_REFUSED && answer->item != NULL) {
        found_entry(task, answer->item, now);
    } else if (answer->said == IDEM__SAID_REFUSED) {
        look_for_entry(task, now);
    } else if (answer->said == IDEM__SAID_OK) {
        counted(task);
    } else {
        task->maybe = task->maybe || answer->said == IDEM__SAID_UNKNOWN;
        idem__task_retry(task, answer, plan);
    }
}

static void send_request(struct idem__task *task)
{
    const struct idem__limiter *limiter = task->limiter;
    struct idem__buffer *out = idem__task_out(task);

    memcpy(task->limiter->used, bounds_of(task)->used,
           sizeof(task->limiter->used));
    if (is_approximate(task)) {
        idem__limit_request_put(out, &task->env->table, task->op,
                                &limiter->decision);
        idem__task_send(task, IDEM__TARGET("PutItem"), put);
    } else {
        task->limiter->marks = !bounds_of(task)->is_marked;
        idem__limit_request_transact(out, &task->env->table, task->op,
                                     &limiter->decision, limiter->shares,
                                     limiter->takes, limiter->marks);
        idem__task_send(task, IDEM__TARGET("TransactWriteItems"), transacted);
    }
}

/* What is known of the window, and its shares for this max. */
static struct idem__limit_state known_state(struct idem__task *task)
{
    const struct idem_limit_request *limit = &task->op->u.limit.limit;
    const struct idem__limit_bounds *bounds = bounds_of(task);
    struct idem__limiter *limiter = task->limiter;
    struct idem__limit_state state = {
        .has_window = true,
        .refusals = bounds->refusals,
    };

    idem__limit_bounds_shares(bounds, limit, limiter->shares);
    state.used = limit->max - idem__limit_bounds_left(bounds, limiter->shares);
    return state;
}

/* Nothing is known of the request, and there is not enough left. */
static void not_enough(struct idem__task *task, const struct idem_now *now)
{
    struct idem__limit_state found = known_state(task);

    if (!settle(task, &found, now)) {
        return;
    }
    if (task->limiter->decision.remember && !is_approximate(task)) {
        memset(task->limiter->takes, 0, sizeof(task->limiter->takes));
        send_request(task);
    } else {
        answer_with(task, /* changed= */ false);
    }
}

static void looked_for_entry(struct idem__task *task,
                             const struct idem_now *now,
                             struct idem__answer *answer)
{
    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, look_for_entry);
    } else if (item_of(answer->body) != NULL) {
        found_entry(task, item_of(answer->body), now);
    } else if (!bounds_of(task)->was_read && !task->limiter->saw_small &&
               !is_approximate(task)) {
        look_at_small(task, now); /* A window that is over was never read. */
    } else {
        not_enough(task, now);
    }
}

static void look_for_entry(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__limit_request_get(idem__task_out(task), &task->env->table,
                            task->op->u.limit.request);
    idem__task_send(task, IDEM__TARGET("GetItem"), looked_for_entry);
}

/* 0 or IDEM_ECORRUPT. */
static int learn_item(struct idem__task *task, json_object *item)
{
    struct idem__limit_bounds *bounds = bounds_of(task);
    struct idem__limit_state small;
    int shard = idem__limit_shard_of(item);
    uint64_t refusals = 0;
    uint64_t used;
    bool big;
    int rc;

    if (idem__limit_is_item(item, task->op->u.limit.window)) {
        rc = idem__limit_read_window(item, task->op, &small, &big);
        if (rc == 0) {
            idem__limit_bounds_see(bounds, &small, big);
        }
        return rc;
    }
    if (shard < 0 || idem__limit_read_shard(item, &used, &refusals) != 0) {
        return IDEM_ECORRUPT;
    }
    idem__limit_bounds_raise(bounds, (unsigned)shard, used);
    if (refusals > bounds->refusals) {
        bounds->refusals = refusals;
    }
    return 0;
}

/* Shards that are not among the answer have not been touched, or could not be
 * read now: the bounds stay as they were. */
static void shards_came(struct idem__task *task, const struct idem_now *now,
                        struct idem__answer *answer)
{
    struct idem__limit_bounds *bounds = bounds_of(task);
    json_object *list;
    size_t n;
    size_t i;

    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, read_shards);
        return;
    }
    list = items_of(task, answer->body);
    n = list == NULL ? 0 : json_object_array_length(list);
    for (i = 0; i < n; i++) {
        if (learn_item(task, json_object_array_get_idx(list, i)) != 0) {
            corrupt(task);
            return;
        }
    }
    bounds->was_read = true;
    bounds->read_boot_ms = now->boot_ms;
    plan(task, now);
}

/* The first time all that a larger limit may have had. */
static void read_shards(struct idem__task *task, const struct idem_now *now)
{
    unsigned shards = idem__limit_shards(&task->op->u.limit.limit);

    (void)now;
    if (!bounds_of(task)->was_read && !is_approximate(task)) {
        shards = IDEM__LIMIT_SHARDS_MAX;
    }
    idem__limit_request_shards(idem__task_out(task), &task->env->table,
                               task->op, shards);
    idem__task_send(task, IDEM__TARGET("BatchGetItem"), shards_came);
}

static void plan(struct idem__task *task, const struct idem_now *now)
{
    const struct idem_limit_request *limit = &task->op->u.limit.limit;
    const struct idem__limit_bounds *bounds = bounds_of(task);
    struct idem__limiter *limiter = task->limiter;
    struct idem__limit_state found = known_state(task);

    if (bounds->has_small && !limiter->saw_small) {
        look_at_small(task, now); /* The request may be one of those. */
    } else if (idem__limit_in_time(limit, now, NULL) != 0 ||
               limit->max - found.used < limit->cost) {
        look_for_entry(task, now);
    } else if (!bounds->was_read ||
               now->boot_ms - bounds->read_boot_ms >= BOUNDS_MS) {
        read_shards(task, now);
    } else if (settle(task, &found, now)) {
        idem__limit_bounds_plan(bounds, limiter->shares,
                                idem__limit_shards(limit),
                                task->op->u.limit.request[0] + limiter->spread,
                                limit->cost, limiter->takes);
        send_request(task);
    }
}

/* ---- The start ---- */

void idem__limit_start(struct idem__task *task, const struct idem_now *now)
{
    const struct idem_limit_request *limit = &task->op->u.limit.limit;
    struct idem_limited *limited;

    if (task->limiter == NULL) {
        task->limiter = idem__zalloc(sizeof(*task->limiter));
    }
    if (task->limiter == NULL) {
        idem__task_fail_with(task, IDEM_ENOMEM, idem_error_text(IDEM_ENOMEM));
        return;
    }
    memset(task->limiter, 0, sizeof(*task->limiter));
    limited = &task->limiter->decision.limited;
    idem__limit_window(limit->at_ms, limit->per_ms, &limited->start_ms,
                       &limited->end_ms);
    if (idem__limit_shards(limit) > 0) {
        plan(task, now);
    } else if (idem__limit_in_time(limit, now, NULL) != 0) {
        look(task, now);
    } else if (idem__limit_known_is_marked(task->env->limits, task->op)) {
        look_at_all(task, now);
    } else {
        admit(task, now);
    }
}
