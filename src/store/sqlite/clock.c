/* Loads and saves the row of the clock: store time, anchored in the file, the fence floor
 * and the mark. */
#include "store/sqlite/conn.h"

#include "base/crash.h"
#include "core/error.h"
#include "core/move.h"

#include <stdio.h>

void idem__clock_init(struct idem__sqlite_clock *clock)
{
    *clock = (struct idem__sqlite_clock){.mutex = PTHREAD_MUTEX_INITIALIZER};
}

void idem__clock_finish(struct idem__sqlite_clock *clock)
{
    (void)pthread_mutex_destroy(&clock->mutex);
}

/* The row of the clock. */
struct clock_row {
    struct idem_anchor anchor;
    int64_t last_ms;     /* The newest time in the file that is sure. */
    int64_t fence_floor; /* See struct idem_now. */
};

enum {
    SAVE_EVERY_MS = 1000
};

static bool is_sound(int64_t number)
{
    return number >= 0 && number <= INT64_MAX / 2;
}

/* No checksum covers the row, and its numbers are added to others. True if they leave
 * room for that. */
static bool row_is_sound(const struct clock_row *row)
{
    const struct idem_anchor *anchor = &row->anchor;

    return is_sound(anchor->boot_ms) && is_sound(anchor->store_ms) &&
           is_sound(anchor->sure_ms) && is_sound(anchor->jump_ms) &&
           is_sound(row->last_ms) && is_sound(row->fence_floor) &&
           anchor->sure_ms <= anchor->store_ms;
}

/* True if the saved time is so old that @now has to be saved. A reboot with a slow wall
 * clock takes the store's time back to the saved time; but a save costs one more page in
 * a commit. */
static bool row_is_due(int64_t last_ms, const struct idem_now *now)
{
    return idem__clock_sure_ms(now) >= last_ms + SAVE_EVERY_MS;
}

/* The columns of the row, in the order of the table. */
enum {
    BOOT_ID = 2,
    BOOT_MS,
    STORE_MS,
    LAST_MS,
    FENCE_FLOOR,
    SURE_MS,
    JUMP_MS,
    MARK = JUMP_MS + 2,
};

/* Reads the row. False: it cannot be used. */
static bool read_row(sqlite3_stmt *stmt, struct clock_row *ret_row)
{
    struct idem_anchor *anchor = &ret_row->anchor;

    if (sqlite3_column_bytes(stmt, BOOT_ID) != 16) {
        return false;
    }
    memcpy(anchor->boot_id, sqlite3_column_blob(stmt, BOOT_ID), 16);
    anchor->boot_ms = sqlite3_column_int64(stmt, BOOT_MS);
    anchor->store_ms = sqlite3_column_int64(stmt, STORE_MS);
    anchor->sure_ms = sqlite3_column_int64(stmt, SURE_MS);
    anchor->jump_ms = sqlite3_column_int64(stmt, JUMP_MS);
    ret_row->last_ms = sqlite3_column_int64(stmt, LAST_MS);
    ret_row->fence_floor = sqlite3_column_int64(stmt, FENCE_FLOOR);
    return row_is_sound(ret_row);
}

static void load_mark(sqlite3_stmt *stmt, int column, char mark[IDEM_MARK_MAX])
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);

    idem__move_load(idem_str(text == NULL ? "" : text), mark);
}

/* Takes over the loaded row. A reader may have an older snapshot than this process has
 * seen, which must not take the time back. */
static void install(struct idem__sqlite_clock *clock,
                    const struct idem_anchor *anchor, int64_t last_ms,
                    bool writer)
{
    (void)pthread_mutex_lock(&clock->mutex);
    if (writer || last_ms > clock->last_ms) {
        clock->anchor = *anchor;
        clock->last_ms = last_ms;
    }
    (void)pthread_mutex_unlock(&clock->mutex);
}

int idem__clock_load(struct idem__sqlite_clock *clock, struct idem__conn *conn,
                     bool writer)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_CLOCK_LOAD);
    struct clock_row row;
    int rc = idem__conn_step(conn, stmt);

    if (rc == SQLITE_ROW && read_row(stmt, &row)) {
        install(clock, &row.anchor, row.last_ms, writer);
        if (writer) {
            clock->fence_floor = (uint64_t)row.fence_floor;
            load_mark(stmt, MARK, clock->mark);
        }
        rc = SQLITE_OK;
    } else if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
        rc = SQLITE_CORRUPT;
    }
    idem__conn_reset(conn, IDEM__SQL_CLOCK_LOAD);
    return rc;
}

/* Reads SQLite's data version, which changes when a read finds, at its start, that
 * another connection has committed since the last one. False: no read is in progress, so
 * the version would be of an earlier one. A reader has only one database, which needs no
 * name. */
