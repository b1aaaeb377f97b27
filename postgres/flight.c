/* Tasks as flights of a remote store: one request of the connection's for each. */
#include "base/heap.h"
#include "postgres/store.h"

enum {
    LARGE_BODY = 256 * 1024,
};

struct flight {
    struct idem__flight base;
    struct idem__pg_store *store;
    struct idem__pg_task task;
};

static struct idem__pg_store *store_of(struct idem__remote *remote)
{
    return (struct idem__pg_store *)remote;
}

static struct flight *from_base(struct idem__flight *base)
{
    return (struct flight *)base;
}

/* ---- From one op to the next ---- */

static struct idem__flight *create(struct idem__remote *remote)
{
    struct idem__pg_store *store = store_of(remote);
    struct flight *flight = idem__zalloc(sizeof(*flight));

    if (flight == NULL) {
        return NULL;
    }
    idem__pg_task_init(&flight->task, &store->env);
    flight->task.request.user = flight;
    flight->store = store;
    return &flight->base;
}

static bool reset(struct idem__flight *base)
{
    idem__pg_task_reset(&from_base(base)->task);
    return true;
}

static void destroy(struct idem__flight *base)
{
    struct flight *flight = from_base(base);

    idem__pg_task_free(&flight->task);
    idem__free(flight);
}

/* ---- Steps ---- */

/* Says what the task does next. */
static void follow(struct flight *flight)
{
    const struct idem__pg_task *task = &flight->task;
    const struct idem__pg_write *write = &task->request.write;

    switch (task->state) {
    case IDEM__PG_TO_PAUSE:
        flight->base.next = IDEM__FLIGHT_PAUSE;
        flight->base.pause_ms = task->pause_ms;
        return;
    case IDEM__PG_TO_DONE:
        flight->base.next = IDEM__FLIGHT_DONE;
        return;
    default:
        flight->base.next = IDEM__FLIGHT_SEND;
        flight->base.large =
            task->state == IDEM__PG_TO_LOAD ||
            (task->state == IDEM__PG_TO_WRITE &&
             write->record->result.bytes.len + write->record->input.len >
                 LARGE_BODY);
        return;
    }
}

static void start(struct idem__flight *base, const struct idem_now *now)
{
    struct flight *flight = from_base(base);

    idem__pg_task_start(&flight->task, base->op, now);
    follow(flight);
}

static void resume(struct idem__flight *base, const struct idem_now *now)
{
    struct flight *flight = from_base(base);

    idem__pg_task_resume(&flight->task, now);
    follow(flight);
}

static void answered(struct idem__flight *base, const struct idem_now *now)
{
    struct flight *flight = from_base(base);

    idem__pg_task_answered(&flight->task, now);
    follow(flight);
}

static void no_clock(struct idem__flight *base)
{
    struct flight *flight = from_base(base);

    flight->task.op = base->op; /* It may not have been started. */
    idem__pg_task_no_clock(&flight->task);
    follow(flight);
}

static void give_up(struct idem__flight *base)
{
    struct flight *flight = from_base(base);

    idem__pg_task_give_up(&flight->task);
    follow(flight);
}

/* ---- Time ---- */

static int read_now(struct idem__remote *remote, struct idem_now *ret_now)
{
    enum {
        MARGIN_MS = 2000,
        /* Before the first answer: a clock that is kept right. What is written by it is
         * mended when the answer has told the time, so after that it does not do. */
        GUESS_ERR_MS = 2000,
    };
    struct idem__pg_store *store = store_of(remote);
    const struct idem_host *host = &remote->base.options.host;
    struct idem_clock_reading reading;

    memset(ret_now, 0, sizeof(*ret_now));
    if (host->clock(host->ctx, &reading) != 0 ||
        (store->conn.missed_time && !store->place.host_clock)) {
        return IDEM_EUNAVAILABLE;
    }
    ret_now->boot_ms = reading.boot_ms;
    memcpy(ret_now->boot_id, reading.boot_id, sizeof(reading.boot_id));
    ret_now->margin_ms = MARGIN_MS;
    ret_now->store_ms = reading.wall_ms;
    ret_now->fence_floor = store->conn.fence_floor;
    ret_now->mark = store->conn.mark;
    if (!store->place.host_clock &&
        !idem__learned_clock_now(&store->conn.clock, reading.boot_ms,
                                 &ret_now->store_ms, &ret_now->store_err_ms)) {
        if (store->conn.answered) {
            return IDEM_EUNAVAILABLE;
        }
        ret_now->store_err_ms = GUESS_ERR_MS;
    }
    return 0;
}

/* ---- Requests ---- */

static void send(struct idem__flight *base, int64_t deadline_ms)
{
    struct flight *flight = from_base(base);

    flight->task.request.deadline_ms = deadline_ms;
    idem__pg_conn_send(&flight->store->conn, &flight->task.request);
}

static void abort_request(struct idem__flight *base)
{
    struct flight *flight = from_base(base);

    idem__pg_conn_abort(&flight->store->conn, &flight->task.request);
}

static void work(struct idem__remote *remote)
{
    idem__pg_conn_work(&store_of(remote)->conn);
}

static struct idem__flight *reap(struct idem__remote *remote)
{
    struct idem__pg_request *request =
        idem__pg_conn_reap(&store_of(remote)->conn);
    struct flight *flight;

    if (request == NULL) {
        return NULL;
    }
    flight = request->user;
    flight->base.heard =
        request->said == IDEM__PG_OK || request->said == IDEM__PG_NEVER ||
        (request->said == IDEM__PG_NOT_APPLIED && request->sent);
    flight->base.timed_out = request->timed_out;
    return &flight->base;
}

static void push(struct idem__remote *remote)
{
    idem__pg_conn_push(&store_of(remote)->conn);
}

static size_t wanted(struct idem__remote *remote)
{
    return idem__pg_conn_wanted(&store_of(remote)->conn);
}

static void wait_for_work(struct idem__remote *remote, int64_t deadline_ms)
{
    idem__pg_conn_wait(&store_of(remote)->conn, deadline_ms);
}

static void wake(struct idem__remote *remote)
{
    idem__pg_conn_wake(&store_of(remote)->conn);
}

static int fd(struct idem__remote *remote)
{
    return store_of(remote)->conn.watch;
}

static int64_t due_ms(struct idem__remote *remote)
{
    return idem__pg_conn_due_ms(&store_of(remote)->conn);
}

static bool reads(const struct idem_op *op)
{
    return op->verb == IDEM_OP_GET || op->verb == IDEM_OP_LIST;
}

const struct idem__remote_ops idem__pg_flights = {
    .service = "PostgreSQL",
    .sending_max =
        3 * IDEM__PG_REQUESTS_MAX, /* Two batches, and the one after them. */
    .create = create,
    .reset = reset,
    .destroy = destroy,
    .now = read_now,
    .start = start,
    .resume = resume,
    .answered = answered,
    .no_clock = no_clock,
    .give_up = give_up,
    .send = send,
    .abort = abort_request,
    .work = work,
    .reap = reap,
    .push = push,
    .wanted = wanted,
    .wait = wait_for_work,
    .wake = wake,
    .fd = fd,
    .due_ms = due_ms,
    .reads = reads,
};
