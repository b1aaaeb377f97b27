/* Settles a store after a write to its disk has failed: finds out what it holds.
 *
 * A failed commit does not show whether a crash would keep it, and after a failed flush
 * the pages that the kernel still shows may never reach the disk. So a new connection
 * reads the log as it is, copies all of it into the file, and flushes the file: each
 * commit is then in the file, or not in the log any more. The old connection is closed,
 * because it still trusts what it wrote to the log, which the failed flush may have
 * lost. */
#include "base/host.h"
#include "store/sqlite/store.h"

#include <poll.h>

enum {
    COPY_WAIT_MS = 2000
};

void idem__sqlite_begin_change(struct idem__sqlite_store *store)
{
    idem__lock_change(store->lock, /* begins= */ true);
    store->changes = true;
}

int idem__sqlite_reconnect(struct idem__sqlite_store *store,
                           struct idem_error *error)
{
    int rc = idem__files_check(store, /* committed= */ false, error);

    if (rc != 0) {
        return rc;
    }
    idem__conn_close(store->table.conn);
    store->table.conn = NULL;
    return idem__sqlite_connect(store, /* writer= */ true, &store->table.conn,
                                error);
}

/* Checkpoints the whole log into the file and flushes it. SQLite does not wait for a
 * checkpoint of another thread or process, so try again while one runs. */
static int carry_all(struct idem__conn *conn)
{
    int64_t until_ms = idem__mono_ms() + COPY_WAIT_MS;
    int rc;

    while ((rc = sqlite3_wal_checkpoint_v2(conn->db, NULL,
                                           SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                           NULL)) == SQLITE_BUSY &&
           idem__mono_ms() < until_ms) {
        (void)poll(NULL, 0, 1);
    }
    return rc;
}

int idem__sqlite_settle(struct idem__sqlite_store *store,
                        struct idem_error *error)
{
    struct idem__conn *conn;
    int rc;

    /* Settling may find that a failed change was made. */
    idem__sqlite_begin_change(store);
    rc = idem__sqlite_reconnect(store, error);
    if (rc != 0) {
        return rc;
    }
    conn = store->table.conn;
    rc = carry_all(conn);
    if (rc != SQLITE_OK) {
        return idem__conn_fail(conn, rc, "settle the store", error);
    }
    idem__files_note(store);
    store->broken = false;
    return 0;
}
