/* A large limit: one transaction of the request's item and a shard.
 *
 *     LARGE_PLAN     enough is known to be left: which shards does the request take
 *                    from? Each of the others comes back to it with what it learned,
 *                    or ends the op with the request's entry
 *     LARGE_WRITE    the transaction; refused by a shard, it shows how much is used
 *     LARGE_SHARDS   the counts of the window are not known, or old
 *     LARGE_ENTRY    there is not enough left: was the request admitted before?
 *     LARGE_SMALL    small limits counted in the window: is it one of theirs?
 */
#include "aws/dynamodb/limit/limiter.h"
#include "core/error.h"

enum {
    BOUNDS_MS = 1000 /* How old a count may be that is given as remaining. */
};

/* The contents of the item of small limits, with an entry of the request or
 * without. */
static enum idem__state found_small(struct idem__task *task, json_object *item,
                                    const struct idem_now *now)
{
    struct idem_limit_state small;
    bool big;

    if (idem__limit_read_window(item, task->op, &small, &big) != 0) {
        return idem__limiter_corrupt(task);
    }
    if (small.has_entry) {
        return idem__limiter_settle(task, &small, now)
                   ? idem__limiter_answer(task, /* changed= */ false)
                   : IDEM__STATE_DONE;
    }
    idem__limit_bounds_see(idem__limiter_bounds(task), &small, big);
    task->limiter->saw_small = true;
    return IDEM__STATE_LARGE_PLAN;
}

enum idem__state idem__large_small_answered(struct idem__task *task,
                                            const struct idem_now *now,
                                            struct idem__answer *answer)
{
    return answer->said != IDEM__SAID_OK
               ? idem__task_retry(task, answer, IDEM__STATE_LARGE_SMALL)
               : found_small(task, idem__limiter_item(answer->body), now);
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
static enum idem__state cancelled(struct idem__task *task, json_object *reasons,
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
        return idem__limiter_item(first) != NULL
                   ? idem__limiter_found(task, idem__limiter_item(first), now)
                   : IDEM__STATE_LARGE_ENTRY;
    }
    if (idem__limiter_has_code(mark_of(task->limiter, reasons),
                               "ConditionalCheckFailed")) {
        task->tries = 0;
        return IDEM__STATE_LARGE_SMALL; /* There is an entry of the request. */
    }
    if (!task->limiter->decision.limited.admitted &&
        idem__limiter_has_code(json_object_array_get_idx(reasons, 1),
                               "ConditionalCheckFailed")) {
        idem__limiter_bounds(task)->refusals = IDEM_LIMIT_REFUSALS;
        return IDEM__STATE_LARGE_PLAN;
    }
    if (learn(task, reasons)) {
        task->tries = 0;
        return IDEM__STATE_LARGE_PLAN;
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
    return idem__task_retry(task, &busy, IDEM__STATE_LARGE_PLAN);
}

/* The request is counted, or its refusal remembered. */
static enum idem__state counted(struct idem__task *task)
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
    return idem__limiter_answer(task, /* changed= */ true);
}

/* An answer that refuses nothing: it was counted; or not, or nobody knows. */
static enum idem__state counted_or_not(struct idem__task *task,
                                       const struct idem__answer *answer)
{
    if (answer->said == IDEM__SAID_OK) {
        return counted(task);
    }
    task->ambiguous = task->ambiguous || answer->said == IDEM__SAID_UNKNOWN;
    return idem__task_retry(task, answer, IDEM__STATE_LARGE_PLAN);
}

static enum idem__state transacted(struct idem__task *task,
                                   const struct idem_now *now,
                                   const struct idem__answer *answer)
{
    json_object *body;
    json_object *reasons = idem__limiter_reasons(&task->request, &body);
    enum idem__state next = reasons != NULL ? cancelled(task, reasons, now)
                                            : counted_or_not(task, answer);

    (void)json_object_put(body);
    return next;
}

enum idem__state idem__large_write_answered(struct idem__task *task,
                                            const struct idem_now *now,
                                            struct idem__answer *answer)
{
    return transacted(task, now, answer);
}

