/* One batch: many ops, one transaction, one flush.
 *
 * A commit that fails says nothing about whether it will be seen after a crash,
 * and after a failed flush the pages that the kernel still shows may never reach
 * the disk. Such a store is broken until it has settled: a new connection has
 * carried the whole log over into the file, and flushed it. Then the batch is
 * run again. Every op recognises what an earlier copy of it did, so that the
 * second run answers rightly whether the first was applied or not. A second
 * failure in a row leaves the ops with IDEM_EUNKNOWN.
 */
#include "base/host.h"
#include "core/error.h"
#include "store/sqlite/store.h"

enum {
    CHECKPOINT_PAGES = 1000,
    CLOSE_CHECKPOINT_PAGES = 100,
    CLOSE_WAIT_MS = 100
};

static void clear_answer(struct idem_op *op)
{
    memset(&op->error, 0, sizeof(op->error));
    op->verdict = (enum idem_verdict)0;
    op->takeover = false;
    op->changed = false;
    op->has_record = false;
    op->lease_left_ms = 0;
}

static void fail_all(struct idem_op *batch, const struct idem_error *error)
{
    for (; batch != NULL; batch = batch->next) {
        clear_answer(batch);
        batch->error = *error;
    }
}

/* True if @op wrote something. */
static bool run_op(struct idem__sqlite_store *store, struct idem_op *op,
                   const struct idem_now *now)
{
    struct idem__table table = idem__sqlite_table_of(&store->table);

    clear_answer(op);
    if (op->verb == IDEM_OP_PURGE) {
        return idem__sqlite_purge(store, op, now);
    }
    return idem__engine_run(&table, op, now);
}

static void roll_back(struct idem__sqlite_store *store)
{
    /* SQLite may have rolled back by itself; then this fails, and may. */
    (void)idem__conn_run(store->table.conn, IDEM__SQL_ROLLBACK);
}

/* Runs the ops inside the transaction. An SQLite result. */
static int run_ops(struct idem__sqlite_store *store, struct idem_op *batch)
{
    struct idem_error error;
    struct idem_op *op;
    struct idem_now now;
    bool save_clock;
    bool wrote = false;
    int rc =
        idem__clock_load(&store->clock, store->table.conn, /* writer= */ true);

    if (rc != SQLITE_OK) {
        return rc;
    }
    if (idem__clock_now(&store->clock, &store->base.options.host, &now,
                        &save_clock, &error) != 0) {
        fail_all(batch, &error);
        return SQLITE_OK;
    }
    for (op = batch; op != NULL; op = op->next) {
        uint64_t floor = store->clock.fence_floor;

        wrote = run_op(store, op, &now) || wrote;
        if (store->table.sqlite_rc != SQLITE_OK) {
            return store->table.sqlite_rc;
        }
        save_clock = save_clock || store->clock.fence_floor != floor;
        now.fence_floor = store->clock.fence_floor;
    }
    if (wrote && save_clock) {
        rc = idem__clock_save(&store->clock, store->table.conn, &now);
    }
    if (wrote && rc == SQLITE_OK) {
        rc = idem__counters_save(&store->counters, store->table.conn, batch);
    }
    return rc;
}

/* A purge moves on in its op as it deletes. What is rolled back was not deleted:
 * it looks at the same place again. */
static void note_places(struct idem_op *batch)
{
    for (; batch != NULL; batch = batch->next) {
        if (batch->verb == IDEM_OP_PURGE) {
            memcpy(batch->u.purge.from, batch->u.purge.cursor,
                   sizeof(batch->u.purge.from));
        }
    }
}

static void go_back(struct idem_op *batch)
{
    for (; batch != NULL; batch = batch->next) {
        if (batch->verb == IDEM_OP_PURGE) {
            memcpy(batch->u.purge.cursor, batch->u.purge.from,
                   sizeof(batch->u.purge.from));
            batch->u.purge.done = false;
        }
    }
}

/* One transaction over the batch. An SQLite result; the answers hold only if it
 * is SQLITE_OK. */
static int transact(struct idem__sqlite_store *store, struct idem_op *batch)
{
    int rc;

    store->table.sqlite_rc = SQLITE_OK;
    idem__counters_begun(&store->counters);
    note_places(batch);
    rc = idem__conn_run(store->table.conn, IDEM__SQL_BEGIN);
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = run_ops(store, batch);
    idem__sqlite_table_reset(&store->table);
    if (rc == SQLITE_OK) {
        rc = idem__conn_run(store->table.conn, IDEM__SQL_COMMIT);
    }
    if (rc == SQLITE_OK) {
        idem__counters_committed(&store->counters, batch);
    } else {
        roll_back(store);
        go_back(batch);
    }
    return rc;
}

static int reconnect(struct idem__sqlite_store *store, struct idem_error *error)
{
    idem__conn_close(store->table.conn);
    store->table.conn = NULL;
    return idem__sqlite_connect(store, /* writer= */ true, &store->table.conn,
                                error);
}

/* Carries the whole log over into the file, flushed, by a new connection. */
static int settle(struct idem__sqlite_store *store, struct idem_error *error)
{
    struct idem__conn *conn;
    int rc = reconnect(store, error);

    if (rc != 0) {
        return rc;
    }
    conn = store->table.conn;
    rc = sqlite3_wal_checkpoint_v2(conn->db, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                   NULL, NULL);
    if (rc != SQLITE_OK) {
        return idem__conn_fail(conn, rc, "settle the store", error);
    }
    store->broken = false;
    return 0;
}

