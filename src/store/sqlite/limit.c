/* Rate limits: a row for each window and one for each request that it counts. */
#include "base/host.h"
#include "limit/limit.h"
#include "store/sqlite/store.h"

/* The first counted request creates the tables, so that a store that limits nothing has
 * none. The requests of a window lie side by side: a retry reads a page that is warm, and
 * the end of a window deletes one range. */
static const char tables[] = "CREATE TABLE IF NOT EXISTS idem_limit_window ("
                             "  seq INTEGER PRIMARY KEY,"
                             "  id BLOB NOT NULL UNIQUE,"
                             "  expires INTEGER NOT NULL,"
                             "  used INTEGER NOT NULL,"
                             "  refusals INTEGER NOT NULL,"
                             "  name BLOB NOT NULL,"
                             "  subject BLOB NOT NULL,"
                             "  at INTEGER NOT NULL,"
                             "  max INTEGER NOT NULL"
                             ") STRICT;"
                             "CREATE INDEX IF NOT EXISTS idem_limit_window_due"
                             "  ON idem_limit_window (expires);"
                             "CREATE TABLE IF NOT EXISTS idem_limit_request ("
                             "  seq INTEGER NOT NULL,"
                             "  request BLOB NOT NULL,"
                             "  entry INTEGER NOT NULL,"
                             "  PRIMARY KEY (seq, request)"
                             ") STRICT, WITHOUT ROWID;";

enum {
    REQUEST_LEN = 16, /* Bytes of a request's identity that are stored. */
    CLEAN_ROWS = 4,   /* Expired rows deleted with each counted request. */
    PURGE_ROWS = 100,
};

/* The row that was found, and its place. */
struct place {
    int64_t seq;
    int64_t expires_ms;
    struct idem_limit_state state;
};

/* Steps @stmt once, and resets it unless it is on a row. SQLITE_ROW, SQLITE_DONE, or an
 * error. */
static int step(struct idem__conn *conn, enum idem__sql sql, sqlite3_stmt *stmt)
{
    int rc = idem__conn_step(conn, stmt);

    if (rc != SQLITE_ROW) {
        idem__conn_reset(conn, sql);
    }
    return rc;
}

static int load_entry(struct idem__conn *conn, const struct idem_op *op,
                      struct place *place)
{
    sqlite3_stmt *stmt =
        IDEM__CONN_BIND(conn, IDEM__SQL_LIMIT_ENTRY, place->seq);
    int rc;

    (void)sqlite3_bind_blob(stmt, 2, op->u.limit.request, REQUEST_LEN,
                            SQLITE_STATIC);
    rc = step(conn, IDEM__SQL_LIMIT_ENTRY, stmt);
    if (rc == SQLITE_ROW) {
        place->state.has_entry = true;
        place->state.entry = sqlite3_column_int64(stmt, 0);
        idem__conn_reset(conn, IDEM__SQL_LIMIT_ENTRY);
        rc = SQLITE_DONE;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int load(struct idem__conn *conn, const struct idem_op *op,
                struct place *ret_place)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_LIMIT_WINDOW);
    int rc;

    memset(ret_place, 0, sizeof(*ret_place));
    (void)sqlite3_bind_blob(stmt, 1, op->u.limit.window, IDEM_ID_LEN,
                            SQLITE_STATIC);
    rc = step(conn, IDEM__SQL_LIMIT_WINDOW, stmt);
    if (rc != SQLITE_ROW) {
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
    ret_place->seq = sqlite3_column_int64(stmt, 0);
    ret_place->expires_ms = sqlite3_column_int64(stmt, 1);
    ret_place->state.has_window = true;
    ret_place->state.used = (uint64_t)sqlite3_column_int64(stmt, 2);
    ret_place->state.refusals = (uint64_t)sqlite3_column_int64(stmt, 3);
    idem__conn_reset(conn, IDEM__SQL_LIMIT_WINDOW);
    return load_entry(conn, op, ret_place);
}

/* ---- Writing ---- */

static int bind_bytes(sqlite3_stmt *stmt, int at, struct idem_slice s)
{
    return sqlite3_bind_blob64(stmt, at, s.base, s.len, SQLITE_STATIC);
}

static int insert_window(struct idem__conn *conn, const struct idem_op *op,
                         const struct idem_limit_decision *decision,
                         struct place *place)
{
    const struct idem_limit_request *limit = &op->u.limit.limit;
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_LIMIT_INSERT);
    int rc;

    (void)sqlite3_bind_blob(stmt, 1, op->u.limit.window, IDEM_ID_LEN,
                            SQLITE_STATIC);
    (void)sqlite3_bind_int64(stmt, 2, decision->expires_ms);
    (void)sqlite3_bind_int64(stmt, 3, (sqlite3_int64)decision->used);
    (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)decision->refusals);
    (void)bind_bytes(stmt, 5, limit->name);
    (void)bind_bytes(stmt, 6, limit->subject);
    (void)sqlite3_bind_int64(stmt, 7, decision->limited.start_ms);
    (void)sqlite3_bind_int64(stmt, 8, (sqlite3_int64)limit->max);
    rc = idem__conn_run(conn, IDEM__SQL_LIMIT_INSERT);
    place->seq = sqlite3_last_insert_rowid(conn->db);
    return rc;
}

static int update_window(struct idem__conn *conn,
                         const struct idem_limit_decision *decision,
                         const struct place *place)
{
    int64_t expires_ms = decision->expires_ms > place->expires_ms
                             ? decision->expires_ms
                             : place->expires_ms;

    return IDEM__CONN_RUN(conn, IDEM__SQL_LIMIT_UPDATE, place->seq, expires_ms,
                          (int64_t)decision->used, (int64_t)decision->refusals);
}

