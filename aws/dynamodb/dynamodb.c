/* Opening, inspecting and closing a DynamoDB store. */
#include "aws/dynamodb/store.h"
#include "base/heap.h"
#include "base/process.h"
#include "core/error.h"

#include <idem/dynamodb.h>

/* Also of a store that is half built. */
static void finish(struct idem__dynamodb_store *store)
{
    idem__aws_client_close(store->client);
    idem__aws_provider_close(store->provider);
    idem__claims_destroy(store->env.base.claims);
    idem__free(store->env.base.scratch);
    idem__remote_finish(&store->remote);
    idem__store_finish(&store->remote.base);
    idem__free(store);
}

static void dynamodb_close(struct idem_store *base)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;

    /* After fork() the connections are the parent's. */
    if (base->pid == idem__process()) {
        idem__remote_stop(&store->remote);
        finish(store);
    }
}

static const struct idem_store_ops dynamodb_ops = {
    .name = "dynamodb",
    .submit = idem__remote_submit,
    .cancel = idem__remote_cancel,
    .drive = idem__remote_drive,
    .close = dynamodb_close,
    .fd = idem__remote_fd,
};

static int find_endpoint(struct idem__dynamodb_store *store,
                         struct idem_error *error)
{
    struct idem__aws_endpoint_options options = {
        .service = "dynamodb",
        .service_env = "DYNAMODB",
        .region = idem_str(store->place.region),
        .url = idem_str(store->place.endpoint),
        .insecure = store->place.insecure,
    };

    return idem__aws_endpoint_find(&options, &idem__aws_env_process,
                                   &store->endpoint, error);
}

static int open_client(struct idem__dynamodb_store *store,
                       struct idem_error *error)
{
    struct idem__aws_options options = {
        .host = store->remote.base.options.host,
    };
    int rc = find_endpoint(store, error);

    if (rc == 0) {
        rc = idem__aws_provider_default(&idem__aws_env_process,
                                        store->endpoint.region,
                                        &store->provider, error);
    }
    options.provider = store->provider;
    options.ca_file =
        idem__aws_env_process.get(idem__aws_env_process.ctx, "AWS_CA_BUNDLE");
    if (rc == 0) {
        rc = idem__aws_client_open(&options, &store->client, error);
    }
    return rc;
}

/* Of a global table whose replicas lag, one region may write. */
static int check_writer(const struct idem__dynamodb_store *store,
                        struct idem_error *error)
{
    const char *writer = store->place.writer;
    bool reads = (store->remote.base.options.flags & IDEM_OPEN_READONLY) != 0;

    if (writer[0] == '\0' || reads ||
        strcmp(writer, store->endpoint.region) == 0) {
        return 0;
    }
    return idem__error(error, IDEM_ECONFIG,
                       "the store's URL says that %s alone writes to this "
                       "table, and this is %s",
                       writer, store->endpoint.region);
}

static int prepare_tasks(struct idem__dynamodb_store *store,
                         struct idem_error *error)
{
    store->env.table = store->place.table;
    store->env.base.host = store->remote.base.options.host;
    store->env.orphans = &store->orphans;
    store->env.gate = &store->gate;
    store->env.base.scratch = idem__alloc(IDEM_HEAD_MAX);
    if (store->env.base.scratch == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    /* Where others write, what was written says nothing of what is there. */
    if (!idem__layout_of(&store->env.table)->ours) {
        return 0;
    }
    store->env.base.claims = idem__claims_create();
    if (store->env.base.claims == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    return 0;
}

/* On failure @store is half built, and finish() takes it. */
static int set_up(struct idem__dynamodb_store *store, const char *place,
                  const struct idem_open_options *options,
                  struct idem_error *error)
{
    enum {
        OWNER_MARGIN_MS = 2000,
        LAYOUT_RESULT_MAX = 120 * 1024,
    };
    int rc;

    idem__remote_init(&store->remote, &idem__dynamodb_flights);
    store->remote.endpoint = store->endpoint.url;
    rc = idem__place_read(place, &store->place, error);
    if (rc == 0) {
        rc = idem__store_init(&store->remote.base, &dynamodb_ops, options,
                              error);
    }
    if (rc == 0 &&
        (store->remote.base.options.flags & IDEM_OPEN_BUDGETS) != 0) {
        rc = idem__layout_check_budgets(&store->place.table, error);
    }
    if (rc != 0) {
        return rc;
    }
    store->remote.base.margin_ms = OWNER_MARGIN_MS;
    store->remote.base.lease_min_ms = IDEM_DYNAMODB_LEASE_MIN_MS;
    /* One item holds all of it, and the result twice. */
    if (!idem__layout_of(&store->place.table)->parts &&
        store->remote.base.options.result_max > LAYOUT_RESULT_MAX) {
        store->remote.base.options.result_max = LAYOUT_RESULT_MAX;
    }
    return 0;
}

int idem_dynamodb_open(const char *place,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error)
{
    bool threaded = options != NULL && (options->flags & IDEM_OPEN_THREAD) != 0;
    struct idem__dynamodb_store *store = idem__zalloc(sizeof(*store));
    int rc;

    if (store == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = set_up(store, place, options, ret_error);
    if (rc == 0) {
        rc = open_client(store, ret_error);
    }
    if (rc == 0) {
        rc = check_writer(store, ret_error);
    }
    if (rc == 0) {
        rc = idem__place_write(&store->place, &store->endpoint, store->url,
                               ret_error);
    }
    if (rc == 0) {
        store->remote.base.url = store->url;
        store->remote.base.remote = true;
        store->remote.base.commits = true;
        rc = prepare_tasks(store, ret_error);
    }
    if (rc == 0 && threaded && idem__remote_start_thread(&store->remote) != 0) {
        rc = idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    if (rc != 0) {
        finish(store);
        return rc;
    }
    *ret_store = &store->remote.base;
    return 0;
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
            "inspect: it is not a DynamoDB store, or the size of "
            "the info is not set");
    }
    if (host->clock(host->ctx, &reading) != 0) {
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "the clock does not answer");
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
        __atomic_load_n(&store->orphans.deleted, __ATOMIC_RELAXED);
    ret_info->clock_known =
        idem__learned_clock_now(&clock, reading.boot_ms, &ret_info->clock_ms,
                                &ret_info->clock_err_ms);
    ret_info->clock_off_ms =
        ret_info->clock_known ? reading.wall_ms - ret_info->clock_ms : 0;
    return 0;
}
