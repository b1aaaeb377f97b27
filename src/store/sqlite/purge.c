/* Deletes records past their retention, in slices that writers do not notice.
 *
 * The index on status and deadline alone shows which records are due, a window of it at a
 * time. A purge visits them in the order of the table, so that a slice reads and changes
 * pages that lie together. Each row is checked again then: a window may be old, and
 * several purges may share one.
 *
 * SQLite reuses a page that has become empty, and merges a page that is more than two
 * thirds empty with its neighbours; it leaves the pages between as they are. Only VACUUM
 * packs the file.
 *
 * A purge that is alone takes the time that it needs for a hundred rows. Beside writers
 * (others had the lock since its last slice, or were in its batch) a slice deletes for
 * BESIDE_MS at most, takes some BESIDE_MS of the lock with its commit, and rests
 * REST_TIMES as long afterwards. Where a flush alone takes longer, on a slow disk or one
 * that others use, fewer rows make a commit hardly shorter, and the purge too slow for
 * what the writers record: so it stays at LEAST_ROWS.
 *
 * An open record is due by its lease, but a held record never expires. The file has the
 * deadline up to which all open records are held (idem_purge), and purges do not look at
 * those again before LOOK_AGAIN_MS. That deadline may be wrong after an import, or after
 * the time was set back: then a record is deleted later. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "store/sqlite/store.h"

#include <stdlib.h>

enum {
    WINDOW_ROWS = 4096,
    SLICE_ROWS = 100,
    LEAST_ROWS = 32, /* Beside writers: some 64 pages of the log. */
    SLICE_MS = 20,
    BESIDE_MS = 4,
    REST_TIMES = 12,
    REST_MAX_MS = 400,
    LOOK_AGAIN_MS = 7 * 24 * 3600 * 1000,
    COLUMN_ID = 6
};

/* The statuses that can expire, in the order of the purge. */
static const int expiring[] = {
    IDEM_STATUS_COMPLETED, IDEM_STATUS_RELEASED,
    IDEM_STATUS_IN_PROGRESS, /* Under rerun, a retention after its lease. */
};

enum {
    STATUSES = sizeof(expiring) / sizeof(expiring[0])
};

/* The cursor: the place in expiring[], or STATUSES for the windows of limits; deadline;
 * seq. Then the turn of the op's last slice, plus one. Then the deadline up to which all
 * open records that the op saw are held, which another purge between its slices does not
 * know. */
enum {
    CURSOR_TURN = 3,
    CURSOR_HELD = 4
};

/* One slice. */
struct slice {
    struct idem__sqlite_store *store;
    struct idem__conn *conn;
    struct idem_op *op;
    const struct idem_now *now;
    int64_t until_ns;
    size_t rows; /* The most rows to check. */
    bool wrote;
};

static bool is_time_over(const struct slice *slice)
{
    return idem__mono_ns() >= slice->until_ns;
}

static bool is_open_walk(const struct slice *slice)
{
    return expiring[slice->op->u.purge.cursor[0]] == IDEM_STATUS_IN_PROGRESS;
}

/* ---- What is held ---- */

struct mark {
    int64_t held_ms; /* Open records are checked after this deadline. */
    int64_t looked_ms;
};

