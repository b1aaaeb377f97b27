/* A large limit: one transaction of the request's item and a shard. */
#include "aws/dynamodb/limit/limiter.h"
#include "core/error.h"

enum {
    BOUNDS_MS = 1000 /* How old a count may be that is given as remaining. */
};

static void plan(struct idem__task *task, const struct idem_now *now);
static void look_for_entry(struct idem__task *task, const struct idem_now *now);
static void read_shards(struct idem__task *task, const struct idem_now *now);

static bool is_approximate(const struct idem__task *task)
{
    return (task->op->u.limit.limit.flags & IDEM_LIMIT_APPROXIMATE) != 0;
}

/* The contents of the item of small limits, with an entry of the request or
 * without. */
static void found_small(struct idem__task *task, json_object *item,
                        const struct idem_now *now)
{
    struct idem_limit_state small;
    bool big;

    if (idem__limit_read_window(item, task->op, &small, &big) != 0) {
        idem__limiter_corrupt(task);
    } else if (small.has_entry) {
        if (idem__limiter_settle(task, &small, now)) {
            idem__limiter_answer(task, /* changed= */ false);
        }
    } else {
        idem__limit_bounds_see(idem__limiter_bounds(task), &small, big);
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
        found_small(task, idem__limiter_item(answer->body), now);
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
    return limiter->marks ? idem__limiter_reason(reasons, at) : NULL;
}

/* Learns from the shards that stood in the way. False: none did. */
static bool learn(struct idem__task *task, json_object *reasons)
{
    const struct idem__limiter *limiter = task->limiter;
    struct idem__limit_bounds *bounds = idem__limiter_bounds(task);
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
        if (idem__limiter_item(reason) == NULL ||
            idem__limit_read_shard(idem__limiter_item(reason), &used,
                                   &refusals) != 0) {
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

    /* The obstacle of before is gone. */
    memset(&task->op->error, 0, sizeof(task->op->error));
    if (idem__limiter_has_code(first, "ConditionalCheckFailed")) {
        task->tries = 0;
        if (idem__limiter_item(first) != NULL) {
            idem__limiter_found(task, idem__limiter_item(first), now);
        } else {
            look_for_entry(task, now);
        }
        return;
    }
    if (idem__limiter_has_code(mark_of(task->limiter, reasons),
                               "ConditionalCheckFailed")) {
        task->tries = 0;
        look_at_small(task, now); /* There is an entry of the request. */
        return;
    }
    if (!task->limiter->decision.limited.admitted &&
        idem__limiter_has_code(json_object_array_get_idx(reasons, 1),
                               "ConditionalCheckFailed")) {
        idem__limiter_bounds(task)->refusals = IDEM_LIMIT_REFUSALS;
        plan(task, now);
        return;
    }
    if (learn(task, reasons)) {
        task->tries = 0;
        plan(task, now);
        return;
    }
    if (idem__limiter_has_code(mark_of(task->limiter, reasons),
                               "TransactionConflict")) {
        /* Another one marks the window, which a reading will show. */
        idem__limiter_bounds(task)->read_boot_ms = now->boot_ms - BOUNDS_MS;
    }
    /* Another transaction, or too many of them. */
    task->tries = task->tries_before;
    task->limiter->spread++;
    (void)idem__error(&busy.error, IDEM_EUNAVAILABLE,
                      "DynamoDB is too busy to count the request");
    idem__task_retry(task, &busy, plan);
}

/* The request is counted, or its refusal remembered. */
static void counted(struct idem__task *task)
{
    struct idem__limit_bounds *bounds = idem__limiter_bounds(task);
    const struct idem__limiter *limiter = task->limiter;
    unsigned i;

    for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        idem__limit_bounds_raise(bounds, i,
                                 limiter->used[i] + limiter->takes[i]);
    }
    bounds->refusals += !limiter->decision.limited.admitted;
    bounds->is_marked = bounds->is_marked || limiter->marks;
    idem__limiter_answer(task, /* changed= */ true);
}

static void transacted(struct idem__task *task, const struct idem_now *now,
                       struct idem__answer *answer)
{
    json_object *body;
    json_object *reasons = idem__limiter_reasons(&task->request, &body);

    if (reasons != NULL) {
        cancelled(task, reasons, now);
    } else if (answer->said == IDEM__SAID_OK) {
        counted(task);
    } else {
        task->ambiguous = task->ambiguous || answer->said == IDEM__SAID_UNKNOWN;
        idem__task_retry(task, answer, plan);
    }
    (void)json_object_put(body);
}

static void put(struct idem__task *task, const struct idem_now *now,
                struct idem__answer *answer)
{
    if (answer->said == IDEM__SAID_REFUSED && answer->item != NULL) {
        idem__limiter_found(task, answer->item, now);
    } else if (answer->said == IDEM__SAID_REFUSED) {
        look_for_entry(task, now);
    } else if (answer->said == IDEM__SAID_OK) {
        counted(task);
    } else {
        task->ambiguous = task->ambiguous || answer->said == IDEM__SAID_UNKNOWN;
        idem__task_retry(task, answer, plan);
    }
}

static void send_request(struct idem__task *task)
{
    const struct idem__limiter *limiter = task->limiter;
    struct idem__buffer *out = idem__task_out(task);

    memcpy(task->limiter->used, idem__limiter_bounds(task)->used,
           sizeof(task->limiter->used));
    if (is_approximate(task)) {
        idem__limit_request_put(out, &task->env->table, task->op,
                                &limiter->decision);
        idem__task_send(task, IDEM__TARGET("PutItem"), put);
    } else {
        task->limiter->marks = !idem__limiter_bounds(task)->is_marked;
        idem__limit_request_transact(out, &task->env->table, task->op,
                                     &limiter->decision, limiter->shares,
                                     limiter->takes, limiter->marks);
        idem__task_send(task, IDEM__TARGET("TransactWriteItems"), transacted);
    }
}

/* The known part of the window, and its shares for this max. */
static struct idem_limit_state known_state(struct idem__task *task)
{
    const struct idem_limit_request *limit = &task->op->u.limit.limit;
    const struct idem__limit_bounds *bounds = idem__limiter_bounds(task);
    struct idem__limiter *limiter = task->limiter;
    struct idem_limit_state state = {
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
    struct idem_limit_state found = known_state(task);

    if (!idem__limiter_settle(task, &found, now)) {
        return;
    }
    if (task->limiter->decision.remember && !is_approximate(task)) {
        memset(task->limiter->takes, 0, sizeof(task->limiter->takes));
        send_request(task);
    } else {
        idem__limiter_answer(task, /* changed= */ false);
    }
}

static void looked_for_entry(struct idem__task *task,
                             const struct idem_now *now,
                             struct idem__answer *answer)
{
    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, look_for_entry);
    } else if (idem__limiter_item(answer->body) != NULL) {
        idem__limiter_found(task, idem__limiter_item(answer->body), now);
    } else if (!idem__limiter_bounds(task)->was_read &&
               !task->limiter->saw_small && !is_approximate(task)) {
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
    struct idem__limit_bounds *bounds = idem__limiter_bounds(task);
    struct idem_limit_state small;
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
    struct idem__limit_bounds *bounds = idem__limiter_bounds(task);
    json_object *list;
    size_t n;
    size_t i;

    if (answer->said != IDEM__SAID_OK) {
        idem__task_retry(task, answer, read_shards);
        return;
    }
    list = idem__limiter_items(task, answer->body);
    n = list == NULL ? 0 : json_object_array_length(list);
    for (i = 0; i < n; i++) {
        if (learn_item(task, json_object_array_get_idx(list, i)) != 0) {
            idem__limiter_corrupt(task);
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
    if (!idem__limiter_bounds(task)->was_read && !is_approximate(task)) {
        shards = IDEM__LIMIT_SHARDS_MAX;
    }
    idem__limit_request_shards(idem__task_out(task), &task->env->table,
                               task->op, shards);
    idem__task_send(task, IDEM__TARGET("BatchGetItem"), shards_came);
}

static void plan(struct idem__task *task, const struct idem_now *now)
{
    const struct idem_limit_request *limit = &task->op->u.limit.limit;
    const struct idem__limit_bounds *bounds = idem__limiter_bounds(task);
    struct idem__limiter *limiter = task->limiter;
    struct idem_limit_state found = known_state(task);

    if (bounds->has_small && !limiter->saw_small) {
        look_at_small(task, now); /* The request may be one of those. */
    } else if (idem__limit_in_time(limit, now, NULL) != 0 ||
               limit->max - found.used < limit->cost) {
        look_for_entry(task, now);
    } else if (!bounds->was_read ||
               now->boot_ms - bounds->read_boot_ms >= BOUNDS_MS) {
        read_shards(task, now);
    } else if (idem__limiter_settle(task, &found, now)) {
        idem__limit_bounds_plan(bounds, limiter->shares,
                                idem__limit_shards(limit),
                                task->op->u.limit.request[0] + limiter->spread,
                                limit->cost, limiter->takes);
        send_request(task);
    }
}

void idem__limit_large_start(struct idem__task *task,
                             const struct idem_now *now)
{
    plan(task, now);
}
