/* A small limit: one update of one item, unless a greater limit counted in the same
 * window. */
#include "aws/dynamodb/limit/limiter.h"

static void admit(struct idem__task *task, const struct idem_now *now);
static void refuse(struct idem__task *task, const struct idem_now *now);
static void look(struct idem__task *task, const struct idem_now *now);
static void look_at_all(struct idem__task *task, const struct idem_now *now);
static void write_beside(struct idem__task *task);

/* The counts of a small limit and of others, and the next step. */
static void decide_small(struct idem__task *task, const struct idem_now *now)
{
    const struct idem__limiter *limiter = task->limiter;
    const struct idem_limit_decision *decision = &limiter->decision;
    struct idem_limit_state found = limiter->own;

    if (limiter->is_beside) {
        found.has_window = true;
        found.used += limiter->others_used;
    }
    if (!idem__limiter_settle(task, &found, now)) {
        return;
    }
    if (!decision->remember) {
        idem__limiter_answer(task, /* changed= */ false);
    } else if (limiter->is_beside) {
        write_beside(task);
    } else if (decision->limited.admitted) {
        admit(task, now);
    } else {
        refuse(task, now);
    }
}

/* The contents of a window's item, and the next step. Where a greater limit
 * counted, too, its counts and the request's item are looked at. */
static void found_window(struct idem__task *task, json_object *item,
                         const struct idem_now *now)
{
    struct idem__limiter *limiter = task->limiter;
    bool big;

    if (idem__limit_read_window(item, task->op, &limiter->own, &big) != 0) {
        idem__limiter_corrupt(task);
    } else if (big && !limiter->own.has_entry) {
        look_at_all(task, now);
    } else {
        decide_small(task, now);
    }
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
static void looked_at_all(struct idem__task *task, const struct idem_now *now,
                          struct idem__answer *answer)
{
    struct idem__limiter *limiter = task->limiter;
    struct idem_limit_state entry = {.has_entry = false};
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
    list = idem__limiter_items(task, answer->body);
    n = list == NULL ? 0 : json_object_array_length(list);
    for (i = 0; i < n; i++) {
        if (add_item(task, json_object_array_get_idx(list, i), &entry) != 0) {
            idem__limiter_corrupt(task);
            return;
        }
    }
    idem__limiter_bounds(task)->is_marked =
        true; /* The next begins with this. */
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
    found_window(task, idem__limiter_item(answer->body), now);
}

static void look(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__limit_request_get(idem__task_out(task), &task->env->table,
                            task->op->u.limit.window);
    idem__task_send(task, IDEM__TARGET("GetItem"), looked);
}

/* The result of an update. True: it was applied. */
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
        task->ambiguous = true;
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
    struct idem_limit_state state;
    bool big;

    if (!was_updated(task, answer, admit, now)) {
        return;
    }
    (void)json_object_object_get_ex(answer->body, "Attributes", &item);
    if (idem__limit_read_window(item, task->op, &state, &big) != 0 ||
        !state.has_entry || state.entry < 0 ||
        (uint64_t)state.entry >= task->op->u.limit.limit.max) {
        /* It was applied, and can be asked for again. */
        task->ambiguous = true;
        idem__task_fail_with(
            task, IDEM_EUNKNOWN,
            "DynamoDB: the answer has a form that is not its own");
        return;
    }
    limited->admitted = true;
    limited->repeated = false;
    limited->remaining = (uint64_t)state.entry;
    idem__limiter_answer(task, /* changed= */ true);
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
        idem__limiter_answer(task, /* changed= */ true);
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

static void wrote_beside(struct idem__task *task, const struct idem_now *now,
                         struct idem__answer *answer)
{
    json_object *body;
    json_object *reasons = idem__limiter_reasons(&task->request, &body);
    json_object *first = idem__limiter_reason(reasons, 0);
    json_object *entry = idem__limiter_item(first);

    if (reasons == NULL && answer->said == IDEM__SAID_OK) {
        idem__limiter_answer(task, /* changed= */ true);
    } else if (reasons == NULL) {
        task->ambiguous = task->ambiguous || answer->said == IDEM__SAID_UNKNOWN;
        idem__task_retry(task, answer, look_at_all);
    } else if (idem__limiter_has_code(first, "ConditionalCheckFailed") &&
               entry != NULL) {
        memset(&task->op->error, 0, sizeof(task->op->error));
        idem__limiter_found(task, entry, now);
    } else {
        /* Another request was counted meanwhile, or is being counted. */
        idem__task_busy(task,
                        idem__limiter_has_code(idem__limiter_reason(reasons, 1),
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

void idem__limit_small_start(struct idem__task *task,
                             const struct idem_now *now)
{
    if (idem__limit_in_time(&task->op->u.limit.limit, now, NULL) != 0) {
        look(task, now);
    } else if (idem__limit_known_is_marked(task->env->limits, task->op)) {
        look_at_all(task, now);
    } else {
        admit(task, now);
    }
}
