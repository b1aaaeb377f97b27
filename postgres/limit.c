/* LIMIT and LIMIT_GO: count a request on condition that its window is as it was found. The
 * condition fails when another request was counted meanwhile, so the callers as a whole
 * make progress even while one of them loses rounds. */
#include "contract/parts.h"
#include "core/error.h"
#include "postgres/task.h"

enum {
    REQUEST_LEN = 16, /* Bytes of a request's identity that are stored. */
    ROUNDS_MAX = 4096,
};

/* The places in request->numbers, as batch_statement.c sends them. */
enum {
    ENTRY,
    FOUND_USED,
    FOUND_REFUSALS,
    EXPIRES,
    USED,
    REFUSALS,
    AT,
    MAX,
};

static struct idem__pg_request *ask(struct idem__pg_task *task,
                                    enum idem__pg_ask what)
{
    struct idem__pg_request *request = idem__pg_ask(task, what);

    memcpy(request->id, task->base.op->u.limit.window, IDEM_ID_LEN);
    request->request_id =
        idem_bytes(task->base.op->u.limit.request, REQUEST_LEN);
    return request;
}

idem__state idem__pg_limit(struct idem__pg_task *task)
{
    (void)ask(task, IDEM__PG_ASK_LIMIT_LOOK);
    return IDEM__STATE_SEND;
}

/* Reads the window and the request in it. False: it cannot be trusted. */
static bool read_window(const PGresult *result, struct idem_limit_state *state)
{
    int64_t used;
    int64_t refusals;

    memset(state, 0, sizeof(*state));
    if (PQntuples(result) == 0) {
        return true;
    }
    if (!idem__pg_number(result, 0, 0, &used) ||
        !idem__pg_number(result, 0, 1, &refusals) || used < 0 || refusals < 0) {
        return false;
    }
    state->has_window = true;
    state->used = (uint64_t)used;
    state->refusals = (uint64_t)refusals;
    state->has_entry = idem__pg_number(result, 0, 2, &state->entry);
    return true;
}

static idem__state settle(struct idem__pg_task *task, const PGresult *result)
{
    if (!read_window(result, &task->limit_found)) {
        return idem__flight_fail_with(
            &task->base, IDEM_ECORRUPT,
            "the count of this window cannot be trusted");
    }
    if (task->base.rounds++ == ROUNDS_MAX) {
        return idem__flight_fail_with(
            &task->base, IDEM_EUNAVAILABLE,
            "PostgreSQL: too many concurrent changes to the window");
    }
    if (!idem__limit_settle(task->base.op, &task->limit_found, task->base.now,
                            &task->limit)) {
        return IDEM__STATE_DONE;
    }
    return task->limit.remember ? IDEM__STATE_LIMIT_GO : IDEM__STATE_DONE;
}

idem__state idem__pg_limit_answered(struct idem__pg_task *task)
{
    return settle(task, task->request.result);
}

idem__state idem__pg_limit_go(struct idem__pg_task *task)
{
    const struct idem_limit_request *limit = &task->base.op->u.limit.limit;
    const struct idem_limit_state *found = &task->limit_found;
    struct idem__pg_request *request = ask(task, IDEM__PG_ASK_LIMIT_COUNT);

    request->numbers[ENTRY] = task->limit.entry;
    request->numbers[FOUND_USED] =
        found->has_window ? (int64_t)found->used : -1;
    request->numbers[FOUND_REFUSALS] =
        found->has_window ? (int64_t)found->refusals : -1;
    request->numbers[EXPIRES] = task->limit.expires_ms;
    request->numbers[USED] = (int64_t)task->limit.used;
    request->numbers[REFUSALS] = (int64_t)task->limit.refusals;
    request->numbers[AT] = task->limit.limited.start_ms;
    request->numbers[MAX] = (int64_t)limit->max;
    request->name = limit->name;
    request->subject = limit->subject;
    return IDEM__STATE_SEND;
}

idem__state idem__pg_limit_go_answered(struct idem__pg_task *task)
{
    if (task->request.said != IDEM__SAID_OK) {
        /* An unanswered count may have been applied. Read the window again: if it was, the
         * window has an entry for this request, which is not counted twice. */
        task->base.ambiguous =
            task->base.ambiguous || task->request.said == IDEM__SAID_UNKNOWN;
        return idem__pg_retry(task, IDEM__STATE_LIMIT);
    }
    task->base.tries = 0;
    if (PQntuples(task->request.result) == 0) {
        /* The window has changed: decide on it as it is now. */
        return settle(task, task->request.after);
    }
    task->base.op->changed = true;
    return IDEM__STATE_DONE;
}