static int save(struct idem__conn *conn, const struct idem_op *op,
                const struct idem_limit_decision *decision, struct place *place)
{
    sqlite3_stmt *stmt;
    int rc = place->state.has_window ? update_window(conn, decision, place)
                                     : insert_window(conn, op, decision, place);

    if (rc == SQLITE_OK) {
        stmt = IDEM__CONN_BIND(conn, IDEM__SQL_LIMIT_ADD, place->seq);
        (void)sqlite3_bind_blob(stmt, 2, op->u.limit.request, REQUEST_LEN,
                                SQLITE_STATIC);
        (void)sqlite3_bind_int64(stmt, 3, decision->entry);
        rc = idem__conn_run(conn, IDEM__SQL_LIMIT_ADD);
    }
    return rc;
}

static int make_tables(struct idem__conn *conn)
{
    int rc = SQLITE_OK;

    if (!conn->has_limits) {
        rc = sqlite3_exec(conn->db, tables, NULL, NULL, NULL);
        conn->has_limits = rc == SQLITE_OK;
    }
    return rc;
}

/* ---- Deleting ---- */

/* Deletes up to @max rows of expired windows. *@ret_deleted is their number; fewer than
 * @max: none is left. */
static int clean(struct idem__conn *conn, const struct idem_now *now,
                 int64_t max, int64_t *ret_deleted)
{
    int64_t deleted = 0;
    int rc = SQLITE_OK;

    while (rc == SQLITE_OK && deleted < max) {
        sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_LIMIT_OLDEST);
        int64_t seq;

        rc = step(conn, IDEM__SQL_LIMIT_OLDEST, stmt);
        if (rc != SQLITE_ROW) {
            rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
            break;
        }
        rc = SQLITE_OK;
        seq = sqlite3_column_int64(stmt, 0);
        if (!idem__limit_expired(sqlite3_column_int64(stmt, 1), now)) {
            idem__conn_reset(conn, IDEM__SQL_LIMIT_OLDEST);
            break;
        }
        idem__conn_reset(conn, IDEM__SQL_LIMIT_OLDEST);
        rc = IDEM__CONN_RUN(conn, IDEM__SQL_LIMIT_FORGET, seq, max - deleted);
        deleted += sqlite3_changes(conn->db);
        if (rc == SQLITE_OK && deleted < max) {
            rc = IDEM__CONN_RUN(conn, IDEM__SQL_LIMIT_DELETE, seq);
            deleted++;
        }
    }
    *ret_deleted = deleted;
    return rc;
}

/* ---- The verbs ---- */

bool idem__sqlite_limit(struct idem__sqlite_store *store, struct idem_op *op,
                        const struct idem_now *now)
{
    struct idem__conn *conn = store->table.conn;
    struct idem_limit_decision decision;
    struct place place;
    int64_t deleted;
    int rc = make_tables(conn);

    if (rc == SQLITE_OK) {
        rc = load(conn, op, &place);
    }
    if (rc != SQLITE_OK) {
        return idem__sqlite_write_failed(&store->table, op, rc,
                                         "read what was counted");
    }
    if (!idem__limit_settle(op, &place.state, now, &decision) ||
        !decision.remember) {
        return false;
    }
    if (store->reserve.lacking) {
        (void)idem__op_fail(
            op, IDEM_EFULL,
            "the disk is full: the rest of it is reserved for ending open "
            "attempts; nothing was counted");
        return false;
    }
    rc = save(conn, op, &decision, &place);
    if (rc == SQLITE_OK) {
        rc = clean(conn, now, CLEAN_ROWS, &deleted);
    }
    if (rc != SQLITE_OK) {
        return idem__sqlite_write_failed(&store->table, op, rc,
                                         "count a request");
    }
    op->changed = true;
    return true;
}

bool idem__sqlite_limit_peek(struct idem__conn *conn, struct idem_op *op,
                             const struct idem_now *now)
{
    struct idem_limit_decision decision;
    struct place place;

    op->changed = false;
    /* Before the first request the tables do not exist. */
    if (load(conn, op, &place) != SQLITE_OK) {
        return false;
    }
    idem__limit_decide(&op->u.limit.limit, &place.state, now, &decision);
    if (decision.remember) {
        return false;
    }
    (void)idem__limit_settle(op, &place.state, now, &decision);
    return true;
}

bool idem__sqlite_limit_purge(struct idem__sqlite_store *store,
                              struct idem_op *op, const struct idem_now *now,
                              int64_t until_ms, bool *ret_done)
{
    struct idem__conn *conn = store->table.conn;
    int64_t deleted = 0;
    int64_t all = 0;
    int rc = SQLITE_OK;

    *ret_done = true;
    if (idem__conn_stmt(conn, IDEM__SQL_LIMIT_OLDEST) == NULL) {
        return false; /* The tables do not exist. */
    }
    while (rc == SQLITE_OK) {
        rc = clean(conn, now, PURGE_ROWS, &deleted);
        all += deleted;
        if (deleted < PURGE_ROWS || idem__mono_ms() >= until_ms) {
            break;
        }
    }
    if (rc != SQLITE_OK) {
        return idem__sqlite_write_failed(&store->table, op, rc,
                                         "delete what was counted");
    }
    *ret_done = deleted < PURGE_ROWS;
    return all > 0;
}