/* Loads the mark; zero if there is none, or it is too old. */
static int load_mark(const struct slice *slice, struct mark *ret_mark)
{
    sqlite3_stmt *stmt = idem__conn_stmt(slice->conn, IDEM__SQL_HELD_LOAD);
    int64_t now_ms = slice->now->store_ms;
    int rc;

    memset(ret_mark, 0, sizeof(*ret_mark));
    if (stmt == NULL && slice->conn->prepare_rc == SQLITE_ERROR) {
        return SQLITE_OK; /* No purge has made the table yet. */
    }
    rc = idem__conn_step(slice->conn, stmt);
    if (rc == SQLITE_ROW) {
        int64_t looked_ms = sqlite3_column_int64(stmt, 1);

        if (looked_ms <= now_ms && now_ms - looked_ms < LOOK_AGAIN_MS) {
            ret_mark->held_ms = sqlite3_column_int64(stmt, 0);
            ret_mark->looked_ms = looked_ms;
        }
        rc = SQLITE_DONE;
    }
    idem__conn_reset(slice->conn, IDEM__SQL_HELD_LOAD);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Saves that all open records due by @to_ms were checked. The time of the first check
 * stays: a purge that goes on from an earlier mark does not make it newer. */
static int save_mark(struct slice *slice, int64_t to_ms)
{
    uint64_t *cursor = slice->op->u.purge.cursor;
    int64_t held_ms =
        least((int64_t)cursor[CURSOR_HELD], slice->store->purge.held_ms);
    struct mark mark;
    sqlite3_stmt *stmt;
    int rc = load_mark(slice, &mark);

    cursor[CURSOR_HELD] = (uint64_t)held_ms;
    held_ms = least(held_ms, to_ms);
    if (rc != SQLITE_OK || held_ms <= mark.held_ms) {
        return rc;
    }
    stmt = idem__conn_stmt(slice->conn, IDEM__SQL_HELD_SAVE);
    if (stmt == NULL && slice->conn->prepare_rc == SQLITE_ERROR) {
        rc = idem__schema_add_purge(slice->conn);
        stmt = idem__conn_stmt(slice->conn, IDEM__SQL_HELD_SAVE);
    }
    if (rc == SQLITE_OK) {
        (void)sqlite3_bind_int64(stmt, 1, held_ms);
        (void)sqlite3_bind_int64(stmt, 2,
                                 mark.held_ms != 0 ? mark.looked_ms
                                                   : slice->now->store_ms);
        rc = idem__conn_run(slice->conn, IDEM__SQL_HELD_SAVE);
        slice->wrote = true;
    }
    return rc;
}

int idem__sqlite_purge_forget(struct idem__conn *conn)
{
    return idem__conn_stmt(conn, IDEM__SQL_HELD_FORGET) == NULL
               ? SQLITE_OK
               : idem__conn_run(conn, IDEM__SQL_HELD_FORGET);
}

/* ---- What is due ---- */

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static int note_rows(struct slice *slice, sqlite3_stmt *stmt)
{
    struct idem__purge *purge = &slice->store->purge;
    int rc;

    while ((rc = idem__conn_step(slice->conn, stmt)) == SQLITE_ROW) {
        purge->seqs[purge->len++] = sqlite3_column_int64(stmt, 0);
        purge->to[1] = (uint64_t)sqlite3_column_int64(stmt, 1);
        purge->to[2] = (uint64_t)sqlite3_column_int64(stmt, 0);
    }
    (void)sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Notes the next rows of a status after purge->from: first those with the same
 * deadline, then later ones. */
static int note_window(struct slice *slice)
{
    struct idem__purge *purge = &slice->store->purge;
    int status = expiring[purge->from[0]];
    int64_t deadline_ms = (int64_t)purge->from[1];
    int rc =
        note_rows(slice, IDEM__CONN_BIND(slice->conn, IDEM__SQL_PURGE_SAME,
                                         status, deadline_ms,
                                         (int64_t)purge->from[2], WINDOW_ROWS));

    if (rc == SQLITE_OK && purge->len < WINDOW_ROWS) {
        rc = note_rows(slice,
                       IDEM__CONN_BIND(slice->conn, IDEM__SQL_PURGE_LATER,
                                       status, deadline_ms,
                                       idem__clock_sure_ms(slice->now),
                                       (int64_t)(WINDOW_ROWS - purge->len)));
    }
    if (purge->len > 1) {
        qsort(purge->seqs, purge->len, sizeof(int64_t), compare);
    }
    return rc;
}

/* Fills the window from the cursor of the op. */
static int find_rows(struct slice *slice)
{
    struct idem__purge *purge = &slice->store->purge;
    uint64_t *place = slice->op->u.purge.cursor;
    struct mark mark;

    if (is_open_walk(slice) && place[1] == 0) {
        int rc = load_mark(slice, &mark);

        if (rc != SQLITE_OK) {
            return rc;
        }
        place[1] = (uint64_t)mark.held_ms;
        place[CURSOR_HELD] = INT64_MAX;
        rc = idem__conn_run(slice->conn, IDEM__SQL_ENTER_ALL);
        if (rc != SQLITE_OK) {
            return rc;
        }
        slice->wrote = slice->wrote || sqlite3_changes(slice->conn->db) > 0;
    }
    purge->held_ms = INT64_MAX;
    idem__sqlite_purge_undone(slice->store);
    memcpy(purge->from, place, sizeof(purge->from));
    memcpy(purge->to, place, sizeof(purge->to));
    return note_window(slice);
}

static bool has_window(const struct slice *slice)
{
    const struct idem__purge *purge = &slice->store->purge;

    return purge->next < purge->len &&
           memcmp(purge->from, slice->op->u.purge.cursor,
                  sizeof(purge->from)) == 0;
}

/* ---- Deleting ---- */

/* An open record that is not held keeps the mark before its deadline. The window notes
 * that, because several purges may share it. */
static void note_unheld(struct slice *slice, sqlite3_stmt *stmt,
                        const struct idem_record *record)
{
    int64_t deadline_ms = sqlite3_column_int64(stmt, 2);

    if (record->expires_ms != IDEM_NEVER &&
        deadline_ms < slice->store->purge.held_ms) {
        slice->store->purge.held_ms = deadline_ms - 1;
    }
}

/* Reads the row @seq, and sets whether it must be deleted. */
static int look_at(struct slice *slice, int64_t seq, bool *ret_over)
{
    struct idem__sqlite_clock *clock = &slice->store->clock;
    sqlite3_stmt *stmt = IDEM__CONN_BIND(slice->conn, IDEM__SQL_PURGE_ROW, seq);
    struct idem_record record;
    const void *id;
    int rc = idem__conn_step(slice->conn, stmt);

    *ret_over = false;
    if (rc == SQLITE_ROW) {
        id = sqlite3_column_blob(stmt, COLUMN_ID);
        /* A record that cannot be trusted is left as it is. */
        if (sqlite3_column_bytes(stmt, COLUMN_ID) == IDEM_ID_LEN &&
            idem__row_decode(stmt, id, &record, NULL) == 0) {
            if (!idem__decide_expired(&record, slice->now)) {
                note_unheld(slice, stmt, &record);
            } else {
                /* The deletion forgets the fence of the record: no later claim may get it
                 * again. */
                if (record.fence > clock->fence_floor) {
                    clock->fence_floor = record.fence;
                }
                *ret_over = true;
            }
        }
        rc = SQLITE_DONE;
    }
    idem__conn_reset(slice->conn, IDEM__SQL_PURGE_ROW);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int delete_row(struct slice *slice, int64_t seq)
{
    int rc = IDEM__CONN_RUN(slice->conn, IDEM__SQL_DELETE, seq);

    if (rc == SQLITE_OK) {
        slice->wrote = true;
        slice->store->table.ends_replays = true;
        slice->op->u.purge.purged++;
        slice->store->purge.deleted = seq;
    }
    IDEM__CRASH_POINT("sqlite/purge/row-deleted");
    return rc;
}

/* Deletes the expired rows of the window, as many as a slice may. */
static int delete_rows(struct slice *slice)
{
    struct idem__purge *purge = &slice->store->purge;
    int rc = SQLITE_OK;

    while (rc == SQLITE_OK && slice->rows > 0 && purge->next < purge->len &&
           slice->op->u.purge.purged < slice->op->u.purge.max) {
        int64_t seq = purge->seqs[purge->next++];
        bool over;

        rc = look_at(slice, seq, &over);
        if (rc == SQLITE_OK && over) {
            rc = delete_row(slice, seq);
        }
        slice->rows--;
        if (is_time_over(slice)) {
            slice->rows = 0;
        }
    }
    IDEM__CRASH_POINT("sqlite/purge/slice-deleted");
    return rc;
}

/* ---- The slice ---- */

/* Moves the cursor of the op past the window. */
static int leave_window(struct slice *slice)
{
    struct idem__purge *purge = &slice->store->purge;
    uint64_t *place = slice->op->u.purge.cursor;
    bool was_last = purge->len < WINDOW_ROWS;
    int rc = SQLITE_OK;

    memcpy(place, purge->to, sizeof(purge->to));
    if (is_open_walk(slice)) {
        rc = save_mark(slice, (int64_t)purge->to[1]);
    }
    if (was_last) {
        place[0]++;
        place[1] = 0;
        place[2] = 0;
    }
    idem__sqlite_purge_undone(slice->store);
    return rc;
}

void idem__sqlite_purge_finish(struct idem__purge *purge)
{
    idem__free(purge->seqs);
    purge->seqs = NULL;
    purge->len = 0;
    purge->next = 0;
}

/* After the records come the windows of limits, which are not records and are
 * not counted. */
static bool purge_limits(struct slice *slice)
{
    struct idem_op *op = slice->op;
    bool went =
        idem__sqlite_limit_purge(slice->store, op, slice->now,
                                 slice->until_ns / 1000000, &op->u.purge.done);

    if (op->u.purge.done) {
        op->u.purge.cursor[0] = 0;
        idem__sqlite_purge_finish(&slice->store->purge);
    }
    return went;
}

static int purge_records(struct slice *slice)
{
    struct idem__purge *purge = &slice->store->purge;
    int rc = has_window(slice) ? SQLITE_OK : find_rows(slice);

    rc = rc == SQLITE_OK ? delete_rows(slice) : rc;
    return rc == SQLITE_OK && purge->next == purge->len ? leave_window(slice)
                                                        : rc;
}

static void init(struct slice *slice, struct idem__sqlite_store *store,
                 struct idem_op *op, const struct idem_now *now)
{
    struct idem__purge *purge = &store->purge;
    int64_t ms = purge->beside ? BESIDE_MS : SLICE_MS;

    memset(slice, 0, sizeof(*slice));
    slice->store = store;
    slice->conn = store->table.conn;
    slice->op = op;
    slice->now = now;
    slice->until_ns = idem__mono_ns() + idem__time_ns(ms);
    if (purge->rows == 0) {
        purge->rows = LEAST_ROWS;
    }
    slice->rows = purge->beside ? purge->rows : SLICE_ROWS;
}

bool idem__sqlite_purge(struct idem__sqlite_store *store, struct idem_op *op,
                        const struct idem_now *now)
{
    struct slice slice;
    int rc;

    init(&slice, store, op, now);
    if (op->u.purge.cursor[0] == STATUSES) {
        return purge_limits(&slice);
    }
    if (store->purge.seqs == NULL) {
        store->purge.seqs = idem__alloc(WINDOW_ROWS * sizeof(int64_t));
    }
    if (store->purge.seqs == NULL) {
        (void)idem__error_plain(&op->error, IDEM_ENOMEM);
        return false;
    }
    rc = purge_records(&slice);
    if (rc != SQLITE_OK) {
        return idem__sqlite_write_failed(&store->table, op, rc,
                                         "delete records");
    }
    return slice.wrote;
}

void idem__sqlite_purge_undone(struct idem__sqlite_store *store)
{
    store->purge.len = 0;
    store->purge.next = 0;
}

bool idem__sqlite_purge_was_applied(struct idem__sqlite_store *store)
{
    struct idem__conn *conn = store->table.conn;
    int rc = idem__conn_step(conn, IDEM__CONN_BIND(conn, IDEM__SQL_PURGE_ROW,
                                                   store->purge.deleted));

    idem__conn_reset(conn, IDEM__SQL_PURGE_ROW);
    return rc == SQLITE_DONE;
}

/* ---- Its share of the lock ---- */

static struct idem_op *find_purge(struct idem_op *batch)
{
    while (batch != NULL && batch->verb != IDEM_OP_PURGE) {
        batch = batch->next;
    }
    return batch;
}

void idem__sqlite_purge_ran(struct idem__sqlite_store *store,
                            struct idem_op *batch, int64_t commit_ns,
                            int64_t lock_ns)
{
    struct idem__purge *purge = &store->purge;
    struct idem_op *op = find_purge(batch);
    uint64_t turn;
    int64_t rest_ms;

    if (op == NULL) {
        return;
    }
    turn = (uint64_t)idem__lock_turn(store->lock) + 1;
    purge->beside =
        batch->next != NULL || (op->u.purge.cursor[CURSOR_TURN] != 0 &&
                                turn - op->u.purge.cursor[CURSOR_TURN] > 1);
    op->u.purge.cursor[CURSOR_TURN] = turn;
    if (!purge->beside) {
        return;
    }
    if (commit_ns > idem__time_ns(2 * BESIDE_MS) && purge->rows > LEAST_ROWS) {
        purge->rows /= 2;
    } else if (commit_ns < idem__time_ns(BESIDE_MS) &&
               purge->rows < SLICE_ROWS) {
        purge->rows *= 2;
    }
    rest_ms = lock_ns * REST_TIMES / 1000000;
    for (; op != NULL; op = find_purge(op->next)) {
        op->u.purge.rest_ms = rest_ms < REST_MAX_MS ? rest_ms : REST_MAX_MS;
    }
}
