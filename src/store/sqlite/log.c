/* How long the log is, and who keeps it so. */
#include "core/error.h"
#include "store/sqlite/log_readers.h"
#include "store/sqlite/store.h"

#include <idem/sqlite.h>

enum {
    LONG_LOG = 32 << 20, /* Bytes; four times what starts a checkpoint. */
    FRAME_HEAD = 24,     /* Bytes; https://sqlite.org/fileformat2.html, 4.1. */
};

/* The view of the log that a transaction of now has: with it SQLite reads anew
 * how long the log is. */
static int read_len(struct idem__conn *conn, uint64_t *ret_len)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
        conn->db,
        "SELECT page_size FROM pragma_page_size, idem_clock WHERE one = 1", -1,
        &stmt, NULL);

    *ret_len = 0;
    if (rc == SQLITE_OK) {
        rc = idem__conn_step(conn, stmt);
    }
    if (rc == SQLITE_ROW) {
        *ret_len = (uint64_t)idem__sqlite_log_frames(conn) *
                   ((uint64_t)sqlite3_column_int64(stmt, 0) + FRAME_HEAD);
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int idem_sqlite_log(struct idem_store *store,
                    struct idem_sqlite_log_info *ret_log,
                    struct idem_error *ret_error)
{
    struct idem__sqlite_store *s = (struct idem__sqlite_store *)store;
    struct idem_sqlite_log_info log = IDEM_SQLITE_LOG_INFO_INIT;
    struct idem_error error;
    struct idem__conn *conn;
    pid_t pid;
    int rc;

    if (strcmp(store->ops->name, "sqlite") != 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the store is not an SQLite store");
    }
    if (ret_log->size != sizeof(*ret_log)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "log: begin with IDEM_SQLITE_LOG_INFO_INIT");
    }
    conn = idem__readers_take(s, /* wait= */ true, &error);
    if (conn == NULL) {
        return idem__error(ret_error, error.code, "%s", error.text);
    }
    idem__sqlite_before_read(s);
    rc = read_len(conn, &log.len);
    if (rc != SQLITE_OK) {
        rc = idem__conn_fail(conn, rc, "read the length of the log", ret_error);
    }
    idem__readers_give(s, conn);
    if (rc == 0 && log.len >= LONG_LOG &&
        idem__log_reader(s->path, &pid, log.process)) {
        log.pid = (int64_t)pid;
    }
    if (rc == 0) {
        *ret_log = log;
    }
    return rc;
}
