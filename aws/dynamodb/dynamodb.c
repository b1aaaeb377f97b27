/* The DynamoDB store: its requests, opening, inspecting and closing it. */
#include "aws/dynamodb/store.h"
#include "base/heap.h"
#include "contract/kind.h"
#include "core/error.h"

#include <idem/dynamodb.h>

/* ---- A task is a flight of a remote store, and has one request of the client ---- */

enum {
    FIRST_ANSWER = 4096,
};

static struct idem__dynamodb_store *store_of(struct idem__remote *remote)
{
    return (struct idem__dynamodb_store *)remote;
}

static struct idem__task *task_of(struct idem__flight *flight)
{
    return (struct idem__task *)flight;
}

static struct idem__aws_client *client_of(const struct idem__flight *flight)
{
    return ((struct idem__dynamodb_store *)flight->op->store)->client;
}

/* ---- From one op to the next ---- */

static struct idem__flight *create(struct idem__remote *remote)
{
    struct idem__dynamodb_store *store = store_of(remote);
    struct idem__task *task = idem__zalloc(sizeof(*task));

    if (task == NULL) {
        return NULL;
    }
    /* Most answers fit, so that none has to allocate while it comes in. */
    task->request.answer = idem__alloc(FIRST_ANSWER);
    if (task->request.answer == NULL) {
        idem__free(task);
        return NULL;
    }
    task->request.answer_cap = FIRST_ANSWER;
    idem__task_init(task, &store->env);
    task->request.endpoint = &store->endpoint;
    task->request.user = task;
    return &task->base;
}

static bool reset(struct idem__flight *flight)
{
    idem__task_reset(task_of(flight));
    return task_of(flight)->request.answer_cap != 0;
}

static void destroy(struct idem__flight *flight)
{
    idem__task_free(task_of(flight));
    idem__free(task_of(flight));
}

/* ---- Time ---- */

static int read_now(struct idem__remote *remote, struct idem_now *ret_now)
{
    enum {
        /* All that an answer without a time proves of this host's clock: the service
         * refuses a signature that is further off. */
        SIGNED_ERR_MS = 15 * 60 * 1000,
    };
    struct idem__dynamodb_store *store = store_of(remote);

    return idem__remote_now(
        &remote->base.options.host,
        store->place.host_clock ? NULL : idem__aws_client_clock(store->client),
        store->answered ? SIGNED_ERR_MS : IDEM__REMOTE_GUESS_ERR_MS, ret_now);
}

/* ---- Requests ---- */

static void send(struct idem__flight *flight, int64_t deadline_ms)
{
    task_of(flight)->request.deadline_ms = deadline_ms;
    idem__aws_submit(client_of(flight), &task_of(flight)->request);
}

static void abort_request(struct idem__flight *flight)
{
    idem__aws_abort(client_of(flight), &task_of(flight)->request);
}

static void work(struct idem__remote *remote)
{
    idem__aws_work(store_of(remote)->client);
}

static struct idem__flight *reap(struct idem__remote *remote)
{
    struct idem__dynamodb_store *store = store_of(remote);
    struct idem__aws_request *request = idem__aws_reap(store->client);
    struct idem__flight *flight;

    if (request == NULL) {
        return NULL;
    }
    flight = request->user;
    store->answered = store->answered || request->outcome == IDEM__AWS_ANSWERED;
    /* A proxy may answer 5xx for a service that is down: such an answer does not keep the
     * breaker closed. */
    flight->heard =
        request->outcome == IDEM__AWS_ANSWERED && request->status < 500;
    flight->timed_out = request->timed_out;
    return flight;
}

static void wait_for_work(struct idem__remote *remote, int64_t deadline_ms)
{
    idem__aws_wait(store_of(remote)->client, deadline_ms);
}

static void wake(struct idem__remote *remote)
{
    idem__aws_wake(store_of(remote)->client);
}

static int fd(struct idem__remote *remote)
{
    return idem__aws_fd(store_of(remote)->client);
}

static int64_t due_ms(struct idem__remote *remote)
{
    return idem__aws_due_ms(store_of(remote)->client);
}

static bool reads(const struct idem_op *op)
{
    return op->verb == IDEM_OP_GET || op->verb == IDEM_OP_LIST;
}

/* ---- Opening and closing ---- */

static void finish(struct idem__remote *remote)
{
    struct idem__dynamodb_store *store = store_of(remote);

    idem__aws_client_close(store->client);
    idem__aws_provider_close(store->provider);
    idem__flight_env_finish(&store->env.base);
}

static const struct idem_store_ops dynamodb_ops =
    IDEM__REMOTE_STORE_OPS("dynamodb");

