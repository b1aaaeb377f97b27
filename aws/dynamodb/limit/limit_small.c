/* A small limit: one update of one item, unless a greater limit counted in the same
 * window.
 *
 *     SMALL_ADMIT   the request is counted, if that is within the limit; else, as
 *                   for each of these, the answer shows the window, and the next
 *                   state is one of them, or DONE
 *     SMALL_REFUSE  its refusal is remembered
 *     SMALL_LOOK    the window is over; or a refusal did not show it
 *     SMALL_ALL     a greater limit counted in the window: its counts are read
 *     SMALL_BESIDE  the request is counted, or its refusal remembered, together with
 *                   these counts
 */
#include "aws/dynamodb/limit/limiter.h"

/* The counts of a small limit and of others, and the next step. */
static enum idem__state decide_small(struct idem__task *task,
                                     const struct idem_now *now)
{
    const struct idem__limiter *limiter = task->limiter;
    const struct idem_limit_decision *decision = &limiter->decision;
    struct idem_limit_state found = limiter->own;

    if (limiter->is_beside) {
        found.has_window = true;
        found.used += limiter->others_used;
    }
    if (!idem__limiter_settle(task, &found, now)) {
        return IDEM__STATE_DONE;
    }
    if (!decision->remember) {
        return idem__limiter_answer(task, /* changed= */ false);
    }
    if (limiter->is_beside) {
        return IDEM__STATE_SMALL_BESIDE;
    }
    return decision->limited.admitted ? IDEM__STATE_SMALL_ADMIT
                                      : IDEM__STATE_SMALL_REFUSE;
}

/* The contents of a window's item, and the next step. Where a greater limit
 * counted, too, its counts and the request's item are looked at. */
static enum idem__state found_window(struct idem__task *task, json_object *item,
                                     const struct idem_now *now)
{
    struct idem__limiter *limiter = task->limiter;
    bool big;

    if (idem__limit_read_window(item, task->op, &limiter->own, &big) != 0) {
        return idem__limiter_corrupt(task);
    }
    return big && !limiter->own.has_entry ? IDEM__STATE_SMALL_ALL
                                          : decide_small(task, now);
}

/* One of all items of a window, or the request's. 0 or IDEM_ECORRUPT. */
static int add_item(struct idem__task *task, json_object *item,
                    struct idem_limit_state *ret_entry)
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
enum idem__state idem__small_all_answered(struct idem__task *task,
                                          const struct idem_now *now,
                                          struct idem__answer *answer)
{
    struct idem__limiter *limiter = task->limiter;
    struct idem_limit_state entry = {.has_entry = false};
    json_object *list;
    size_t n;
    size_t i;

    if (answer->said != IDEM__SAID_OK) {
        return idem__task_retry(task, answer, IDEM__STATE_SMALL_ALL);
    }
    if (idem__task_under_table(task, answer->body, "UnprocessedKeys") != NULL) {
        return idem__task_busy(task, false, "read the count",
                               IDEM__STATE_SMALL_ALL);
    }
    memset(&limiter->own, 0, sizeof(limiter->own));
    limiter->is_beside = true;
    limiter->others_used = 0;
    list = idem__limiter_items(task, answer->body);
    n = list == NULL ? 0 : json_object_array_length(list);
    for (i = 0; i < n; i++) {
        if (add_item(task, json_object_array_get_idx(list, i), &entry) != 0) {
            return idem__limiter_corrupt(task);
        }
    }
    idem__limiter_bounds(task)->is_marked =
        true; /* The next begins with this. */
    if (entry.has_entry) {
        limiter->own = entry;
    }
    return decide_small(task, now);
}

const char *idem__small_all_ask(struct idem__task *task,
                                const struct idem_now *now)
{
    (void)now;
    idem__limit_request_all(idem__task_out(task), &task->env->table, task->op);
    return IDEM__TARGET("BatchGetItem");
}

enum idem__state idem__small_look_answered(struct idem__task *task,
                                           const struct idem_now *now,
                                           struct idem__answer *answer)
{
    return answer->said != IDEM__SAID_OK
               ? idem__task_retry(task, answer, IDEM__STATE_SMALL_LOOK)
               : found_window(task, idem__limiter_item(answer->body), now);
}

/* An update was not applied, or nobody knows; then it is made again, which the entry
 * of the request makes harmless. */
