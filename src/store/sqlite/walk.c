/* Walking over the rows: lists. */
#include "store/sqlite/store.h"

#include <idem/operator.h>

enum {
    COLUMN_ID = 6
};
enum {
    SCOPE_ROWS = 2000 /* The size of a reader's cache: they are read twice. */
};

/* The position of a walk over one status: rows in the order of deadline and
 * seq. */
struct position {
    int64_t deadline_ms;
    int64_t seq;
};

typedef bool row_fn(void *ctx, int code, const struct idem_record *record,
                    int64_t seq);

/* Shows the current row. False: stop. A row without a usable id is skipped: it
 * cannot be found by any key either. */
static bool show(sqlite3_stmt *stmt, row_fn *each, void *ctx)
{
    const void *id = sqlite3_column_blob(stmt, COLUMN_ID);
    struct idem_record record;
    int rc;

    if (sqlite3_column_bytes(stmt, COLUMN_ID) != IDEM_ID_LEN) {
        return true;
    }
    rc = idem__row_decode(stmt, id, &record, NULL);
    return each(ctx, rc, &record, sqlite3_column_int64(stmt, 0));
}

/* Steps @stmt through its rows, noting the position of each. Adds to *@count.
 * SQLITE_OK or a result code; *@stopped when @each said so. */
static int step_rows(struct idem__conn *conn, sqlite3_stmt *stmt,
                     struct position *at, row_fn *each, void *ctx,
                     uint64_t *count, bool *stopped)
{
    int rc;

    while ((rc = idem__conn_step(conn, stmt)) == SQLITE_ROW) {
        at->seq = sqlite3_column_int64(stmt, 0);
        at->deadline_ms = sqlite3_column_int64(stmt, 2);
        (*count)++;
        if (!show(stmt, each, ctx)) {
            *stopped = true;
            rc = SQLITE_DONE;
            break;
        }
    }
    (void)sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Up to @limit rows of @status that are due by @to_ms, after @at: first those
 * with the same deadline, then later ones. *@done: there are no more. */
static int walk_status(struct idem__conn *conn, int status, int64_t to_ms,
                       uint64_t limit, struct position *at, row_fn *each,
                       void *ctx, bool *done, bool *stopped)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_WALK_SAME);
    uint64_t count = 0;
    int rc;

    (void)sqlite3_bind_int(stmt, 1, status);
    (void)sqlite3_bind_int64(stmt, 2, at->deadline_ms);
    (void)sqlite3_bind_int64(stmt, 3, at->seq);
    (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)limit);
    rc = step_rows(conn, stmt, at, each, ctx, &count, stopped);
    if (rc == SQLITE_OK && !*stopped && count < limit) {
        uint64_t rest = limit - count;

        stmt = idem__conn_stmt(conn, IDEM__SQL_WALK_LATER);
        (void)sqlite3_bind_int(stmt, 1, status);
        (void)sqlite3_bind_int64(stmt, 2, at->deadline_ms);
        (void)sqlite3_bind_int64(stmt, 3, to_ms);
        (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)rest);
        rc = step_rows(conn, stmt, at, each, ctx, &count, stopped);
    }
    *done = count < limit && !*stopped;
    return rc;
}

static int walk_all(struct idem__conn *conn, bool down, uint64_t limit,
                    struct position *at, row_fn *each, void *ctx, bool *done,
                    bool *stopped)
{
    sqlite3_stmt *stmt =
        idem__conn_stmt(conn, down ? IDEM__SQL_WALK_DOWN : IDEM__SQL_WALK_ALL);
    uint64_t count = 0;
    int rc;

    (void)sqlite3_bind_int64(stmt, 1, at->seq);
    (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)limit);
    rc = step_rows(conn, stmt, at, each, ctx, &count, stopped);
    *done = count < limit && !*stopped;
    return rc;
}

/* The seq of the last of the next SCOPE_ROWS rows; *ret_last: there are not so
 * many. */
static int scope_end(struct idem__conn *conn, bool down, int64_t seq,
                     int64_t *ret_end, bool *ret_last)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, down ? IDEM__SQL_SCOPE_DOWN_END
                                                    : IDEM__SQL_SCOPE_END);
    int rc;

    (void)sqlite3_bind_int64(stmt, 1, seq);
    (void)sqlite3_bind_int64(stmt, 2, SCOPE_ROWS);
    rc = idem__conn_step(conn, stmt);
    *ret_last = rc == SQLITE_DONE;
    *ret_end = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0)
               : down           ? INT64_MIN
                                : INT64_MAX;
    (void)sqlite3_reset(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The rows of one scope among the next SCOPE_ROWS. A page that shows nothing moves
 * on, too, and no reader keeps the log from being checkpointed for long. */
static int walk_scope(struct idem__conn *conn, bool down,
                      struct idem_slice scope, struct position *at,
                      row_fn *each, void *ctx, bool *done, bool *stopped)
{
    uint64_t count = 0;
    bool last = false;
    int64_t end = 0;
    int rc = scope_end(conn, down, at->seq, &end, &last);
    sqlite3_stmt *stmt;

    if (rc != SQLITE_OK) {
        return rc;
    }
    stmt = idem__conn_stmt(conn, down ? IDEM__SQL_SCOPE_DOWN : IDEM__SQL_SCOPE);
    (void)sqlite3_bind_int64(stmt, 1, at->seq);
    (void)sqlite3_bind_int64(stmt, 2, end);
    /* Without bytes it would be bound as NULL, which is equal to nothing. */
    (void)sqlite3_bind_blob(stmt, 3, scope.len > 0 ? scope.base : "",
                            (int)scope.len, SQLITE_STATIC);
    rc = step_rows(conn, stmt, at, each, ctx, &count, stopped);
    (void)sqlite3_clear_bindings(stmt);
    if (rc == SQLITE_OK && !*stopped) {
        at->seq = end;
        *done = last;
    }
    return rc;
}

/* Records that were completed with a failure. A note outlives a reopen, after
 * which the record is met under its status and must not be told a second time.
 * An application's database has no notes. */
static int walk_failed(struct idem__conn *conn, uint64_t limit,
                       struct position *at, row_fn *each, void *ctx, bool *done,
                       bool *stopped)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_WALK_FAILED);
    uint64_t count = 0;
    int rc;

    if (stmt == NULL) {
        *done = true;
        return conn->prepare_rc == SQLITE_ERROR ? SQLITE_OK : conn->prepare_rc;
    }
    (void)sqlite3_bind_int64(stmt, 1, at->seq);
    (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)limit);
    rc = step_rows(conn, stmt, at, each, ctx, &count, stopped);
    *done = count < limit && !*stopped;
    return rc;
}

