/* A rate limit on its way through the table; see limit_request.h for what lies there.
 *
 *     LIMIT         begins with the update where all entries are in one item, which
 *                   is most often all; else by reading
 *     LIMIT_WINDOW  the count, and the request's entry unless it was moved
 *     LIMIT_ENTRY   entries were moved: is the request's among them?
 *     LIMIT_WRITE   counts the request, or remembers its refusal; refused, it shows
 *                   the window
 *     LIMIT_MOVE    the op is answered; entries are written as items of their own ...
 *     LIMIT_TRIM    ... and taken out of the window's
 *
 * The writes may be sent again without a look: each is conditional on there being no
 * entry of the request, and is shown the one that is there. That is how an unanswered
 * write is read back, and how a retry hears what the first try was told. */
#include "aws/dynamodb/limit/limit_request.h"
#include "aws/dynamodb/task/task.h"
#include "base/heap.h"
#include "core/error.h"

enum {
    ROUNDS_MAX = 64
};

struct idem__limiter {
    struct idem_limit_decision decision;
    struct idem__limit_window found;
    uint64_t looked_at; /* found.moves when the request's own item was read, and
                            was not there; 0: it was not read. */
    json_object *window; /* With the entries that are moved. */
};

static void forget(struct idem__limiter *limiter)
{
    (void)json_object_put(limiter->window);
    memset(limiter, 0, sizeof(*limiter));
}

void idem__limiter_free(struct idem__limiter *limiter)
{
    if (limiter != NULL) {
        forget(limiter);
    }
    idem__free(limiter);
}

static idem__state corrupt(struct idem__task *task)
{
    return idem__flight_fail_with(
        &task->base, IDEM_ECORRUPT,
        "DynamoDB: the count of this window is malformed");
}

static idem__state answer_op(struct idem__task *task, bool changed)
{
    task->base.op->u.limit.answer = task->limiter->decision.limited;
    task->base.op->changed = changed;
    return IDEM__STATE_DONE;
}

/* Decides on what was found. */
static idem__state decide(struct idem__task *task,
                          const struct idem_limit_state *found)
{
    struct idem_limit_decision *decision = &task->limiter->decision;

    if (task->base.rounds++ == ROUNDS_MAX) {
        return idem__flight_fail_with(
            &task->base, IDEM_EUNAVAILABLE,
            "DynamoDB: too many concurrent changes to the window");
    }
    idem__limit_decide(&task->base.op->u.limit.limit, found, task->base.now,
                       decision);
    if (decision->code != 0) {
        return idem__flight_fail_with(&task->base, decision->code,
                                      decision->text);
    }
    return decision->remember ? IDEM__STATE_LIMIT_WRITE
                              : answer_op(task, /* changed= */ false);
}

static idem__state found_window(struct idem__task *task, json_object *item)
{
    struct idem__limiter *limiter = task->limiter;
    struct idem__limit_window *found = &limiter->found;

    if (idem__limit_read_window(item, task->base.op, found) != 0) {
        return corrupt(task);
    }
    if (!found->state.has_entry && found->moves != limiter->looked_at) {
        return IDEM__STATE_LIMIT_ENTRY;
    }
    return decide(task, &found->state);
}

/* ---- Reading ---- */

idem__state idem__limit_window_ask(struct idem__task *task)
{
    idem__limit_request_window(idem__task_out(task), &task->env->table,
                               task->base.op);
    return idem__task_ask(task, IDEM__TARGET("GetItem"));
}

idem__state idem__limit_window_answered(struct idem__task *task,
                                        struct idem__answer *answer)
{
    return found_window(task, idem__json_member(answer->body, "Item",
                                                json_type_object));
}

idem__state idem__limit_entry_ask(struct idem__task *task)
{
    idem__limit_request_entry(idem__task_out(task), &task->env->table,
                              task->base.op);
    return idem__task_ask(task, IDEM__TARGET("GetItem"));
}

/* The count was read before, and only grows: what it refuses stays refused. */
idem__state idem__limit_entry_answered(struct idem__task *task,
                                       struct idem__answer *answer)
{
    struct idem__limiter *limiter = task->limiter;
    struct idem_limit_state entry;

    if (idem__limit_read_entry(idem__json_member(answer->body, "Item",
                                                 json_type_object),
                               &entry) != 0) {
        return corrupt(task);
    }
    limiter->looked_at = limiter->found.moves;
    return decide(task, entry.has_entry ? &entry : &limiter->found.state);
}

/* ---- Writing ---- */

idem__state idem__limit_write_ask(struct idem__task *task)
{
    const struct idem__limiter *limiter = task->limiter;
    struct idem__buffer *out = idem__task_out(task);

    if (limiter->decision.limited.admitted) {
        idem__limit_request_admit(out, &task->env->table, task->base.op,
                                  limiter->looked_at);
    } else {
        idem__limit_request_refuse(out, &task->env->table, task->base.op,
                                   limiter->looked_at, &limiter->decision);
    }
    return idem__task_ask(task, IDEM__TARGET("UpdateItem"));
}