static bool data_version(struct idem__conn *conn, unsigned *ret_version)
{
    return sqlite3_txn_state(conn->db, NULL) != SQLITE_TXN_NONE &&
           sqlite3_file_control(conn->db, NULL, SQLITE_FCNTL_DATA_VERSION,
                                ret_version) == SQLITE_OK;
}

/* Reads the mark again only if the file has changed: a second statement would cost each
 * replay a tenth of its time. */
int idem__clock_mark(struct idem__conn *conn)
{
    unsigned version;
    sqlite3_stmt *stmt;
    int rc;

    if (conn->has_mark && data_version(conn, &version) &&
        version == conn->mark_version) {
        return SQLITE_OK;
    }
    stmt = idem__conn_stmt(conn, IDEM__SQL_MARK_LOAD);
    rc = idem__conn_step(conn, stmt);
    conn->has_mark =
        rc == SQLITE_ROW && data_version(conn, &conn->mark_version);
    if (rc == SQLITE_ROW) {
        load_mark(stmt, 0, conn->mark);
    }
    idem__conn_reset(conn, IDEM__SQL_MARK_LOAD);
    if (rc == SQLITE_ROW) {
        return SQLITE_OK;
    }
    return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

int idem__clock_now(struct idem__sqlite_clock *clock,
                    const struct idem_host *host, struct idem_now *ret_now,
                    bool *ret_save, struct idem_error *error)
{
    struct idem_clock_reading reading = {0};
    bool moved;

    if (host->clock(host->ctx, &reading) != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "cannot read the clock; nothing was done");
    }
    (void)pthread_mutex_lock(&clock->mutex);
    moved = idem__anchor_now(&clock->anchor, &reading, clock->last_ms, ret_now);
    (void)pthread_mutex_unlock(&clock->mutex);
    ret_now->fence_floor = clock->fence_floor;
    ret_now->mark = clock->mark;
    *ret_save = moved || row_is_due(clock->last_ms, ret_now);
    return 0;
}

int idem__clock_peek(struct idem__sqlite_clock *clock,
                     const struct idem_host *host, struct idem_now *ret_now,
                     bool *ret_moved)
{
    struct idem_clock_reading reading = {0};
    struct idem_anchor anchor;
    int64_t last_ms;

    if (host->clock(host->ctx, &reading) != 0) {
        return IDEM_EUNAVAILABLE;
    }
    (void)pthread_mutex_lock(&clock->mutex);
    anchor = clock->anchor;
    last_ms = clock->last_ms;
    (void)pthread_mutex_unlock(&clock->mutex);
    *ret_moved = idem__anchor_now(&anchor, &reading, last_ms, ret_now);
    return 0;
}

void idem__clock_set(struct idem__sqlite_clock *clock,
                     const struct idem_clock_reading *reading, int64_t store_ms)
{
    struct idem_anchor anchor = {
        .boot_ms = reading->boot_ms,
        .store_ms = store_ms,
        .sure_ms = store_ms,
    };

    memcpy(anchor.boot_id, reading->boot_id, sizeof(anchor.boot_id));
    (void)pthread_mutex_lock(&clock->mutex);
    clock->anchor = anchor;
    clock->last_ms = store_ms;
    (void)pthread_mutex_unlock(&clock->mutex);
}

int idem__clock_save(struct idem__sqlite_clock *clock, struct idem__conn *conn,
                     const struct idem_now *now)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_CLOCK_SAVE);
    struct idem_anchor anchor;
    int64_t last_ms;

    (void)pthread_mutex_lock(&clock->mutex);
    if (idem__clock_sure_ms(now) > clock->last_ms) {
        clock->last_ms = idem__clock_sure_ms(now);
    }
    anchor = clock->anchor;
    last_ms = clock->last_ms;
    (void)pthread_mutex_unlock(&clock->mutex);
    (void)sqlite3_bind_blob(stmt, 1, anchor.boot_id, 16, SQLITE_STATIC);
    (void)sqlite3_bind_int64(stmt, 2, anchor.boot_ms);
    (void)sqlite3_bind_int64(stmt, 3, anchor.store_ms);
    (void)sqlite3_bind_int64(stmt, 4, last_ms);
    (void)sqlite3_bind_int64(stmt, 5, (sqlite3_int64)clock->fence_floor);
    (void)sqlite3_bind_int64(stmt, 6, anchor.sure_ms);
    (void)sqlite3_bind_int64(stmt, 7, anchor.jump_ms);
    IDEM__CRASH_POINT("sqlite/clock/saves");
    return idem__conn_run(conn, IDEM__SQL_CLOCK_SAVE);
}
