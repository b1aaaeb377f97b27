/* Opens and sets up a connection to the file, and prepares its statements. */
#include "store/sqlite/conn.h"

#include "base/heap.h"
#include "core/error.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define ROW_COLUMNS "seq, status, deadline, scope, key, head"

static const char *const texts[IDEM__SQL_COUNT] = {
    [IDEM__SQL_BEGIN] = "BEGIN IMMEDIATE",
    [IDEM__SQL_READ] = "BEGIN",
    [IDEM__SQL_COMMIT] = "COMMIT",
    [IDEM__SQL_ROLLBACK] = "ROLLBACK",
    /* Reading a length touches no overflow pages, and copying a small body is cheaper
     * than another query. */
    [IDEM__SQL_LOAD] =
        "SELECT " ROW_COLUMNS ", iif(length(result) <= 16384, result, NULL)"
        ", iif(length(input) <= 16384, input, NULL) "
        "FROM idem_record WHERE id = ?1",
    [IDEM__SQL_LOAD_BODIES] = "SELECT " ROW_COLUMNS ", result, input "
                              "FROM idem_record WHERE id = ?1",
    [IDEM__SQL_INSERT] =
        "INSERT INTO idem_record (id, status, deadline, scope, key, head, result, "
        "input) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [IDEM__SQL_UPDATE_HEAD] =
        "UPDATE idem_record SET status = ?2, deadline = ?3, head = ?6 "
        "WHERE seq = ?1",
    [IDEM__SQL_UPDATE_RESULT] =
        "UPDATE idem_record SET status = ?2, deadline = ?3, head = ?6, "
        "result = ?7 WHERE seq = ?1",
    [IDEM__SQL_UPDATE_INPUT] =
        "UPDATE idem_record SET status = ?2, deadline = ?3, head = ?6, "
        "input = ?8 WHERE seq = ?1",
    [IDEM__SQL_UPDATE_ALL] =
        "UPDATE idem_record SET status = ?2, deadline = ?3, head = ?6, "
        "result = ?7, input = ?8 WHERE seq = ?1",
    [IDEM__SQL_DELETE] = "DELETE FROM idem_record WHERE seq = ?1",
    [IDEM__SQL_ENTER] = "UPDATE idem_record SET status = 1 "
                        "WHERE status = 0 AND seq > ?1 AND seq <= ?2",
    [IDEM__SQL_ENTER_ALL] =
        "UPDATE idem_record SET status = 1 WHERE " IDEM__NOT_IN_INDEX,
    [IDEM__SQL_WALK_ALL] = "SELECT " ROW_COLUMNS ", id FROM idem_record "
                           "WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    [IDEM__SQL_WALK_DOWN] = "SELECT " ROW_COLUMNS ", id FROM idem_record "
                            "WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2",
    /* No index has the scope, so SQLite goes through the rows of a page. Of rows in
     * other scopes it reads only the first columns. */
    [IDEM__SQL_SCOPE] = "SELECT " ROW_COLUMNS ", id FROM idem_record "
                        "WHERE seq > ?1 AND seq <= ?2 AND scope = ?3 "
                        "ORDER BY seq",
    [IDEM__SQL_SCOPE_END] = "SELECT seq FROM idem_record WHERE seq > ?1 "
                            "ORDER BY seq LIMIT 1 OFFSET ?2 - 1",
    [IDEM__SQL_SCOPE_DOWN] = "SELECT " ROW_COLUMNS ", id FROM idem_record "
                             "WHERE seq < ?1 AND seq >= ?2 AND scope = ?3 "
                             "ORDER BY seq DESC",
    [IDEM__SQL_SCOPE_DOWN_END] = "SELECT seq FROM idem_record WHERE seq < ?1 "
                                 "ORDER BY seq DESC LIMIT 1 OFFSET ?2 - 1",
    [IDEM__SQL_GREATEST] = "SELECT max(seq) FROM idem_record",
    [IDEM__SQL_WALK_LAST] = "SELECT " ROW_COLUMNS ", id FROM idem_record "
                            "WHERE seq > ?1 AND seq <= ?2 AND status < 2 "
                            "AND deadline <= ?3 ORDER BY seq LIMIT ?4",
    /* SQLite uses the index only if the query excludes status 0, which the index does
     * not have. */
    [IDEM__SQL_WALK_SAME] = "SELECT " ROW_COLUMNS ", id FROM idem_record "
                            "WHERE status = ?1 AND status <> 0 "
                            "AND deadline = ?2 AND seq > ?3 AND seq <= ?5 "
                            "ORDER BY seq LIMIT ?4",
    [IDEM__SQL_WALK_LATER] =
        "SELECT " ROW_COLUMNS ", id FROM idem_record "
        "WHERE status = ?1 AND status <> 0 AND deadline > ?2 "
        "AND deadline <= ?3 AND seq <= ?5 ORDER BY deadline, seq LIMIT ?4",
    [IDEM__SQL_WALK_FAILED] =
        "SELECT " ROW_COLUMNS ", id FROM idem_failed CROSS JOIN idem_record "
        "USING (seq) WHERE seq > ?1 AND status = 2 ORDER BY seq LIMIT ?2",
    [IDEM__SQL_NOTE_FAILED] =
        "INSERT OR IGNORE INTO idem_failed (seq) VALUES (?1)",
    [IDEM__SQL_PURGE_SAME] =
        "SELECT seq, deadline FROM idem_record WHERE status = ?1 "
        "AND status <> 0 AND deadline = ?2 AND seq > ?3 "
        "ORDER BY seq LIMIT ?4",
    [IDEM__SQL_PURGE_LATER] =
        "SELECT seq, deadline FROM idem_record WHERE status = ?1 "
        "AND status <> 0 AND deadline > ?2 AND deadline <= ?3 "
        "ORDER BY deadline, seq LIMIT ?4",
    [IDEM__SQL_PURGE_ROW] =
        "SELECT " ROW_COLUMNS ", id FROM idem_record WHERE seq = ?1",
    [IDEM__SQL_HELD_LOAD] = "SELECT held_ms, looked_ms FROM idem_purge "
                            "WHERE one = 1",
    [IDEM__SQL_HELD_SAVE] =
        "INSERT OR REPLACE INTO idem_purge (one, held_ms, looked_ms) "
        "VALUES (1, ?1, ?2)",
    [IDEM__SQL_HELD_FORGET] = "DELETE FROM idem_purge",
    [IDEM__SQL_CLOCK_LOAD] = "SELECT * FROM idem_clock WHERE one = 1",
    [IDEM__SQL_CLOCK_SAVE] =
        "UPDATE idem_clock SET boot_id = ?1, boot_ms = ?2, store_ms = ?3, "
        "last_ms = ?4, fence_floor = ?5, sure_ms = ?6, jump_ms = ?7 "
        "WHERE one = 1",
    [IDEM__SQL_MARK_LOAD] = "SELECT mark FROM idem_clock WHERE one = 1",
    [IDEM__SQL_MARK_SAVE] = "UPDATE idem_clock SET mark = ?1 WHERE one = 1",
    [IDEM__SQL_COUNTER_ADD] =
        "INSERT INTO idem_counter (name, value) VALUES (?1, ?2) "
        "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
    [IDEM__SQL_COUNTERS_LOAD] = "SELECT name, value FROM idem_counter",
    [IDEM__SQL_LIMIT_WINDOW] = "SELECT seq, expires, used, refusals "
                               "FROM idem_limit_window WHERE id = ?1",
    [IDEM__SQL_LIMIT_ENTRY] = "SELECT entry FROM idem_limit_request "
                              "WHERE seq = ?1 AND request = ?2",
    [IDEM__SQL_LIMIT_INSERT] =
        "INSERT INTO idem_limit_window (id, expires, used, refusals, name, "
        "subject, at, max) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [IDEM__SQL_LIMIT_UPDATE] =
        "UPDATE idem_limit_window SET expires = ?2, used = ?3, "
        "refusals = ?4 WHERE seq = ?1",
    [IDEM__SQL_LIMIT_ADD] =
        "INSERT INTO idem_limit_request (seq, request, entry) "
        "VALUES (?1, ?2, ?3)",
    [IDEM__SQL_LIMIT_OLDEST] = "SELECT seq, expires FROM idem_limit_window "
                               "ORDER BY expires LIMIT 1",
    [IDEM__SQL_LIMIT_FORGET] =
        "DELETE FROM idem_limit_request WHERE seq = ?1 AND request IN (SELECT "
        "request FROM idem_limit_request WHERE seq = ?1 LIMIT ?2)",
    [IDEM__SQL_LIMIT_DELETE] = "DELETE FROM idem_limit_window WHERE seq = ?1",
};