/* Entries are moved where there are many; the op is answered whatever comes of it. */
static idem__state move_entries(struct idem__task *task, json_object *window)
{
    struct idem__limiter *limiter = task->limiter;

    (void)json_object_put(limiter->window);
    limiter->window = json_object_get(window);
    task->base.settled = true;
    return IDEM__STATE_LIMIT_MOVE;
}

/* The write was applied, and the count is what the service says it is. Each of the
 * entries is the last of the window in one answer, so that one of many callers moves
 * them. */
static idem__state written(struct idem__task *task, json_object *window)
{
    struct idem__limiter *limiter = task->limiter;
    struct idem_limited *limited = &limiter->decision.limited;
    uint64_t max = task->base.op->u.limit.limit.max;
    struct idem__limit_window *found = &limiter->found;
    int64_t entry;

    if (window == NULL ||
        idem__limit_read_window(window, task->base.op, found) != 0 ||
        !found->state.has_entry) {
        return IDEM__STATE_NONE;
    }
    entry = found->state.entry;
    if (limited->admitted ? entry < 0 || (uint64_t)entry >= max : entry >= 0) {
        return IDEM__STATE_NONE;
    }
    limited->remaining = (uint64_t)(entry < 0 ? -entry : entry);
    (void)answer_op(task, /* changed= */ true);
    return max > IDEM__LIMIT_ALONE && found->entries % IDEM__LIMIT_MOVED == 0
               ? move_entries(task, window)
               : IDEM__STATE_DONE;
}

idem__state idem__limit_write_answered(struct idem__task *task,
                                       struct idem__answer *answer)
{
    idem__state next;

    if (answer->said == IDEM__SAID_OK) {
        next = written(task, idem__json_member(answer->body, "Attributes",
                                               json_type_object));
        if (next != IDEM__STATE_NONE) {
            return next;
        }
        /* It can be asked for again. */
        task->base.ambiguous = true;
        return idem__flight_fail_with(&task->base, IDEM_EUNKNOWN,
                                      "DynamoDB: malformed answer");
    }
    if (answer->said == IDEM__SAID_REFUSED) {
        return answer->item != NULL ? found_window(task, answer->item)
                                    : IDEM__STATE_LIMIT_WINDOW;
    }
    task->base.ambiguous =
        task->base.ambiguous || answer->said == IDEM__SAID_UNKNOWN;
    return idem__task_retry(task, answer, IDEM__STATE_LIMIT_WRITE);
}

/* ---- Moving entries ---- */

idem__state idem__limit_move_ask(struct idem__task *task)
{
    idem__limit_request_move(idem__task_out(task), &task->env->table,
                             task->base.op, task->limiter->window);
    return idem__task_ask(task, IDEM__TARGET("BatchWriteItem"));
}

/* None is taken out before all are written. */
idem__state idem__limit_move_answered(struct idem__task *task,
                                      struct idem__answer *answer)
{
    return answer->said == IDEM__SAID_OK &&
                   idem__task_under_table(task, answer->body,
                                          "UnprocessedItems") == NULL
               ? IDEM__STATE_LIMIT_TRIM
               : IDEM__STATE_DONE;
}

idem__state idem__limit_trim_ask(struct idem__task *task)
{
    idem__limit_request_trim(idem__task_out(task), &task->env->table,
                             task->base.op, task->limiter->window,
                             task->limiter->found.moves);
    return idem__task_ask(task, IDEM__TARGET("UpdateItem"));
}

/* Goes on with what others added meanwhile, or left there. */
idem__state idem__limit_trim_answered(struct idem__task *task,
                                      struct idem__answer *answer)
{
    json_object *window =
        idem__json_member(answer->body, "Attributes", json_type_object);
    struct idem__limit_window *found = &task->limiter->found;

    return answer->said == IDEM__SAID_OK && window != NULL &&
                   idem__limit_read_window(window, task->base.op, found) == 0 &&
                   found->entries >= IDEM__LIMIT_MOVED
               ? move_entries(task, window)
               : IDEM__STATE_DONE;
}

/* ---- Beginning ---- */

idem__state idem__limit_step(struct idem__task *task)
{
    const struct idem_limit_request *limit = &task->base.op->u.limit.limit;
    struct idem_limited *limited;

    if (task->limiter == NULL) {
        task->limiter = idem__zalloc(sizeof(*task->limiter));
    }
    if (task->limiter == NULL) {
        return idem__flight_no_memory(&task->base);
    }
    forget(task->limiter);
    limited = &task->limiter->decision.limited;
    idem__limit_window(limit, &limited->start_ms, &limited->end_ms);
    limited->admitted =
        true; /* If the write finds that it is within the limit. */
    return limit->max > IDEM__LIMIT_ALONE ||
                   idem__limit_in_time(limit, task->base.now, NULL) != 0
               ? IDEM__STATE_LIMIT_WINDOW
               : IDEM__STATE_LIMIT_WRITE;
}
