/* The life of a task: from an op to its first state, from answers and pauses to the
 * next, and to its end. */
#include "postgres/task.h"

#include "base/heap.h"
#include "base/pace.h"
#include "core/error.h"
#include "core/move.h"
#include "store/remote/own.h"

#include <assert.h>

enum {
    KEEP_BYTES = 2 * IDEM_HEAD_MAX, /* Memory that is kept for the next op. */
    TRIES_MAX = 12,
    AWAY_TRIES_MAX = 4, /* Not even a connection. */
    PAUSE_BASE_MS = 10,
    PAUSE_CAP_MS = 2000,
};

static const struct {
    idem__pg_step_fn *enter;
    idem__pg_step_fn *answered; /* NULL: it asks nothing. */
} states[] = {
    [IDEM__PG_TO_LOOK] = {idem__pg_look, idem__pg_look_answered},
    [IDEM__PG_TO_DECIDE] = {idem__pg_decide, NULL},
    [IDEM__PG_TO_LOAD] = {idem__pg_load, idem__pg_load_answered},
    [IDEM__PG_TO_ACT] = {idem__pg_act, NULL},
    [IDEM__PG_TO_EXTEND] = {idem__pg_extend, NULL},
    [IDEM__PG_TO_WRITE] = {idem__pg_write, idem__pg_write_answered},
    [IDEM__PG_TO_LIST] = {idem__pg_list, idem__pg_list_answered},
    [IDEM__PG_TO_PURGE] = {idem__pg_purge, idem__pg_purge_answered},
    [IDEM__PG_TO_PURGE_RAISE] = {idem__pg_purge_raise,
                                 idem__pg_purge_raise_answered},
    [IDEM__PG_TO_PURGE_WAIT] = {idem__pg_purge_wait,
                                idem__pg_purge_wait_answered},
    [IDEM__PG_TO_PURGE_GO] = {idem__pg_purge_go, idem__pg_purge_go_answered},
    [IDEM__PG_TO_PURGE_LIMITS] = {idem__pg_purge_limits,
                                  idem__pg_purge_limits_answered},
    [IDEM__PG_TO_LIMIT] = {idem__pg_limit, idem__pg_limit_answered},
    [IDEM__PG_TO_LIMIT_GO] = {idem__pg_limit_go, idem__pg_limit_go_answered},
    [IDEM__PG_TO_MARK] = {idem__pg_mark, idem__pg_mark_answered},
    [IDEM__PG_TO_MARK_WAIT] = {idem__pg_mark_wait, idem__pg_mark_wait_answered},
    [IDEM__PG_TO_MARK_READ] = {idem__pg_mark_read, idem__pg_mark_read_answered},
};

/* Enters @state, and those that follow, up to one that asks, a pause or the end. */
static void enter(struct idem__pg_task *task, enum idem__pg_where_to state,
                  const struct idem_now *now)
{
    for (;;) {
        enum idem__pg_where_to next;

        task->state = state;
        if (state == IDEM__PG_TO_PAUSE || state == IDEM__PG_TO_DONE) {
            return;
        }
        next = states[state].enter(task, now);
        if (next == state && states[state].answered != NULL) {
            return;
        }
        state = next;
    }
}

static enum idem__pg_where_to first_state(struct idem__pg_task *task,
                                          const struct idem_now *now)
{
    struct idem_op *op = task->op;

    switch (op->verb) {
    case IDEM_OP_BEGIN:
        /* A waiter, and a claim that is probably refused. That the store is closed
         * may be long over. */
        return op->u.begin.join_fence != 0 ||
                       idem__move_closes(idem_str(now->mark)) ||
                       (op->u.begin.flags & IDEM_LIKELY_REPLAY) != 0
                   ? IDEM__PG_TO_LOOK
                   : IDEM__PG_TO_DECIDE;
    case IDEM_OP_IMPORT:
        return IDEM__PG_TO_DECIDE;
    case IDEM_OP_END:
    case IDEM_OP_RENEW:
    case IDEM_OP_EXPIRE:
        task->remembered = idem__pg_recall(task);
        task->has_found = task->remembered;
        return task->remembered ? IDEM__PG_TO_DECIDE : IDEM__PG_TO_LOOK;
    case IDEM_OP_GET:
    case IDEM_OP_RESOLVE:
        return IDEM__PG_TO_LOOK;
    case IDEM_OP_LIST:
        return IDEM__PG_TO_LIST;
    case IDEM_OP_PURGE:
        return IDEM__PG_TO_PURGE;
    case IDEM_OP_LIMIT:
        return IDEM__PG_TO_LIMIT;
    case IDEM_OP_MOVE:
        return IDEM__PG_TO_MARK;
    case IDEM_OP_COUNT:
        break;
    }
    assert(!"an op that no table answers");
    return IDEM__PG_TO_DONE;
}

void idem__pg_task_init(struct idem__pg_task *task,
                        const struct idem__pg_env *env)
{
    task->env = env;
}

