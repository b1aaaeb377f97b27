/* The PostgreSQL store: its requests, opening, inspecting and closing it. */
#include "base/heap.h"
#include "contract/kind.h"
#include "core/error.h"
#include "postgres/store.h"

#include <idem/postgres.h>

/* ---- Tasks as flights of a remote store, each with one request to the connection ---- */

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
    const struct idem__pg_store *store = store_of(remote);
    const struct idem__pg_conn *conn = &store->conn;
    bool host_clock = store->place.host_clock;
    int rc;

    if (conn->missed_time && !host_clock) {
        return IDEM_EUNAVAILABLE;
    }
    /* Before the first answer a decision may guess the time: once an answer has told it,
     * EXTEND lengthens a lease that turns out too short. Later nothing would, so a time
     * that is not known then is an error. */
    rc = idem__remote_now(&remote->base.options.host,
                          host_clock ? NULL : &conn->clock,
                          conn->answered ? 0 : IDEM__REMOTE_GUESS_ERR_MS,
                          ret_now);
    ret_now->fence_floor = conn->fence_floor;
    ret_now->mark = conn->mark;
    return rc;
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

/* ---- Opening and closing ---- */

static void finish(struct idem__remote *remote)
{
    struct idem__pg_store *store = store_of(remote);

    idem__pg_conn_finish(&store->conn);
    idem__pg_place_finish(&store->place);
    idem__flight_env_finish(&store->env.base);
}

static const struct idem_store_ops postgres_ops =
    IDEM__REMOTE_STORE_OPS("postgres");

struct idem__pg_store *idem__pg_store_of(struct idem_store *base)
{
    return base != NULL && base->ops == &postgres_ops
               ? (struct idem__pg_store *)base
               : NULL;
}

static int set_up(struct idem__remote *remote, const char *place,
                  const struct idem_open_options *options,
                  struct idem_error *error)
{
    struct idem__pg_store *store = store_of(remote);
    struct idem_store *base = &remote->base;
    int rc;

    store->conn.watch = -1;
    store->conn.event = -1;
    rc = idem__pg_place_read(place, &store->place, error);
    rc = rc != 0 ? rc : idem__store_init(base, &postgres_ops, options, error);
    if (rc != 0) {
        return rc;
    }
    idem__pg_completion_text(store->place.schema, store->completion);
    remote->endpoint = store->place.endpoint;
    base->url = store->place.url;
    base->lease_min_ms = IDEM_POSTGRES_LEASE_MIN_MS;
    remote->cache_ms = store->place.cache_ms;
    store->env.purged_in = &store->purged_in;
    store->env.known_floor = &store->known_floor;
    if (idem__flight_env_init(&store->env.base, &base->options.host,
                              /* remembers= */ true) != 0) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    rc = idem__pg_conn_init(&store->conn, &store->place, &base->options.host);
    return rc == 0
               ? 0
               : idem__error(
                     error, rc,
                     "PostgreSQL: no file descriptor left for the connection");
}

static const struct idem__remote_ops flights = {
    .service = "PostgreSQL",
    .size = sizeof(struct idem__pg_store),
    .sending_max =
        3 *
        IDEM__PG_REQUESTS_MAX, /* Two batches in flight, and the next one. */
    .set_up = set_up,
    .finish = finish,
    .create = create,
    .reset = reset,
    .destroy = destroy,
    .now = read_now,
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

int idem_postgres_open(const char *place,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error)
{
    return idem__remote_open(&flights, place, options, ret_store, ret_error);
}

int idem_postgres_inspect(struct idem_store *base,
                          struct idem_postgres_info *ret_info,
                          struct idem_error *ret_error)
{
    struct idem__pg_store *store = idem__pg_store_of(base);
    const struct idem__pg_counters *counters;

    if (store == NULL || ret_info->size != sizeof(*ret_info)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "inspect: it is not a PostgreSQL store, or the size "
                           "of the info is not set");
    }
    counters = &store->conn.counters;
    ret_info->schema = store->place.schema;
    ret_info->endpoint = store->place.endpoint;
    ret_info->connections =
        __atomic_load_n(&counters->connections, __ATOMIC_RELAXED);
    ret_info->round_trips =
        __atomic_load_n(&counters->batches, __ATOMIC_RELAXED);
    ret_info->requests = __atomic_load_n(&counters->requests, __ATOMIC_RELAXED);
    return 0;
}

/* ---- Its kind, by which idem_open() finds it, under two names ---- */

const struct idem_store_kind idem_postgres_kind = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_kind),
    .scheme = "postgres",
    .open = idem_postgres_open,
    .create = idem_postgres_create,
    .check = idem_postgres_check,
    .schema = idem_postgres_template,
    .completion = idem_postgres_completion,
};

const struct idem_store_kind idem_postgresql_kind = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_kind),
    .scheme = "postgresql",
    .open = idem_postgres_open,
    .create = idem_postgres_create,
    .check = idem_postgres_check,
    .schema = idem_postgres_template,
    .completion = idem_postgres_completion,
};
