/* A connection to the store: opened, checked, set up. */
#include "base/crash.h"
#include "core/error.h"
#include "store/sqlite/making.h"
#include "store/sqlite/schema.h"

static int ready(struct idem__sqlite_store *store, struct idem__conn *conn,
                 bool writer, struct idem_error *error)
{
    bool empty = false;
    int rc = idem__schema_check(conn, &empty, error);

    if (rc == 0 && empty && !writer) {
        rc = idem__error(error, IDEM_ENOTFOUND, "there is no store in %.120s",
                         store->path);
    }
    if (rc == 0 && writer) {
        rc = idem__making_begin(store, conn, empty, error);
    }
    if (rc == 0) {
        rc = idem__conn_configure(conn, writer, error);
    }
    IDEM__CRASH_POINT("sqlite/open/configured");
    if (rc == 0 && writer) {
        rc = idem__making_end(store, conn, empty, error);
    }
    idem__path_share_rest(store->path);
    return rc;
}

int idem__sqlite_connect(struct idem__sqlite_store *store, bool writer,
                         struct idem__conn **ret_conn, struct idem_error *error)
{
    struct idem__conn *conn;
    int rc = idem__conn_open(store->path, &conn, error);

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

int idem__sqlite_connect_reader(struct idem__sqlite_store *store,
                                int64_t deadline_ms,
                                struct idem__conn **ret_conn,
                                struct idem_error *error)
{
    int rc = idem__lock_acquire(store->lock, deadline_ms, error);

    if (rc == 0) {
        rc = idem__sqlite_connect(store, /* writer= */ false, ret_conn, error);
        idem__lock_release(store->lock);
    }
    return rc;
}