/* A commit is durable when it returns (FULL). Only checkpoint.c, making.c and settle.c
 * copy the log into the file; a connection does not do so because it commits or
 * closes. */
static const char settings[] = "PRAGMA journal_mode = WAL;"
                               "PRAGMA synchronous = FULL;";

/* These concern the connection alone, so SQLite need not read the file for them. Memory
 * mapping is off, because an I/O error in a mapping is a signal. */
static const char session[] = "PRAGMA mmap_size = 0;"
                              "PRAGMA trusted_schema = OFF;"
                              "PRAGMA temp_store = MEMORY;"
                              "PRAGMA secure_delete = FAST;";

/* The database of an application stays as the application has set it up. */
static const char guest_settings[] = "PRAGMA mmap_size = 0;"
                                     "PRAGMA cell_size_check = ON;"
                                     "PRAGMA trusted_schema = OFF;"
                                     "PRAGMA temp_store = MEMORY;";

/* The writer's cache holds the changes of a full batch: pages that do not fit go into the
 * log before the commit, and once more with it. The writer checks all cells of a page
 * before it changes one, so that damage does not spread. */
static const char to_write[] = "PRAGMA cell_size_check = ON;"
                               "PRAGMA cache_size = -8192;";

/* A reader spreads no damage, and each record has its own checksum. Among 10^7 records,
 * where every page is read anew, checking all cells would take a fifth of a replay. */