const char *idem__large_write_ask(struct idem__task *task,
                                  const struct idem_now *now)
{
    const struct idem__limiter *limiter = task->limiter;
    struct idem__buffer *out = idem__task_out(task);

    (void)now;
    memcpy(task->limiter->used, idem__limiter_bounds(task)->used,
           sizeof(task->limiter->used));
    task->limiter->marks = !idem__limiter_bounds(task)->is_marked;
    idem__limit_request_transact(out, &task->env->table, task->op,
                                 &limiter->decision, limiter->shares,
                                 limiter->takes, limiter->marks);
    return IDEM__TARGET("TransactWriteItems");
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
static enum idem__state not_enough(struct idem__task *task,
                                   const struct idem_now *now)
{
    struct idem_limit_state found = known_state(task);

    if (!idem__limiter_settle(task, &found, now)) {
        return IDEM__STATE_DONE;
    }
    if (!task->limiter->decision.remember) {
        return idem__limiter_answer(task, /* changed= */ false);
    }
    memset(task->limiter->takes, 0, sizeof(task->limiter->takes));
    return IDEM__STATE_LARGE_WRITE;
}

enum idem__state idem__large_entry_answered(struct idem__task *task,
                                            const struct idem_now *now,
                                            struct idem__answer *answer)
{
    if (answer->said != IDEM__SAID_OK) {
        return idem__task_retry(task, answer, IDEM__STATE_LARGE_ENTRY);
    }
    if (idem__limiter_item(answer->body) != NULL) {
        return idem__limiter_found(task, idem__limiter_item(answer->body), now);
    }
    if (!idem__limiter_bounds(task)->was_read && !task->limiter->saw_small) {
        return IDEM__STATE_LARGE_SMALL; /* A window that is over was never
                                           read. */
    }
    return not_enough(task, now);
}

const char *idem__large_entry_ask(struct idem__task *task,
                                  const struct idem_now *now)
{
    (void)now;
    idem__limit_request_get(idem__task_out(task), &task->env->table,
                            task->op->u.limit.request);
    return IDEM__TARGET("GetItem");
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
enum idem__state idem__large_shards_answered(struct idem__task *task,
                                             const struct idem_now *now,
                                             struct idem__answer *answer)
{
    struct idem__limit_bounds *bounds = idem__limiter_bounds(task);
    json_object *list;
    size_t n;
    size_t i;

    if (answer->said != IDEM__SAID_OK) {
        return idem__task_retry(task, answer, IDEM__STATE_LARGE_SHARDS);
    }
    list = idem__limiter_items(task, answer->body);
    n = list == NULL ? 0 : json_object_array_length(list);
    for (i = 0; i < n; i++) {
        if (learn_item(task, json_object_array_get_idx(list, i)) != 0) {
            return idem__limiter_corrupt(task);
        }
    }
    bounds->was_read = true;
    bounds->read_boot_ms = now->boot_ms;
    return IDEM__STATE_LARGE_PLAN;
}

/* The first time all that a larger limit may have had. */
const char *idem__large_shards_ask(struct idem__task *task,
                                   const struct idem_now *now)
{
    unsigned shards = idem__limit_shards(&task->op->u.limit.limit);

    (void)now;
    if (!idem__limiter_bounds(task)->was_read) {
        shards = IDEM__LIMIT_SHARDS_MAX;
    }
    idem__limit_request_shards(idem__task_out(task), &task->env->table,
                               task->op, shards);
    return IDEM__TARGET("BatchGetItem");
}

enum idem__state idem__large_plan_step(struct idem__task *task,
                                       const struct idem_now *now)
{
    const struct idem_limit_request *limit = &task->op->u.limit.limit;
    const struct idem__limit_bounds *bounds = idem__limiter_bounds(task);
    struct idem__limiter *limiter = task->limiter;
    struct idem_limit_state found = known_state(task);

    if (bounds->has_small && !limiter->saw_small) {
        return IDEM__STATE_LARGE_SMALL; /* The request may be one of those. */
    }
    if (idem__limit_in_time(limit, now, NULL) != 0 ||
        limit->max - found.used < limit->cost) {
        return IDEM__STATE_LARGE_ENTRY;
    }
    if (!bounds->was_read || now->boot_ms - bounds->read_boot_ms >= BOUNDS_MS) {
        return IDEM__STATE_LARGE_SHARDS;
    }
    if (!idem__limiter_settle(task, &found, now)) {
        return IDEM__STATE_DONE;
    }
    idem__limit_bounds_plan(bounds, limiter->shares, idem__limit_shards(limit),
                            task->op->u.limit.request[0] + limiter->spread,
                            limit->cost, limiter->takes);
    return IDEM__STATE_LARGE_WRITE;
}
