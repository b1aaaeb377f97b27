/* The states of an op about a rate limit. limit_request.h describes the items.
 *
 *     LIMIT         goes to LIMIT_WRITE if all entries are in one item and the window has
 *                   not passed: most ops need no more than that; else to LIMIT_WINDOW
 *     LIMIT_WINDOW  reads the count, and the request's entry unless it was moved
 *     LIMIT_ENTRY   entries were moved: reads the request's own item
 *     LIMIT_WRITE   counts the request, or remembers its refusal; if the service refuses
 *                   the write, it shows the window
 *     LIMIT_MOVE    the op is answered; writes entries as items of their own
 *     LIMIT_TRIM    takes these entries out of the window's item
 *
 * A write can be sent again without a look: it is conditional on the request having no
 * entry, and a refusal shows the entry that is there. So an op reads back a write that was
 * not answered, and a retry gets the answer of the first try. */
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
    /* found.moves when the request's own item was read, and was missing; 0: it was
     * not read. */
    uint64_t looked_at;
    json_object *window; /* The item whose entries are being moved. */
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

/* Decides on the window or entry that was found. */
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
    /* The request's entry may be among those that were moved since we last looked. */
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

/* Decides with the count that was read before the entry. It only grows, so a refusal stays
 * right; and to admit, the write compares the count as it is then. */
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

/* Starts to move entries. The op is answered already, however this ends. */
static idem__state move_entries(struct idem__task *task, json_object *window)
{
    struct idem__limiter *limiter = task->limiter;

    (void)json_object_put(limiter->window);
    limiter->window = json_object_get(window);
    task->base.settled = true;
    return IDEM__STATE_LIMIT_MOVE;
}

/* The write was applied: the entry in the answer has what remains. Each write adds one
 * entry, so of many callers only one sees a given number of entries, and moves them. */
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
        /* The request may have been counted. Its retry finds out. */
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

/* Unless all items are written, no entry may be taken out: a retry of its request would be
 * counted again. */
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

/* Goes on if other callers have added enough entries meanwhile, or have left some. */
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
    /* The first write admits the request, on condition that it is within the limit. */
    limited->admitted = true;
    return limit->max > IDEM__LIMIT_ALONE ||
                   idem__limit_in_time(limit, task->base.now, NULL) != 0
               ? IDEM__STATE_LIMIT_WINDOW
               : IDEM__STATE_LIMIT_WRITE;
}
