/* The states of a task as a table, and its functions for the machine of remote stores. */
#include "postgres/task.h"

#include "base/heap.h"
#include "core/error.h"
#include "core/move.h"

enum {
    KEEP_BYTES = 2 * IDEM_HEAD_MAX, /* Memory that is kept for the next op. */
};

static struct idem__pg_task *task_of(struct idem__flight *flight)
{
    return (struct idem__pg_task *)flight;
}

/* ---- Asking ---- */

struct idem__pg_request *idem__pg_ask(struct idem__pg_task *task,
                                      enum idem__pg_ask ask)
{
    struct idem__pg_request *request = &task->request;
    void *user = request->user;

    memset(request, 0, sizeof(*request));
    request->user = user;
    request->ask = ask;
    request->shows = task->base.op->verb == IDEM_OP_GET ||
                     task->base.op->verb == IDEM_OP_LIST;
    memcpy(request->id, task->base.op->id, IDEM_ID_LEN);
    return request;
}

/* ---- MARK, MARK_WAIT and MARK_READ: the mark of a store that is moved ----
 *
 * A claim checks the mark in its own statement. A claim that began before the mark was
 * committed does not see it, and no list would show it: MARK_WAIT waits until all of those
 * have ended. */

static idem__state mark(struct idem__pg_task *task)
{
    const struct idem_op *op = task->base.op;
    struct idem__pg_request *request;

    if (!op->u.move.set) {
        return IDEM__STATE_MARK_READ;
    }
    request = idem__pg_ask(task, IDEM__PG_ASK_MARK);
    request->name = op->u.move.was;
    request->subject = op->u.move.mark;
    request->numbers[0] = idem__move_closes(op->u.move.mark);
    request->numbers[1] = (int64_t)op->u.move.fence_floor;
    return IDEM__STATE_SEND;
}

static idem__state mark_answered(struct idem__pg_task *task)
{
    /* The server may have set the mark. Asking again is harmless, because MARK is
     * conditional on the former mark. */
    if (task->request.said == IDEM__SAID_UNKNOWN) {
        task->base.ambiguous = true;
    }
    if (task->request.said != IDEM__SAID_OK) {
        return idem__pg_retry(task, IDEM__STATE_MARK);
    }
    task->base.ambiguous =
        true; /* The mark may be ours: MARK_READ finds out. */
    return IDEM__STATE_MARK_WAIT;
}

static idem__state mark_wait_answered(struct idem__pg_task *task)
{
    (void)task;
    return IDEM__STATE_MARK_READ;
}

static idem__state mark_read_answered(struct idem__pg_task *task)
{
    struct idem_op *op = task->base.op;
    bool marked = task->base.ambiguous;
    struct idem_slice found;
    char mark[IDEM_MARK_MAX];

    if (!idem__pg_text(task->request.result, 0, 0, &found) ||
        found.len >= sizeof(mark)) {
        return idem__flight_fail_with(
            &task->base, IDEM_ECORRUPT,
            "the mark in the table idem_store cannot be "
            "trusted");
    }
    if (found.len > 0) {
        memcpy(mark, found.base, found.len);
    }
    mark[found.len] = '\0';
    idem__move_answer(op, mark, task->base.now);
    op->changed = marked && op->error.code == 0;
    return IDEM__STATE_DONE;
}

/* ---- The states ---- */

static const struct {
    enum idem__pg_ask ask; /* Where enter is NULL. */
    idem__pg_step_fn *enter;
    idem__pg_step_fn *answered;
    bool takes_all; /* answered also takes an answer that is not OK. */
} rows[] = {
    [IDEM__STATE_LOOK] = {.ask = IDEM__PG_ASK_LOOK,
                          .answered = idem__pg_look_answered},
    [IDEM__STATE_LOAD] = {.enter = idem__pg_load,
                          .answered = idem__pg_load_answered},
    [IDEM__STATE_WRITE] = {.enter = idem__pg_write,
                           .answered = idem__pg_write_answered,
                           .takes_all = true},
    [IDEM__STATE_LIST] = {.enter = idem__pg_list,
                          .answered = idem__pg_list_answered},
    [IDEM__STATE_PURGE] = {.enter = idem__pg_purge,
                           .answered = idem__pg_purge_answered},
    [IDEM__STATE_PURGE_RAISE] = {.enter = idem__pg_purge_raise,
                                 .answered = idem__pg_purge_raise_answered},
    [IDEM__STATE_PURGE_WAIT] = {.ask = IDEM__PG_ASK_WAIT,
                                .answered = idem__pg_purge_wait_answered},
    [IDEM__STATE_PURGE_GO] = {.enter = idem__pg_purge_go,
                              .answered = idem__pg_purge_go_answered},
    [IDEM__STATE_PURGE_LIMITS] = {.enter = idem__pg_purge_limits,
                                  .answered = idem__pg_purge_limits_answered},
    [IDEM__STATE_LIMIT] = {.enter = idem__pg_limit,
                           .answered = idem__pg_limit_answered},
    [IDEM__STATE_LIMIT_GO] = {.enter = idem__pg_limit_go,
                              .answered = idem__pg_limit_go_answered,
                              .takes_all = true},
    [IDEM__STATE_MARK] = {.enter = mark,
                          .answered = mark_answered,
                          .takes_all = true},
    [IDEM__STATE_MARK_WAIT] = {.ask = IDEM__PG_ASK_MARK_WAIT,
                               .answered = mark_wait_answered},
    [IDEM__STATE_MARK_READ] = {.ask = IDEM__PG_ASK_MARK_READ,
                               .answered = mark_read_answered},
};