static void checkpoint(struct idem__sqlite_store *store)
{
    struct idem__conn *conn = store->table.conn;

    if (conn != NULL && conn->wal_pages >= CHECKPOINT_PAGES) {
        /* What cannot be carried over now stays in the log, where it is as
         * durable. */
        (void)sqlite3_wal_checkpoint_v2(conn->db, NULL,
                                        SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        conn->wal_pages = 0;
    }
}

void idem__sqlite_tidy(struct idem__sqlite_store *store)
{
    struct idem__conn *conn = store->table.conn;
    bool count;
    bool carry;

    if (conn == NULL || store->broken) {
        return;
    }
    count = idem__counters_left(&store->counters);
    carry = conn->wal_pages >= CLOSE_CHECKPOINT_PAGES;
    if ((!count && !carry) ||
        idem__lock_acquire(store->lock,
                           idem__mono_ms() + (count ? CLOSE_WAIT_MS : 0),
                           NULL) != 0) {
        return;
    }
    idem__conn_patience(conn, 0);
    if (count) {
        idem__counters_flush(&store->counters, conn);
    }
    if (conn->wal_pages >= CLOSE_CHECKPOINT_PAGES) {
        (void)sqlite3_wal_checkpoint_v2(conn->db, NULL,
                                        SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    idem__lock_release(store->lock);
}

static void fail_unknown(struct idem_op *batch, const char *why)
{
    struct idem_error error;

    (void)idem__error(&error, IDEM_EUNKNOWN,
                      "the disk failed (%.120s): it is not known whether the "
                      "change was made",
                      why);
    fail_all(batch, &error);
}

/* After a write that failed on the disk. */
static void run_settled(struct idem__sqlite_store *store, struct idem_op *batch)
{
    struct idem_error error;

    store->broken = true;
    if (settle(store, &error) != 0) {
        fail_unknown(batch, error.text);
        return;
    }
    if (transact(store, batch) != SQLITE_OK) {
        store->broken = true;
        fail_unknown(batch, sqlite3_errmsg(store->table.conn->db));
    }
}

/* True if what was written before the commit failed may be found again. */
static bool may_reappear(const struct idem__sqlite_store *store, int sqlite_rc)
{
    return idem__sqlite_is_io(sqlite_rc) ||
           ((sqlite_rc & 0xff) == SQLITE_FULL &&
            !store->table.conn->full_is_clean);
}

static void run_alone(struct idem__sqlite_store *store, struct idem_op *op)
{
    struct idem_op *next = op->next;
    int rc;

    op->next = NULL;
    rc = transact(store, op);
    if (may_reappear(store, rc)) {
        run_settled(store, op);
    } else if (rc != SQLITE_OK) {
        clear_answer(op);
        (void)idem__conn_fail(store->table.conn, rc, "write to the store",
                              &op->error);
    }
    op->next = next;
}

/* Another program holds the database: it would hold it against each of them. */
static void fail_busy(struct idem__sqlite_store *store, struct idem_op *batch,
                      int sqlite_rc)
{
    struct idem_error error;

    (void)idem__conn_fail(store->table.conn, sqlite_rc, "write to the store",
                          &error);
    fail_all(batch, &error);
}

/* A failing op must not fail strangers. */
static void run_singly(struct idem__sqlite_store *store, struct idem_op *batch)
{
    for (; batch != NULL; batch = batch->next) {
        struct idem_error error;

        if (store->broken && settle(store, &error) != 0) {
            error.code = IDEM_EUNAVAILABLE;
            fail_all(batch, &error);
            return;
        }
        run_alone(store, batch);
    }
}

static void run_batch(struct idem__sqlite_store *store, struct idem_op *batch)
{
    struct idem_error error;
    int rc;

    if ((store->broken || store->table.conn == NULL) &&
        settle(store, &error) != 0) {
        error.code = IDEM_EUNAVAILABLE;
        fail_all(batch, &error);
        return;
    }
    idem__conn_patience(store->table.conn,
                        batch->deadline_ms - idem__mono_ms());
    rc = transact(store, batch);
    if ((rc & 0xff) == SQLITE_READONLY) {
        /* What cannot be opened for writing SQLite opens for reading, and all
         * connections keep it so: also where there was only no descriptor to be
         * had at that moment. */
        idem__readers_drop_idle(&store->readers);
        if (reconnect(store, &error) != 0) {
            fail_all(batch, &error);
            return;
        }
        rc = transact(store, batch);
    }
    if (rc == SQLITE_OK) {
        return;
    }
    if (may_reappear(store, rc)) {
        run_settled(store, batch);
    } else if ((rc & 0xff) == SQLITE_BUSY) {
        fail_busy(store, batch, rc);
    } else {
        run_singly(store, batch);
    }
}

void idem__sqlite_run(struct idem_store *base, struct idem_op *batch)
{
    struct idem__sqlite_store *store = (struct idem__sqlite_store *)base;
    struct idem_op *op;

    run_batch(store, batch);
    checkpoint(store);
    idem__lock_release(store->lock);
    for (op = batch; op != NULL; op = op->next) {
        if (op->error.code == 0 &&
            (op->verb == IDEM_OP_END || op->verb == IDEM_OP_RESOLVE)) {
            idem_store_changed(base, op->id);
        }
    }
}
