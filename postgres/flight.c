/* Tasks as flights of a remote store: one request of the connection's for each. */
#include "base/heap.h"
#include "postgres/store.h"

static struct idem__pg_store *store_of(struct idem__remote *remote)
{
    return (struct idem__pg_store *)remote;
}

static struct idem__pg_task *task_of(struct idem__flight *flight)
{
    return (struct idem__pg_task *)flight;
}

static struct idem__pg_conn *conn_of(const struct idem__flight *flight)
{
    return &((struct idem__pg_store *)flight->op->store)->conn;
}

/* ---- From one op to the next ---- */

static struct idem__flight *create(struct idem__remote *remote)
{
    struct idem__pg_task *task = idem__zalloc(sizeof(*task));

    if (task == NULL) {
        return NULL;
    }
    idem__pg_task_init(task, &store_of(remote)->env);
    task->request.user = task;
    return &task->base;
}

static bool reset(struct idem__flight *flight)
{
    idem__pg_task_reset(task_of(flight));
    return true;
}

static void destroy(struct idem__flight *flight)
{
    idem__pg_task_free(task_of(flight));
    idem__free(task_of(flight));
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

static void send(struct idem__flight *flight, int64_t deadline_ms)
{
    task_of(flight)->request.deadline_ms = deadline_ms;
    idem__pg_conn_send(conn_of(flight), &task_of(flight)->request);
}

static void abort_request(struct idem__flight *flight)
{
    idem__pg_conn_abort(conn_of(flight), &task_of(flight)->request);
}

static void work(struct idem__remote *remote)
{
    idem__pg_conn_work(&store_of(remote)->conn);
}

static struct idem__flight *reap(struct idem__remote *remote)
{
    struct idem__pg_request *request =
        idem__pg_conn_reap(&store_of(remote)->conn);
    struct idem__flight *flight;

    if (request == NULL) {
        return NULL;
    }
    flight = request->user;
    flight->heard = request->said == IDEM__SAID_OK ||
                    request->said == IDEM__SAID_NEVER ||
                    (request->said == IDEM__SAID_NOT_APPLIED && request->sent);
    flight->timed_out = request->timed_out;
    return flight;
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
    .start = idem__flight_start,
    .resume = idem__flight_resume,
    .answered = idem__flight_answered,
    .no_clock = idem__flight_no_clock,
    .give_up = idem__flight_give_up,
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