static const char to_read[] = "PRAGMA query_only = ON;";

enum {
    BUSY_MS = 2000
};

static int count_pages(void *ctx, sqlite3 *db, const char *name, int pages)
{
    struct idem__conn *conn = ctx;

    (void)db;
    (void)name;
    conn->wal_pages = pages;
    return SQLITE_OK;
}

static int set_up(struct idem__conn *conn)
{
    static const int switches[] = {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
                                   SQLITE_DBCONFIG_DEFENSIVE};
    int powersafe = -1;
    int rc = SQLITE_OK;
    size_t i;

    (void)sqlite3_extended_result_codes(conn->db, 1);
    (void)sqlite3_busy_timeout(conn->db, BUSY_MS);
    for (i = 0; i < 2 && rc == SQLITE_OK; i++) {
        rc = sqlite3_db_config(conn->db, switches[i], 1, (int *)NULL);
    }
    /* Without this trait SQLite pads the log after the frame that commits, and may run
     * out of space there although the commit is in the log. */
    (void)sqlite3_file_control(conn->db, "main",
                               SQLITE_FCNTL_POWERSAFE_OVERWRITE, &powersafe);
    conn->full_is_clean = powersafe == 1;
    /* Our hook replaces SQLite's, so no commit copies the log by itself. */
    (void)sqlite3_wal_hook(conn->db, count_pages, conn);
    return rc;
}

/* Finds the real name of the file's directory. SQLite refuses a symbolic link anywhere in
 * a name; the file must not be one, but the way to it may have some (/var/run). SQLite
 * also takes some names, such as ":memory:", for something else. */
static void plain_path(const char *path, char *buf, size_t cap)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash == NULL ? path : slash + 1;
    char directory[PATH_MAX];
    char real[PATH_MAX];

    (void)snprintf(directory, sizeof(directory), "%.*s",
                   slash == NULL ? 1 : (int)(slash - path + 1),
                   slash == NULL ? "." : path);
    if (realpath(directory, real) != NULL) {
        (void)snprintf(buf, cap, "%s/%s", strcmp(real, "/") == 0 ? "" : real,
                       file);
    } else {
        (void)snprintf(buf, cap, "%s%s", path[0] == '/' ? "" : "./", path);
    }
}

static int fail_at(const struct idem__conn *conn, const char *path,
                   int sqlite_rc, const char *doing, struct idem_error *error);