static int open_client(struct idem__dynamodb_store *store,
                       struct idem_error *error)
{
    const struct idem__aws_env *env = &idem__aws_env_process;
    const struct idem__aws_endpoint_options where = {
        .service = "dynamodb",
        .service_env = "DYNAMODB",
        .region = idem_str(store->place.region),
        .url = idem_str(store->place.endpoint),
        .insecure = store->place.insecure,
    };
    struct idem__aws_options options = {
        .host = store->remote.base.options.host,
        .ca_file = env->get(env->ctx, "AWS_CA_BUNDLE"),
    };
    int rc = idem__aws_endpoint_find(&where, env, &store->endpoint, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__aws_provider_default(env, store->endpoint.region,
                                    &store->provider, error);
    if (rc != 0) {
        return rc;
    }
    options.provider = store->provider;
    return idem__aws_client_open(&options, &store->client, error);
}

/* In a global table with eventual consistency a condition holds within one region only, so
 * the store URL can name the one region that writes. */
static int check_writer(const struct idem__dynamodb_store *store,
                        struct idem_error *error)
{
    const char *writer = store->place.writer;
    bool reads = (store->remote.base.options.flags & IDEM_OPEN_READONLY) != 0;

    if (writer[0] == '\0' || reads ||
        strcmp(writer, store->endpoint.region) == 0) {
        return 0;
    }
    return idem__error(
        error, IDEM_ECONFIG,
        "the store URL lets only %s write to this table, and this is %s",
        writer, store->endpoint.region);
}

static int prepare_tasks(struct idem__dynamodb_store *store,
                         struct idem_error *error)
{
    /* Another library writes without our conditions, so what this handle wrote last need not
     * be there any more: read the item before each end. */
    bool remembers = idem__layout_of(&store->place.table)->ours;

    store->env.table = store->place.table;
    store->env.parts_purged = &store->parts_purged;
    store->env.gate = &store->gate;
    return idem__flight_env_init(&store->env.base,
                                 &store->remote.base.options.host,
                                 remembers) == 0
               ? 0
               : idem__error_plain(error, IDEM_ENOMEM);
}

static int set_up(struct idem__remote *remote, const char *place,
                  const struct idem_open_options *options,
                  struct idem_error *error)
{
    enum {
        LAYOUT_RESULT_MAX = 120 * 1024,
    };
    struct idem__dynamodb_store *store = store_of(remote);
    struct idem_store *base = &remote->base;
    int rc;

    remote->endpoint = store->endpoint.url;
    rc = idem__place_read(place, &store->place, error);
    rc = rc != 0 ? rc : idem__store_init(base, &dynamodb_ops, options, error);
    if (rc == 0 && (base->options.flags & IDEM_OPEN_BUDGETS) != 0) {
        rc = idem__layout_check_budgets(&store->place.table, error);
    }
    if (rc != 0) {
        return rc;
    }
    base->lease_min_ms = IDEM_DYNAMODB_LEASE_MIN_MS;
    /* In another library's layout one item holds all of a record, and the result twice. */
    if (!idem__layout_of(&store->place.table)->parts &&
        base->options.result_max > LAYOUT_RESULT_MAX) {
        base->options.result_max = LAYOUT_RESULT_MAX;
    }
    rc = open_client(store, error);
    rc = rc != 0 ? rc : check_writer(store, error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__place_write(&store->place, &store->endpoint, store->url, error);
    if (rc != 0) {
        return rc;
    }
    base->url = store->url;
    remote->cache_ms = store->place.cache_ms;
    base->commits = true;
    return prepare_tasks(store, error);
}

static const struct idem__remote_ops flights = {
    .service = "DynamoDB",
    .size = sizeof(struct idem__dynamodb_store),
    .sending_max = 64,
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
    .wait = wait_for_work,
    .wake = wake,
    .fd = fd,
    .due_ms = due_ms,
    .reads = reads,
};

int idem_dynamodb_open(const char *place,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error)
{
    return idem__remote_open(&flights, place, options, ret_store, ret_error);
}

int idem_dynamodb_inspect(struct idem_store *base,
                          struct idem_dynamodb_info *ret_info,
                          struct idem_error *ret_error)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;
    const struct idem_host *host = &base->options.host;
    struct idem__aws_counters counters;
    struct idem__learned_clock clock;
    struct idem_clock_reading reading;

    if (base->ops != &dynamodb_ops || ret_info->size != sizeof(*ret_info)) {
        return idem__error(
            ret_error, IDEM_EINVALID,
            "inspect: not a DynamoDB store, or the size of the info is not "
            "set");
    }
    if (host->clock(host->ctx, &reading) != 0) {
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "cannot read the clock");
    }
    idem__aws_client_counters(store->client, &counters);
    idem__aws_client_shown_clock(store->client, &clock);
    ret_info->table = store->place.table.name;
    ret_info->region = store->endpoint.region;
    ret_info->endpoint = store->endpoint.url;
    ret_info->requests = counters.requests;
    ret_info->sends = counters.sends;
    ret_info->connections = counters.connections;
    ret_info->parts_purged =
        __atomic_load_n(&store->parts_purged, __ATOMIC_RELAXED);
    ret_info->clock_known =
        idem__learned_clock_now(&clock, reading.boot_ms, &ret_info->clock_ms,
                                &ret_info->clock_err_ms);
    ret_info->clock_off_ms =
        ret_info->clock_known ? reading.wall_ms - ret_info->clock_ms : 0;
    return 0;
}

/* ---- The kind, by which idem_open() finds the store ---- */

const struct idem_store_kind idem_dynamodb_kind = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_kind),
    .scheme = "dynamodb",
    .open = idem_dynamodb_open,
    .create = idem_dynamodb_create,
    .check = idem_dynamodb_check,
};
