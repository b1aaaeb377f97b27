/* Walks over the rows, for lists and for changes that may affect every record. */
#include "base/crash.h"
#include "store/sqlite/store.h"

#include <idem/operator.h>

enum {
    COLUMN_ID = 6,
    SCOPE_ROWS = 2000 /* The size of a reader's cache: they are read twice. */
};

/* One page of a list. */
struct walk {
    struct idem__conn *conn;
    struct idem_op *op;
    const struct idem_now *now;
    int64_t
        deadline_ms; /* Of the last row, in the order of deadline and seq. */
    int64_t seq;
    int64_t last;   /* All open rows up to this seq are in the index. */
    uint64_t count; /* Rows of this page. */
    bool down;
    bool done; /* No row comes after it. */
};

/* Shows the row that @stmt is on. False: stop. A row without a usable id is skipped:
 * no key can find it either. */
static bool show(struct walk *walk, sqlite3_stmt *stmt)
{
    const void *id = sqlite3_column_blob(stmt, COLUMN_ID);
    struct idem_record record;
    int rc;

    if (sqlite3_column_bytes(stmt, COLUMN_ID) != IDEM_ID_LEN) {
        return true;
    }
    rc = idem__row_decode(stmt, id, &record, NULL);
    return idem__verb_list_row(walk->op, rc, &record, walk->now);
}