int idem__conn_open(const char *path, const char *vfs,
                    struct idem__conn **ret_conn, struct idem_error *error)
{
    struct idem__conn *conn = idem__zalloc(sizeof(*conn));
    char name[PATH_MAX + 256];
    int rc;

    if (conn == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    plain_path(path, name, sizeof(name));
    rc = sqlite3_open_v2(name, &conn->db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                             SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW,
                         vfs);
    if (rc == SQLITE_OK) {
        rc = set_up(conn);
    }
    if (rc != SQLITE_OK) {
        rc = fail_at(conn, name, rc, "open the store", error);
        idem__conn_close(conn);
        return rc;
    }
    *ret_conn = conn;
    return 0;
}

static int configure(struct idem__conn *conn, const char *sql, const char *more,
                     struct idem_error *error)
{
    int rc = sqlite3_exec(conn->db, sql, NULL, NULL, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(conn->db, more, NULL, NULL, NULL);
    }
    return rc == SQLITE_OK
               ? 0
               : idem__conn_fail(conn, rc, "set up the store", error);
}

int idem__conn_configure(struct idem__conn *conn, bool writer,
                         struct idem_error *error)
{
    int rc = configure(conn, settings, session, error);

    return rc != 0 ? rc
                   : configure(conn, writer ? to_write : to_read, "", error);
}

int idem__conn_configure_beside(struct idem__conn *conn,
                                struct idem_error *error)
{
    return configure(conn, session, to_read, error);
}

int idem__conn_configure_guest(struct idem__conn *conn,
                               struct idem_error *error)
{
    return configure(conn, guest_settings, to_read, error);
}

void idem__conn_patience(struct idem__conn *conn, int64_t ms)
{
    int64_t most = ms < BUSY_MS ? ms : BUSY_MS;

    (void)sqlite3_busy_timeout(conn->db, most > 0 ? (int)most : 0);
}

void idem__conn_finalize(struct idem__conn *conn)
{
    size_t i;

    for (i = 0; i < IDEM__SQL_COUNT; i++) {
        (void)sqlite3_finalize(conn->stmts[i]);
        conn->stmts[i] = NULL;
    }
}

void idem__conn_close(struct idem__conn *conn)
{
    if (conn == NULL) {
        return;
    }
    idem__conn_finalize(conn);
    (void)sqlite3_close(conn->db);
    idem__free(conn);
}

sqlite3_stmt *idem__conn_stmt(struct idem__conn *conn, enum idem__sql sql)
{
    sqlite3_stmt *stmt = conn->stmts[sql];

    if (stmt == NULL) {
        conn->prepare_rc =
            sqlite3_prepare_v3(conn->db, texts[sql], -1,
                               SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
        conn->stmts[sql] = stmt;
        return stmt;
    }
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    return stmt;
}

sqlite3_stmt *idem__conn_bind(struct idem__conn *conn, enum idem__sql sql,
                              size_t len, const int64_t *numbers)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, sql);
    size_t i;

    for (i = 0; stmt != NULL && i < len; i++) {
        (void)sqlite3_bind_int64(stmt, (int)i + 1, numbers[i]);
    }
    return stmt;
}