static idem__state enter(struct idem__flight *flight)
{
    flight->large = false;
    if (rows[flight->state].enter != NULL) {
        return rows[flight->state].enter(task_of(flight));
    }
    (void)idem__pg_ask(task_of(flight), rows[flight->state].ask);
    return IDEM__STATE_SEND;
}

static idem__state answered(struct idem__flight *flight)
{
    struct idem__pg_task *task = task_of(flight);
    bool is_ok = task->request.said == IDEM__SAID_OK;

    if (is_ok) {
        memset(&flight->op->error, 0, sizeof(flight->op->error));
    }
    return is_ok || rows[flight->state].takes_all
               ? rows[flight->state].answered(task)
               : idem__pg_retry(task, flight->state);
}

idem__state idem__pg_retry(struct idem__pg_task *task, idem__state again)
{
    const struct idem__pg_request *request = &task->request;

    return idem__flight_retry(&task->base, request->said, request->sent,
                              &request->error, again);
}

/* ---- Beginning ---- */

static idem__state start(struct idem__flight *flight)
{
    const struct idem_op *op = flight->op;

    if (op->commit != NULL &&
        (op->verb != IDEM_OP_END || op->commit->writes_len > 0)) {
        /* Never: idem_store.commits is not set, so no caller gets here. */
        return idem__flight_fail_with(flight, IDEM_EINVALID,
                                      "a PostgreSQL store writes nothing for "
                                      "its caller");
    }
    /* The mark that we read last may be out of date. So where it closes the store, a claim
     * looks first, which reads the mark anew. */
    return idem__flight_first(flight,
                              idem__move_closes(idem_str(flight->now->mark)));
}

/* ---- Claims of this handle ---- */

static void remember(struct idem__flight *flight)
{
    idem__flight_remember(flight, /* more= */ NULL, 0);
}

static bool recall(struct idem__flight *flight)
{
    struct idem__pg_row *found = &task_of(flight)->found;
    const uint8_t *more;

    if (!idem__flight_recall(flight, &more)) {
        return false;
    }
    memcpy(found->tag,
           (const uint8_t *)found->head.base + found->head.len -
               IDEM__PG_TAG_LEN,
           IDEM__PG_TAG_LEN);
    found->has_bodies = false;
    return true;
}

/* ---- Claims that are too short ---- */

static void rewrite(struct idem__flight *flight)
{
    task_of(flight)->next = task_of(flight)->found.record;
}

static bool found_written(struct idem__flight *flight)
{
    task_of(flight)->found.record = task_of(flight)->next;
    task_of(flight)->found.has_bodies = false;
    return true;
}

static bool may_have_written(const struct idem__flight *flight)
{
    const struct idem__pg_task *task = (const struct idem__pg_task *)flight;

    return (flight->state == IDEM__STATE_WRITE ||
            flight->state == IDEM__STATE_LIMIT_GO) &&
           task->request.said != IDEM__SAID_NOT_APPLIED;
}

static const struct idem__machine_ops task_ops = {
    .service = "PostgreSQL",
    .rounds_max = 64,
    .pause_base_ms = 10,
    .start = start,
    .enter = enter,
    .answered = answered,
    .decide = idem__pg_task_decide,
    .prepare = idem__pg_task_prepare,
    .rewrite = rewrite,
    .found_written = found_written,
    .remember = remember,
    .recall = recall,
    .may_have_written = may_have_written,
};

void idem__pg_task_init(struct idem__pg_task *task,
                        const struct idem__pg_env *env)
{
    task->env = env;
    task->base.ops = &task_ops;
    task->base.env = &env->base;
    task->base.found = &task->found.record;
    task->base.found_head = &task->found.head;
    task->base.next_record = &task->next;
}

/* ---- Memory ---- */

void idem__pg_task_reset(struct idem__pg_task *task)
{
    idem__buffer_reset(&task->loaded, KEEP_BYTES);
    idem__flight_reset(&task->base);
}

void idem__pg_task_free(struct idem__pg_task *task)
{
    idem__buffer_free(&task->loaded);
    idem__free(task->victims);
    idem__flight_free(&task->base);
}