static enum idem__state not_updated(struct idem__task *task,
                                    const struct idem__answer *answer,
                                    enum idem__state again,
                                    const struct idem_now *now)
{
    if (answer->said == IDEM__SAID_REFUSED) {
        return answer->item != NULL ? found_window(task, answer->item, now)
                                    : IDEM__STATE_SMALL_LOOK;
    }
    task->ambiguous = task->ambiguous || answer->said == IDEM__SAID_UNKNOWN;
    return idem__task_retry(task, answer, again);
}

/* The count after an update is what the service says it is. */
enum idem__state idem__small_admit_answered(struct idem__task *task,
                                            const struct idem_now *now,
                                            struct idem__answer *answer)
{
    struct idem_limited *limited = &task->limiter->decision.limited;
    json_object *item = NULL;
    struct idem_limit_state state;
    bool big;

    if (answer->said != IDEM__SAID_OK) {
        return not_updated(task, answer, IDEM__STATE_SMALL_ADMIT, now);
    }
    (void)json_object_object_get_ex(answer->body, "Attributes", &item);
    if (idem__limit_read_window(item, task->op, &state, &big) != 0 ||
        !state.has_entry || state.entry < 0 ||
        (uint64_t)state.entry >= task->op->u.limit.limit.max) {
        /* It was applied, and can be asked for again. */
        task->ambiguous = true;
        return idem__task_fail_with(
            task, IDEM_EUNKNOWN,
            "DynamoDB: the answer has a form that is not its own");
    }
    limited->admitted = true;
    limited->repeated = false;
    limited->remaining = (uint64_t)state.entry;
    return idem__limiter_answer(task, /* changed= */ true);
}

const char *idem__small_admit_ask(struct idem__task *task,
                                  const struct idem_now *now)
{
    (void)now;
    idem__limit_request_admit(idem__task_out(task), &task->env->table,
                              task->op);
    return IDEM__TARGET("UpdateItem");
}

enum idem__state idem__small_refuse_answered(struct idem__task *task,
                                             const struct idem_now *now,
                                             struct idem__answer *answer)
{
    return answer->said != IDEM__SAID_OK
               ? not_updated(task, answer, IDEM__STATE_SMALL_REFUSE, now)
               : idem__limiter_answer(task, /* changed= */ true);
}

const char *idem__small_refuse_ask(struct idem__task *task,
                                   const struct idem_now *now)
{
    (void)now;
    idem__limit_request_refuse(idem__task_out(task), &task->env->table,
                               task->op, &task->limiter->decision);
    return IDEM__TARGET("UpdateItem");
}

/* ---- Small limits beside greater ones ---- */

enum idem__state idem__small_beside_answered(struct idem__task *task,
                                             const struct idem_now *now,
                                             struct idem__answer *answer)
{
    json_object *body;
    json_object *reasons = idem__limiter_reasons(&task->request, &body);
    json_object *first = idem__limiter_reason(reasons, 0);
    json_object *entry = idem__limiter_item(first);
    enum idem__state next;

    if (reasons == NULL && answer->said == IDEM__SAID_OK) {
        next = idem__limiter_answer(task, /* changed= */ true);
    } else if (reasons == NULL) {
        task->ambiguous = task->ambiguous || answer->said == IDEM__SAID_UNKNOWN;
        next = idem__task_retry(task, answer, IDEM__STATE_SMALL_ALL);
    } else if (idem__limiter_has_code(first, "ConditionalCheckFailed") &&
               entry != NULL) {
        memset(&task->op->error, 0, sizeof(task->op->error));
        next = idem__limiter_found(task, entry, now);
    } else {
        /* Another request was counted meanwhile, or is being counted. */
        next =
            idem__task_busy(task,
                            idem__limiter_has_code(idem__limiter_reason(reasons,
                                                                        1),
                                                   "ConditionalCheckFailed"),
                            "count the request", IDEM__STATE_SMALL_ALL);
    }
    (void)json_object_put(body);
    return next;
}

const char *idem__small_beside_ask(struct idem__task *task,
                                   const struct idem_now *now)
{
    (void)now;
    idem__limit_request_beside(idem__task_out(task), &task->env->table,
                               task->op, &task->limiter->own,
                               &task->limiter->decision);
    return IDEM__TARGET("TransactWriteItems");
}

enum idem__state idem__limit_small_first(const struct idem__task *task,
                                         const struct idem_now *now)
{
    if (idem__limit_in_time(&task->op->u.limit.limit, now, NULL) != 0) {
        return IDEM__STATE_SMALL_LOOK;
    }
    return idem__limit_known_is_marked(task->env->limits, task->op)
               ? IDEM__STATE_SMALL_ALL
               : IDEM__STATE_SMALL_ADMIT;
}