int idem__conn_number(struct idem__conn *conn, const char *sql,
                      int64_t *ret_number)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(conn->db, sql, -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = idem__conn_step(conn, stmt);
    }
    if (rc == SQLITE_ROW) {
        *ret_number = sqlite3_column_int64(stmt, 0);
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int idem__conn_step(struct idem__conn *conn, sqlite3_stmt *stmt)
{
    int rc;

    if (stmt == NULL) {
        return conn->prepare_rc;
    }
    /* SQLite keeps the system's reason where a statement fails, but not where a
     * commit does. */
    errno = 0;
    rc = sqlite3_step(stmt);
    if (idem__sqlite_is_io(rc)) {
        conn->io_errno = errno;
    }
    return rc;
}

void idem__conn_reset(struct idem__conn *conn, enum idem__sql sql)
{
    if (conn->stmts[sql] != NULL) {
        (void)sqlite3_reset(conn->stmts[sql]);
    }
}

int idem__conn_run(struct idem__conn *conn, enum idem__sql sql)
{
    sqlite3_stmt *stmt = conn->stmts[sql];
    int rc;

    if (stmt == NULL) {
        int why = conn->prepare_rc;

        stmt = idem__conn_stmt(conn, sql);
        if (stmt != NULL && sqlite3_bind_parameter_count(stmt) > 0) {
            /* Its parameters were bound while it could not be prepared. */
            return why;
        }
    }
    rc = idem__conn_step(conn, stmt);
    idem__conn_reset(conn, sql);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

bool idem__sqlite_is_io(int sqlite_rc)
{
    return (sqlite_rc & 0xff) == SQLITE_IOERR &&
           sqlite_rc != SQLITE_IOERR_NOMEM;
}

static int code_of(int sqlite_rc)
{
    if (sqlite_rc == SQLITE_IOERR_NOMEM) {
        return IDEM_ENOMEM;
    }
    switch (sqlite_rc & 0xff) {
    case SQLITE_FULL:
        return IDEM_EFULL;
    case SQLITE_NOMEM:
        return IDEM_ENOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT:
        return IDEM_EUNAVAILABLE;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
        return IDEM_EDENIED;
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return IDEM_ECORRUPT;
    default:
        return IDEM_ECONFIG;
    }
}

/* If the system refused a call of SQLite, its reason is more specific than the result:
 * a process without descriptors does not have a damaged store. */
static int code_of_system(const struct idem__conn *conn, int sqlite_rc)
{
    int primary = sqlite_rc & 0xff;

    if (conn->db == NULL ||
        (primary != SQLITE_CANTOPEN && primary != SQLITE_IOERR)) {
        return 0;
    }
    switch (sqlite3_system_errno(conn->db)) {
    case EMFILE:
    case ENFILE:
    case ENOLCK:
        return IDEM_EUNAVAILABLE;
    case ENOMEM:
        return IDEM_ENOMEM;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return IDEM_EFULL;
    case EIO:
        return IDEM_ECORRUPT;
    default:
        return 0;
    }
}

/* The system's reason, or SQLite's. */
static const char *reason_of(const struct idem__conn *conn, int system,
                             int sqlite_rc)
{
    if (system != 0 && system != IDEM_ECORRUPT) {
        return strerror(sqlite3_system_errno(conn->db));
    }
    return conn->db != NULL && sqlite3_extended_errcode(conn->db) == sqlite_rc
               ? sqlite3_errmsg(conn->db)
               : sqlite3_errstr(sqlite_rc);
}

/* The remedy for a person, or "". */
static const char *help_for(const struct idem__conn *conn, int code,
                            int sqlite_rc)
{
    int err = conn->db != NULL ? sqlite3_system_errno(conn->db) : 0;

    switch (code) {
    case IDEM_EFULL:
        return err == EFBIG ? "; raise the limit of file sizes (ulimit -f)"
                            : "; make room on its disk";
    case IDEM_EUNAVAILABLE:
        return err == EMFILE ? "; raise the limit of open files (ulimit -n)"
                             : "";
    case IDEM_EDENIED:
        return (sqlite_rc & 0xff) == SQLITE_CANTOPEN
                   ? "; its user needs to write to the file and its directory"
                   : "";
    default:
        return "";
    }
}

static int fail_at(const struct idem__conn *conn, const char *path,
                   int sqlite_rc, const char *doing, struct idem_error *error)
{
    int system = code_of_system(conn, sqlite_rc);
    int code = system != 0 ? system : code_of(sqlite_rc);

    if (code == IDEM_ENOMEM) {
        return idem__error_plain(error, code);
    }
    return idem__error(error, code, "%.100s: cannot %s: %.60s%s", path, doing,
                       reason_of(conn, system, sqlite_rc),
                       help_for(conn, code, sqlite_rc));
}

const char *idem__conn_path(const struct idem__conn *conn)
{
    const char *path =
        conn->db != NULL ? sqlite3_db_filename(conn->db, "main") : NULL;

    return path != NULL && path[0] != '\0' ? path : "the database in memory";
}

int idem__conn_fail(const struct idem__conn *conn, int sqlite_rc,
                    const char *doing, struct idem_error *error)
{
    return fail_at(conn, idem__conn_path(conn), sqlite_rc, doing, error);
}