/* ---- Lists ---- */

struct lister {
    struct idem_op *op;
    const struct idem_now *now;
};

static bool list_row(void *ctx, int code, const struct idem_record *record,
                     int64_t seq)
{
    struct lister *lister = ctx;

    (void)seq;
    return idem__verb_list_row(lister->op, code, record, lister->now);
}

enum {
    /* After the statuses in a list: what is completed with a failure. */
    FAILED_OUTCOMES = IDEM_STATUS_RELEASED + 1,
    ALL_STATUSES = 0x3e
};

/* The statuses that the filter can let through. */
static unsigned wanted(const struct idem_filter *filter)
{
    unsigned overdue = 1u << IDEM_STATUS_IN_PROGRESS;
    unsigned all = ALL_STATUSES;
    unsigned asked = filter->statuses & all;

    if (filter->failed_outcomes && (asked & 1u << IDEM_STATUS_COMPLETED) == 0) {
        asked |= 1u << FAILED_OUTCOMES;
    } else if (asked == 0) {
        asked = all;
    }
    if ((filter->statuses & 1u << IDEM_STATUS_RETRY) != 0) {
        asked |= 1u << IDEM_STATUS_IN_PROGRESS; /* So it is stored. */
    }
    return filter->overdue ? asked & overdue : asked;
}

/* The first of @statuses after @after, or 0. */
static int next_status(unsigned statuses, int after)
{
    int status;

    for (status = after + 1; status <= FAILED_OUTCOMES; status++) {
        if ((statuses & 1u << status) != 0) {
            return status;
        }
    }
    return 0;
}

/* A page of a list that no index serves. */
static int list_unsorted(struct idem__conn *conn, struct lister *lister,
                         bool down, struct position *at, bool *done)
{
    struct idem_op *op = lister->op;
    const struct idem_filter *filter = &op->u.list.filter;
    uint64_t shown = op->u.list.looked;
    int rc;

    if (filter->any_scope) {
        return walk_all(conn, down, op->u.list.limit, at, list_row, lister,
                        done, &op->u.list.stopped);
    }
    rc = walk_scope(conn, down, filter->scope, at, list_row, lister, done,
                    &op->u.list.stopped);
    if (!op->u.list.stopped) {
        op->u.list.looked = shown + SCOPE_ROWS;
    }
    return rc;
}

/* A page of those that an index serves: status after status, and of what a purge
 * would delete only what is due. */
static int list_indexed(struct idem__conn *conn, struct lister *lister,
                        unsigned statuses, int *status, struct position *at,
                        bool *done)
{
    struct idem_op *op = lister->op;
    bool *stopped = &op->u.list.stopped;
    int rc;

    *status = *status == 0 ? next_status(statuses, 0) : *status;
    rc = *status == FAILED_OUTCOMES
             ? walk_failed(conn, op->u.list.limit, at, list_row, lister, done,
                           stopped)
             : walk_status(conn, *status,
                           op->u.list.filter.expired ? lister->now->store_ms
                                                     : INT64_MAX,
                           op->u.list.limit, at, list_row, lister, done,
                           stopped);
    if (*done && next_status(statuses, *status) != 0) {
        *status = next_status(statuses, *status);
        *at = (struct position){0, 0};
        *done = false;
    }
    return rc;
}

/* The cursor is status, deadline, seq, also for outcomes that failed, after its
 * status; a list that no index serves has the seq alone, with a 1 before it
 * where it goes down and has begun. */
void idem__sqlite_list(struct idem__conn *conn, struct idem_op *op,
                       const struct idem_now *now)
{
    struct lister lister = {op, now};
    uint64_t *cursor = op->u.list.cursor;
    unsigned statuses = wanted(&op->u.list.filter);
    struct position at = {(int64_t)cursor[1], (int64_t)cursor[2]};
    bool down = idem__verb_list_down(op);
    int status = (int)cursor[0];
    bool done = true;
    int rc = SQLITE_OK;

    op->u.list.now_ms = now->store_ms;
    if (!op->u.list.filter.expired && (down || statuses == ALL_STATUSES)) {
        at.seq = down && status == 0 ? INT64_MAX : at.seq;
        status = down;
        rc = list_unsorted(conn, &lister, down, &at, &done);
        at.deadline_ms = 0;
    } else if (statuses != 0) {
        rc = list_indexed(conn, &lister, statuses, &status, &at, &done);
    }
    cursor[0] = (uint64_t)status;
    cursor[1] = (uint64_t)at.deadline_ms;
    cursor[2] = (uint64_t)at.seq;
    op->u.list.done = done || op->u.list.stopped;
    if (rc != SQLITE_OK) {
        (void)idem__conn_fail(conn, rc, "list the records", &op->error);
    }
}
