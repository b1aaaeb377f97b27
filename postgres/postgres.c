/* Opening, inspecting and closing a PostgreSQL store. */
#include "base/heap.h"
#include "base/process.h"
#include "contract/kind.h"
#include "core/error.h"
#include "postgres/store.h"

#include <idem/postgres.h>

/* Also of a store that is half built. */
static void finish(struct idem__pg_store *store)
{
    idem__pg_conn_finish(&store->conn);
    idem__pg_place_finish(&store->place);
    idem__claims_destroy(store->env.base.claims);
    idem__free(store->env.base.scratch);
    idem__remote_finish(&store->remote);
    idem__store_finish(&store->remote.base);
    idem__free(store);
}

static void postgres_close(struct idem_store *base)
{
    struct idem__pg_store *store = (struct idem__pg_store *)base;

    /* After fork() the connection is the parent's. */
    if (base->pid == idem__process()) {
        idem__remote_stop(&store->remote);
        finish(store);
    }
}

static const struct idem_store_ops postgres_ops = {
    .name = "postgres",
    .submit = idem__remote_submit,
    .cancel = idem__remote_cancel,
    .drive = idem__remote_drive,
    .close = postgres_close,
    .fd = idem__remote_fd,
};

struct idem__pg_store *idem__pg_store_of(struct idem_store *base)
{
    return base != NULL && base->ops == &postgres_ops
               ? (struct idem__pg_store *)base
               : NULL;
}

/* On failure @store is half built, and finish() takes it. */
static int set_up(struct idem__pg_store *store, const char *place,
                  const struct idem_open_options *options,
                  struct idem_error *error)
{
    enum {
        OWNER_MARGIN_MS = 2000,
    };
    struct idem_store *base = &store->remote.base;
    int rc;

    idem__remote_init(&store->remote, &idem__pg_flights);
    store->conn.watch = -1;
    store->conn.event = -1;
    rc = idem__pg_place_read(place, &store->place, error);
    rc = rc != 0 ? rc : idem__store_init(base, &postgres_ops, options, error);
    if (rc != 0) {
        return rc;
    }
    idem__pg_completion_text(store->place.schema, store->completion);
    store->remote.endpoint = store->place.endpoint;
    base->url = store->place.url;
    base->remote = true;
    base->margin_ms = OWNER_MARGIN_MS;
    base->lease_min_ms = IDEM_POSTGRES_LEASE_MIN_MS;
    store->env.base.host = base->options.host;
    store->env.purged_in = &store->purged_in;
    store->env.known_floor = &store->known_floor;
    store->env.base.claims = idem__claims_create();
    store->env.base.scratch = idem__alloc(IDEM_HEAD_MAX);
    if (store->env.base.claims == NULL || store->env.base.scratch == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    rc = idem__pg_conn_init(&store->conn, &store->place, &base->options.host);
    return rc == 0 ? 0
                   : idem__error(error, rc,
                                 "PostgreSQL: no descriptor is left for the "
                                 "connection");
}

int idem_postgres_open(const char *place,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error)
{
    bool threaded = options != NULL && (options->flags & IDEM_OPEN_THREAD) != 0;
    struct idem__pg_store *store = idem__zalloc(sizeof(*store));
    int rc;

    if (store == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = set_up(store, place, options, ret_error);
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
    .example = "postgres://HOST/DATABASE",
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
    .example = "postgresql://HOST/DATABASE",
    .open = idem_postgres_open,
    .create = idem_postgres_create,
    .check = idem_postgres_check,
    .schema = idem_postgres_template,
    .completion = idem_postgres_completion,
};
