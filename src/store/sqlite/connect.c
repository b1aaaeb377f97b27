/* Opens, checks and sets up connections to the store, and keeps a pool of readers, so
 * that a replay takes no lock. */
#include "base/crash.h"
#include "base/host.h"
#include "core/error.h"
#include "store/sqlite/store.h"

/* ---- One connection ------------------------------------------------------ */

/* Only an application's own transactions may change the records in its database: idem's
 * writer would need the store's lock, log and id. */
static int ready_to_visit(struct idem__sqlite_store *store,
                          struct idem__conn *conn, struct idem_error *error)
{
    if ((store->base.options.flags & IDEM_OPEN_READONLY) == 0) {
        return idem__error(
            error, IDEM_ECONFIG,
            "%.90s is an application's database: only the application's "
            "transactions change its records; idem can read them: list, show, "
            "stats, export, watch, store check",
            idem__conn_path(conn));
    }
    store->of_application = true;
    return idem__conn_configure_guest(conn, error);
}

static int ready(struct idem__sqlite_store *store, struct idem__conn *conn,
                 bool writer, struct idem_error *error)
{
    enum idem__holder holder = IDEM__HOLDER_NONE;
    bool empty;
    int rc = idem__schema_check(conn, &holder, error);

    if (rc != 0) {
        goto done;
    }
    if (holder == IDEM__HOLDER_APPLICATION) {
        return ready_to_visit(store, conn, error);
    }
    empty = holder == IDEM__HOLDER_NONE;
    if (writer) {
        rc = idem__making_begin(store, conn, empty, error);
    } else if (empty) {
        rc = idem__error(error, IDEM_ENOTFOUND, "no store in %.120s",
                         store->path);
    }
    if (rc != 0) {
        goto done;
    }
    rc = idem__conn_configure(conn, writer, error);
    IDEM__CRASH_POINT("sqlite/open/configured");
    if (rc == 0 && writer) {
        rc = idem__making_end(store, conn, empty, error);
    }

done:
    /* SQLite may have created the log and the shared memory, even if a later step
     * failed. */
    idem__path_share_rest(store->path);
    return rc;
}

static int open_conn(const struct idem__sqlite_store *store,
                     struct idem__conn **ret_conn, struct idem_error *error)
{
    int rc =
        idem__conn_open(store->path, idem__log_vfs_begin(), ret_conn, error);

    idem__log_vfs_end();
    return rc;
}

int idem__sqlite_connect(struct idem__sqlite_store *store, bool writer,
                         struct idem__conn **ret_conn, struct idem_error *error)
{
    struct idem__conn *conn;
    int rc = open_conn(store, &conn, error);

    if (rc != 0) {
        return rc;
    }
    rc = ready(store, conn, writer, error);
    if (rc != 0) {
        idem__conn_close(conn);
        return rc;
    }
    *ret_conn = conn;
    return 0;
}

int idem__sqlite_connect_beside(struct idem__sqlite_store *store,
                                struct idem__conn **ret_conn,
                                struct idem_error *error)
{
    struct idem__conn *conn;
    int rc = open_conn(store, &conn, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__conn_configure_beside(conn, error);
    if (rc != 0) {
        idem__conn_close(conn);
        return rc;
    }
    *ret_conn = conn;
    return 0;
}

int idem__sqlite_lock(struct idem__sqlite_store *store,
                      struct idem_error *error)
{
    return idem__lock_acquire(store->lock,
                              idem__time_add(idem__mono_ms(),
                                             store->base.options.timeout_ms),
                              error);
}

bool idem__sqlite_is_of_application(const char *path)
{
    enum idem__holder holder = IDEM__HOLDER_NONE;
    struct idem__conn *conn;
    struct idem_error error;
    bool is;

    if (idem__conn_open(path, /* vfs= */ NULL, &conn, &error) != 0) {
        return false;
    }
    is = idem__schema_check(conn, &holder, &error) == 0 &&
         holder == IDEM__HOLDER_APPLICATION;
    idem__conn_close(conn);
    return is;
}

/* ---- The readers --------------------------------------------------------- */

void idem__readers_init(struct idem__sqlite_readers *readers)
{
    *readers = (struct idem__sqlite_readers){
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .freed = PTHREAD_COND_INITIALIZER,
    };
}

void idem__readers_finish(struct idem__sqlite_readers *readers)
{
    idem__readers_drop_idle(readers);
    (void)pthread_cond_destroy(&readers->freed);
    (void)pthread_mutex_destroy(&readers->mutex);
}

void idem__readers_drop_idle(struct idem__sqlite_readers *readers)
{
    (void)pthread_mutex_lock(&readers->mutex);
    while (readers->idle != NULL) {
        struct idem__conn *conn = readers->idle;

        readers->idle = conn->next;
        readers->open--;
        idem__conn_close(conn);
    }
    (void)pthread_cond_broadcast(&readers->freed);
    (void)pthread_mutex_unlock(&readers->mutex);
}

/* Opens a reader under the lock, for which it waits only with @wait. */
static int connect_reader(struct idem__sqlite_store *store, bool wait,
                          struct idem__conn **ret_conn,
                          struct idem_error *error)
{
    int rc = 0;