void idem__pg_task_start(struct idem__pg_task *task, struct idem_op *op,
                         const struct idem_now *now)
{
    task->op = op;
    op->changed = false;
    task->tries = 0;
    task->waits = 0;
    task->rounds = 0;
    task->ambiguous = false;
    task->has_found = false;
    task->remembered = false;
    task->extending = false;
    if (op->commit != NULL &&
        (op->verb != IDEM_OP_END || op->commit->writes_len > 0)) {
        /* idem_store.commits is not set: no caller gets here. */
        (void)idem__op_fail(op, IDEM_EINVALID,
                            "a PostgreSQL store writes nothing for its caller");
        task->state = IDEM__PG_TO_DONE;
        return;
    }
    enter(task, first_state(task, now), now);
}

void idem__pg_task_answered(struct idem__pg_task *task,
                            const struct idem_now *now)
{
    if (task->request.said == IDEM__PG_OK) {
        memset(&task->op->error, 0, sizeof(task->op->error));
    }
    enter(task, states[task->state].answered(task, now), now);
}

void idem__pg_task_resume(struct idem__pg_task *task,
                          const struct idem_now *now)
{
    enter(task, task->after_pause, now);
}

/* ---- Failing, and asking again ---- */

enum idem__pg_where_to idem__pg_fail(struct idem__pg_task *task,
                                     const struct idem_error *error)
{
    task->op->error = *error;
    task->op->error.code = idem__own_code(error->code, task->ambiguous);
    return IDEM__PG_TO_DONE;
}

enum idem__pg_where_to idem__pg_fail_with(struct idem__pg_task *task, int code,
                                          const char *text)
{
    struct idem_error error;

    (void)idem__error(&error, code, "%s", text);
    return idem__pg_fail(task, &error);
}

static enum idem__pg_where_to pause_before(struct idem__pg_task *task,
                                           unsigned nth,
                                           enum idem__pg_where_to again)
{
    const struct idem_host *host = &task->env->host;
    uint64_t random = 0;

    (void)host->random(host->ctx, &random, sizeof(random));
    task->pause_ms = idem__backoff(nth, PAUSE_BASE_MS, PAUSE_CAP_MS, random);
    task->after_pause = again;
    return IDEM__PG_TO_PAUSE;
}

enum idem__pg_where_to idem__pg_retry(struct idem__pg_task *task,
                                      enum idem__pg_where_to again)
{
    const struct idem__pg_request *request = &task->request;
    unsigned most = request->sent ? TRIES_MAX : AWAY_TRIES_MAX;

    /* The obstacle, should the time be up. */
    task->op->error = request->error;
    task->tries++;
    if (request->said == IDEM__PG_NEVER || task->tries >= most) {
        return idem__pg_fail(task, &request->error);
    }
    return pause_before(task, task->tries, again);
}

enum idem__pg_where_to idem__pg_again(struct idem__pg_task *task,
                                      enum idem__pg_where_to again,
                                      const char *why)
{
    (void)idem__error(&task->op->error, IDEM_EUNAVAILABLE, "PostgreSQL: %s",
                      why);
    return pause_before(task, ++task->waits, again);
}

struct idem__pg_request *idem__pg_ask(struct idem__pg_task *task,
                                      enum idem__pg_ask ask)
{
    struct idem__pg_request *request = &task->request;
    void *user = request->user;

    memset(request, 0, sizeof(*request));
    request->user = user;
    request->ask = ask;
    request->shows =
        task->op->verb == IDEM_OP_GET || task->op->verb == IDEM_OP_LIST;
    memcpy(request->id, task->op->id, IDEM_ID_LEN);
    return request;
}

/* ---- The end ---- */

void idem__pg_task_give_up(struct idem__pg_task *task)
{
    (void)idem__pg_fail_with(task, IDEM_EUNAVAILABLE,
                             task->op->error.text[0] != '\0'
                                 ? task->op->error.text
                                 : "PostgreSQL did not answer in time");
    task->state = IDEM__PG_TO_DONE;
}

void idem__pg_task_no_clock(struct idem__pg_task *task)
{
    if (task->request.said != IDEM__PG_NOT_APPLIED &&
        (task->state == IDEM__PG_TO_WRITE ||
         task->state == IDEM__PG_TO_LIMIT_GO)) {
        task->ambiguous = true; /* Its answer is not looked at. */
    }
    (void)idem__pg_fail_with(task, IDEM_EUNAVAILABLE,
                             "the clock does not answer");
    task->state = IDEM__PG_TO_DONE;
}

void idem__pg_task_reset(struct idem__pg_task *task)
{
    idem__buffer_reset(&task->found_memory, KEEP_BYTES);
    idem__buffer_reset(&task->head, KEEP_BYTES);
    idem__buffer_reset(&task->loaded, KEEP_BYTES);
    idem__buffer_reset(&task->last, KEEP_BYTES);
    task->op = NULL;
    task->ambiguous = false;
}

void idem__pg_task_free(struct idem__pg_task *task)
{
    idem__buffer_free(&task->found_memory);
    idem__buffer_free(&task->head);
    idem__buffer_free(&task->loaded);
    idem__buffer_free(&task->last);
    idem__free(task->victims);
}