/* Shows the rows of @stmt. SQLITE_OK or a result code. */
static int step_rows(struct walk *walk, sqlite3_stmt *stmt)
{
    int rc;

    while ((rc = idem__conn_step(walk->conn, stmt)) == SQLITE_ROW) {
        walk->seq = sqlite3_column_int64(stmt, 0);
        walk->deadline_ms = sqlite3_column_int64(stmt, 2);
        walk->count++;
        if (!show(walk, stmt)) {
            walk->op->u.list.stopped = true;
            rc = SQLITE_DONE;
            break;
        }
    }
    (void)sqlite3_reset(stmt);
    walk->done =
        walk->count < walk->op->u.list.limit && !walk->op->u.list.stopped;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The rows of @status that are due by @to_ms: first those with the deadline of the last
 * row, then later ones. */
static int walk_status(struct walk *walk, int status, int64_t to_ms)
{
    int64_t last = status == IDEM_STATUS_IN_PROGRESS ? walk->last : INT64_MAX;
    uint64_t limit = walk->op->u.list.limit;
    int rc = step_rows(walk, IDEM__CONN_BIND(walk->conn, IDEM__SQL_WALK_SAME,
                                             status, walk->deadline_ms,
                                             walk->seq, (int64_t)limit, last));

    if (rc == SQLITE_OK && !walk->op->u.list.stopped && walk->count < limit) {
        rc = step_rows(walk,
                       IDEM__CONN_BIND(walk->conn, IDEM__SQL_WALK_LATER, status,
                                       walk->deadline_ms, to_ms,
                                       (int64_t)(limit - walk->count), last));
    }
    return rc;
}

static int find_last(struct walk *walk)
{
    sqlite3_stmt *stmt = idem__conn_stmt(walk->conn, IDEM__SQL_GREATEST);
    int rc = idem__conn_step(walk->conn, stmt);

    if (rc == SQLITE_ROW) {
        int64_t last =
            sqlite3_column_int64(stmt, 0) - (int64_t)2 * IDEM__ENTER_ROWS;

        walk->last = last > 0 ? last : 0;
        walk->seq = walk->last;
    }
    idem__conn_reset(walk->conn, IDEM__SQL_GREATEST);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* Lists the open rows among those that may not be in the index yet. A row that enters the
 * index meanwhile is not listed twice, because the walk through the index ends at
 * walk->last. */
static int walk_last(struct walk *walk, int64_t to_ms)
{
    int rc = walk->seq == 0 ? find_last(walk) : SQLITE_OK;

    return rc == SQLITE_OK
               ? step_rows(walk, IDEM__CONN_BIND(
                                     walk->conn, IDEM__SQL_WALK_LAST, walk->seq,
                                     walk->last + (int64_t)2 * IDEM__ENTER_ROWS,
                                     to_ms, (int64_t)walk->op->u.list.limit))
               : rc;
}

static int walk_all(struct walk *walk)
{
    return step_rows(walk, IDEM__CONN_BIND(walk->conn,
                                           walk->down ? IDEM__SQL_WALK_DOWN
                                                      : IDEM__SQL_WALK_ALL,
                                           walk->seq,
                                           (int64_t)walk->op->u.list.limit));
}

/* Finds the seq of the last of the next SCOPE_ROWS rows; *@ret_last: there are fewer. */
static int scope_end(const struct walk *walk, int64_t *ret_end, bool *ret_last)
{
    sqlite3_stmt *stmt = IDEM__CONN_BIND(walk->conn,
                                         walk->down ? IDEM__SQL_SCOPE_DOWN_END
                                                    : IDEM__SQL_SCOPE_END,
                                         walk->seq, SCOPE_ROWS);
    int rc = idem__conn_step(walk->conn, stmt);

    *ret_last = rc == SQLITE_DONE;
    *ret_end = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0)
               : walk->down     ? INT64_MIN
                                : INT64_MAX;
    (void)sqlite3_reset(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Lists the rows of one scope among the next SCOPE_ROWS. A page without any of them moves
 * on, too, and no reader keeps the log from being copied for long. */
static int walk_scope(struct walk *walk)
{
    struct idem_slice scope = walk->op->u.list.filter.scope;
    uint64_t looked = walk->op->u.list.looked;
    bool last = false;
    int64_t end = 0;
    int rc = scope_end(walk, &end, &last);
    sqlite3_stmt *stmt;

    if (rc != SQLITE_OK) {
        return rc;
    }
    stmt = IDEM__CONN_BIND(walk->conn,
                           walk->down ? IDEM__SQL_SCOPE_DOWN : IDEM__SQL_SCOPE,
                           walk->seq, end);
    /* Without bytes it would be bound as NULL, which is equal to nothing. */
    (void)sqlite3_bind_blob(stmt, 3, scope.len > 0 ? scope.base : "",
                            (int)scope.len, SQLITE_STATIC);
    rc = step_rows(walk, stmt);
    (void)sqlite3_clear_bindings(stmt);
    if (rc == SQLITE_OK && !walk->op->u.list.stopped) {
        walk->op->u.list.looked = looked + SCOPE_ROWS;
        walk->seq = end;
        walk->done = last;
    }
    return rc;
}

/* Lists the records that were completed with a failure. A note outlives a reopen, after
 * which the list finds the record by its status, and must not show it twice. An
 * application's database has no notes. */
static int walk_failed(struct walk *walk)
{
    sqlite3_stmt *stmt =
        IDEM__CONN_BIND(walk->conn, IDEM__SQL_WALK_FAILED, walk->seq,
                        (int64_t)walk->op->u.list.limit);

    if (stmt == NULL) {
        walk->done = true;
        return walk->conn->prepare_rc == SQLITE_ERROR ? SQLITE_OK
                                                      : walk->conn->prepare_rc;
    }
    return step_rows(walk, stmt);
}

/* ---- Lists ---- */

enum {
    /* After the statuses: records completed with a failure. */
    FAILED_OUTCOMES = IDEM_STATUS_RELEASED + 1,
    LAST_ROWS, /* Comes before IDEM_STATUS_IN_PROGRESS. */
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
        asked |= 1u << IDEM_STATUS_IN_PROGRESS; /* It is stored so. */
    }
    return filter->overdue ? asked & overdue : asked;
}

/* The first of @statuses after @after, or 0. */
static int next_status(unsigned statuses, int after)
{
    int status;

    if (after == LAST_ROWS) {
        return IDEM_STATUS_IN_PROGRESS;
    }
    if (after == 0 && (statuses & 1u << IDEM_STATUS_IN_PROGRESS) != 0) {
        return LAST_ROWS;
    }
    for (status = after + 1; status <= FAILED_OUTCOMES; status++) {
        if ((statuses & 1u << status) != 0) {
            return status;
        }
    }
    return 0;
}

/* Lists a page by the index, one status after another; of what a purge would delete, only
 * what is due. */
static int list_indexed(struct walk *walk, unsigned statuses, int *status)
{
    int64_t to_ms =
        walk->op->u.list.filter.expired ? walk->now->store_ms : INT64_MAX;
    int rc;

    *status = *status == 0 ? next_status(statuses, 0) : *status;
    rc = *status == FAILED_OUTCOMES ? walk_failed(walk)
         : *status == LAST_ROWS     ? walk_last(walk, to_ms)
                                    : walk_status(walk, *status, to_ms);
    if (walk->done && next_status(statuses, *status) != 0) {
        *status = next_status(statuses, *status);
        walk->deadline_ms = 0;
        walk->seq = 0;
        walk->done = false;
    }
    return rc;
}

/* The cursor is status, deadline, seq (FAILED_OUTCOMES counts as a status), and the seq
 * up to which open rows are in the index. A list that no index serves has only the seq,
 * with a 1 as the status if it goes down and has begun. */
void idem__sqlite_list(struct idem__conn *conn, struct idem_op *op,
                       const struct idem_now *now)
{
    uint64_t *cursor = op->u.list.cursor;
    unsigned statuses = wanted(&op->u.list.filter);
    struct walk walk = {.conn = conn,
                        .op = op,
                        .now = now,
                        .deadline_ms = (int64_t)cursor[1],
                        .seq = (int64_t)cursor[2],
                        .last = (int64_t)cursor[3],
                        .down = idem__verb_list_down(op),
                        .done = true};
    int status = (int)cursor[0];
    int rc = SQLITE_OK;

    op->u.list.now_ms = now->store_ms;
    if (!op->u.list.filter.expired && (walk.down || statuses == ALL_STATUSES)) {
        walk.seq = walk.down && status == 0 ? INT64_MAX : walk.seq;
        status = walk.down;
        rc = op->u.list.filter.any_scope ? walk_all(&walk) : walk_scope(&walk);
        walk.deadline_ms = 0;
    } else if (statuses != 0) {
        rc = list_indexed(&walk, statuses, &status);
    }
    cursor[0] = (uint64_t)status;
    cursor[1] = (uint64_t)walk.deadline_ms;
    cursor[2] = (uint64_t)walk.seq;
    cursor[3] = (uint64_t)walk.last;
    op->u.list.done = walk.done || op->u.list.stopped;
    if (rc != SQLITE_OK) {
        (void)idem__conn_fail(conn, rc, "list the records", &op->error);
    }
}

/* ---- Changes ---- */

static int look_at(struct idem__pass *pass, sqlite3_stmt *stmt)
{
    const void *id = sqlite3_column_blob(stmt, COLUMN_ID);
    bool is_id = sqlite3_column_bytes(stmt, COLUMN_ID) == IDEM_ID_LEN;
    struct idem_decision decision = {.change = IDEM_CHANGE_NONE};
    struct idem_record record;
    int rc;

    if (!is_id || idem__row_decode(stmt, id, &record, NULL) != 0) {
        return pass->decide(pass, /* record= */ NULL, /* writes= */ false,
                            &decision);
    }
    rc = pass->decide(pass, &record, /* writes= */ false, &decision);
    if (rc == 0 && decision.change != IDEM_CHANGE_NONE) {
        memcpy(pass->ids[pass->len++], id, IDEM_ID_LEN);
    }
    return rc;
}

/* Reads the next rows, and notes those that must change. *@ret_more: there were any. */
static int look_at_page(struct idem__pass *pass, bool *ret_more)
{
    struct idem__conn *conn = pass->store->table.conn;
    sqlite3_stmt *stmt =
        IDEM__CONN_BIND(conn, IDEM__SQL_WALK_ALL, pass->seq, IDEM__PASS_ROWS);
    uint64_t before = pass->rows;
    int sqlite_rc = SQLITE_DONE;
    int rc = 0;

    pass->len = 0;
    while (rc == 0 && (sqlite_rc = idem__conn_step(conn, stmt)) == SQLITE_ROW) {
        pass->seq = sqlite3_column_int64(stmt, 0);
        pass->rows++;
        rc = look_at(pass, stmt);
    }
    idem__conn_reset(conn, IDEM__SQL_WALK_ALL);
    *ret_more = pass->rows > before;
    if (rc == 0 && sqlite_rc != SQLITE_DONE) {
        rc = idem__pass_fail(pass, sqlite_rc);
    }
    return rc;
}

static int change(struct idem__pass *pass, const uint8_t id[IDEM_ID_LEN])
{
    struct idem_table table = idem__sqlite_table_of(&pass->store->table);
    struct idem_decision decision;
    struct idem_record record;
    int rc = table.load(table.ctx, id, /* with_bodies= */ false, &record,
                        pass->error);

    if (rc < 0) {
        return rc;
    }
    rc = pass->decide(pass, &record, /* writes= */ true, &decision);
    return rc == 0 ? table.save(table.ctx, &decision, pass->error) : rc;
}

static int change_page(struct idem__pass *pass)
{
    int rc = 0;
    size_t i;

    for (i = 0; i < pass->len && rc == 0; i++) {
        rc = change(pass, pass->ids[i]);
        IDEM__CRASH_POINT("sqlite/pass/changed");
    }
    idem__sqlite_table_reset(&pass->store->table);
    return rc;
}

int idem__pass_fail(const struct idem__pass *pass, int sqlite_rc)
{
    return idem__conn_fail(pass->store->table.conn, sqlite_rc, pass->doing,
                           pass->error);
}

int idem__pass_commit(struct idem__pass *pass,
                      int (*work)(struct idem__pass *pass))
{
    struct idem__conn *conn = pass->store->table.conn;
    int rc = idem__conn_run(conn, IDEM__SQL_BEGIN);

    if (rc != SQLITE_OK) {
        return idem__pass_fail(pass, rc);
    }
    rc = work(pass);
    if (rc == 0) {
        /* The generation becomes odd before the commit (replays.h). If the commit fails,
         * it stays odd, because the change may be found made after all. */
        idem__lock_change(pass->store->lock, /* begins= */ true);
        IDEM__CRASH_POINT("sqlite/pass/before-commit");
        rc = idem__conn_run(conn, IDEM__SQL_COMMIT);
        rc = rc == SQLITE_OK ? 0 : idem__pass_fail(pass, rc);
    }
    IDEM__CRASH_POINT("sqlite/pass/committed");
    if (rc != 0) {
        (void)idem__conn_run(conn, IDEM__SQL_ROLLBACK);
    } else {
        idem__lock_change(pass->store->lock, /* begins= */ false);
    }
    return rc;
}

int idem__pass_run(struct idem__pass *pass)
{
    bool more = true;
    int rc;

    while (more) {
        rc = look_at_page(pass, &more);
        if (rc != 0) {
            return rc;
        }
        if (pass->len > 0) {
            rc = idem__pass_commit(pass, change_page);
            idem__sqlite_checkpoint(pass->store);
            if (rc != 0) {
                return rc;
            }
        }
        if (more && pass->progress != NULL) {
            pass->progress(pass->ctx, pass->rows);
        }
    }
    return 0;
}