    if (store->lock != NULL) {
        rc = wait ? idem__sqlite_lock(store, error)
                  : idem__lock_acquire(store->lock, idem__mono_ms(), error);
    }
    if (rc != 0) {
        return rc;
    }
    rc = idem__sqlite_connect(store, /* writer= */ false, ret_conn, error);
    if (store->lock != NULL) {
        idem__lock_release(store->lock);
    }
    return rc;
}

/* Opens one more reader, which the caller has counted already. */
static struct idem__conn *open_reader(struct idem__sqlite_store *store,
                                      bool wait, struct idem_error *error)
{
    struct idem__sqlite_readers *readers = &store->readers;
    struct idem__conn *conn = NULL;

    if (connect_reader(store, wait, &conn, error) != 0) {
        (void)pthread_mutex_lock(&readers->mutex);
        readers->open--;
        (void)pthread_cond_signal(&readers->freed);
        (void)pthread_mutex_unlock(&readers->mutex);
        return NULL;
    }
    return conn;
}

struct idem__conn *idem__readers_take(struct idem__sqlite_store *store,
                                      bool wait, struct idem_error *error)
{
    struct idem__sqlite_readers *readers = &store->readers;
    struct idem__conn *conn;
    bool may_open = false;

    (void)pthread_mutex_lock(&readers->mutex);
    while (wait && readers->idle == NULL &&
           readers->open == IDEM__READERS_MAX) {
        (void)pthread_cond_wait(&readers->freed, &readers->mutex);
    }
    conn = readers->idle;
    if (conn != NULL) {
        readers->idle = conn->next;
    } else if (readers->open < IDEM__READERS_MAX) {
        readers->open++;
        may_open = true;
    }
    (void)pthread_mutex_unlock(&readers->mutex);
    return may_open ? open_reader(store, wait, error) : conn;
}

struct idem__conn *idem__readers_await(struct idem__sqlite_store *store)
{
    struct idem__sqlite_readers *readers = &store->readers;
    struct idem__conn *conn;

    (void)pthread_mutex_lock(&readers->mutex);
    while (readers->idle == NULL && readers->open > 0) {
        (void)pthread_cond_wait(&readers->freed, &readers->mutex);
    }
    conn = readers->idle;
    if (conn != NULL) {
        readers->idle = conn->next;
    }
    (void)pthread_mutex_unlock(&readers->mutex);
    return conn;
}

int idem__sqlite_reader(struct idem_store *store, struct idem__conn **ret_conn,
                        struct idem_error *ret_error)
{
    struct idem_error error;

    if (strcmp(store->ops->name, "sqlite") != 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the store is not an SQLite store");
    }
    *ret_conn = idem__readers_take((struct idem__sqlite_store *)store,
                                   /* wait= */ true, &error);
    return *ret_conn != NULL
               ? 0
               : idem__error(ret_error, error.code, "%s", error.text);
}

void idem__readers_add(struct idem__sqlite_store *store,
                       struct idem__conn *conn)
{
    struct idem__sqlite_readers *readers = &store->readers;

    (void)pthread_mutex_lock(&readers->mutex);
    readers->open++;
    (void)pthread_mutex_unlock(&readers->mutex);
    idem__readers_give(store, conn);
}

void idem__readers_give(struct idem__sqlite_store *store,
                        struct idem__conn *conn)
{
    struct idem__sqlite_readers *readers = &store->readers;

    (void)pthread_mutex_lock(&readers->mutex);
    conn->next = readers->idle;
    readers->idle = conn;
    (void)pthread_cond_signal(&readers->freed);
    (void)pthread_mutex_unlock(&readers->mutex);
}
