/* Runs one batch: many ops, one transaction, one flush.
 *
 * A failed commit does not show whether a crash would keep it. The store is then broken
 * until it has settled (settle.c). Then the batch runs again. Every op recognises what an
 * earlier copy of it did, so the second run answers correctly whether or not the first
 * was applied. A second failure in a row leaves the ops with IDEM_EUNKNOWN.
 *
 *     transact ---------------------- 0 -----------------------> answered
 *        |
 *        |-- the disk failed --> settle -- 0 --> transact -- 0 --> answered
 *        |                          |               |
 *        |                          '-- failed -----'--> IDEM_EUNKNOWN; broken
 *        |                                               until a later batch settles
 *        |-- another program holds the file --> all fail; nothing was done
 *        '-- no room, or one op cannot be run --> each op in a transaction alone
 */
#include "base/crash.h"
#include "base/host.h"
#include "core/error.h"
#include "store/sqlite/store.h"

#include <errno.h>

/* A batch may run twice: nothing of the first answer may show in the second. */
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

/* True for an op that starts something new. All others end or continue what was begun,
 * and may use the reserve of the disk for that. */
static bool is_new(const struct idem_op *op)
{
    return op->verb == IDEM_OP_BEGIN || op->verb == IDEM_OP_IMPORT ||
           op->verb == IDEM_OP_LIMIT;
}

/* True for an op that ends or renews what was begun. */
static bool is_continued(const struct idem_op *op)
{
    return op->verb == IDEM_OP_END || op->verb == IDEM_OP_RENEW ||
           op->verb == IDEM_OP_EXPIRE;
}

/* Refuses the new @op, unless a read answers it. Without its reserve a store might not be
 * able to record an end, and under a second name the file would be two stores. A replay
 * writes nothing, so it is still answered. */
static void refuse(const struct idem__sqlite_store *store,
                   const struct idem_table *table, struct idem_op *op,
                   const struct idem_now *now)
{
    if (idem__table_peek(table, op, now)) {
        return;
    }
    if (store->files.is_linked) {
        (void)
            idem__op_fail(op, IDEM_ECONFIG,
                          "%.120s was given a hard link while it was in use: "
                          "each name would be a store of its own; nothing was "
                          "done",
                          store->path);
        return;
    }
    (void)idem__op_fail(
        op, IDEM_EFULL,
        "the disk is full: the rest of it is reserved for ending open "
        "attempts; nothing was done");
}

/* Runs @op in the open transaction. True if it wrote something. */
static bool run_op(struct idem__sqlite_store *store, struct idem_op *op,
                   const struct idem_now *now)
{
    struct idem_table table = idem__sqlite_table_of(&store->table);

    clear_answer(op);
    if (op->verb == IDEM_OP_PURGE) {
        return idem__sqlite_purge(store, op, now);
    }
    if (op->verb == IDEM_OP_LIMIT) {
        return idem__sqlite_limit(store, op, now);
    }
    if (op->verb == IDEM_OP_MOVE) {
        return idem__sqlite_move(store, op, now);
    }
    if ((store->reserve.lacking || store->files.is_linked) && is_new(op)) {
        refuse(store, &table, op, now);
        return false;
    }
    return idem__table_run(&table, op, now);
}

static void roll_back(struct idem__sqlite_store *store)
{
    /* Fails, harmlessly, if SQLite has rolled back by itself. */
    (void)idem__conn_run(store->table.conn, IDEM__SQL_ROLLBACK);
    store->table.conn->has_limits = false;
    if (!sqlite3_get_autocommit(store->table.conn->db)) {
        /* The rollback failed for lack of memory: settling closes the connection. */
        store->broken = true;
    }
    if (store->table.conn->makes_tables) {
        /* The rollback took the new tables away again. Statements that stay
         * prepared on them would count as a sign that they exist. */
        idem__conn_finalize(store->table.conn);
        store->table.conn->makes_tables = false;
    }
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
        return SQLITE_OK; /* The answers are set; the transaction is empty. */
    }
    /* Every op of the batch is decided at the same time. A later op sees the rows of an
     * earlier one, and the fence floor that an earlier purge raised. */
    for (op = batch; op != NULL; op = op->next) {
        uint64_t floor = store->clock.fence_floor;
        bool op_wrote = run_op(store, op, &now);

        wrote = op_wrote || wrote;
        IDEM__CRASH_POINT("sqlite/batch/op-run");
        /* One op that SQLite cannot run ends the transaction of all; run_singly()
         * then keeps its failure from the others. */
        if (store->table.sqlite_rc != SQLITE_OK) {
            return store->table.sqlite_rc;
        }
        /* Save the time with a purge: no later boot may start at a time at which the
         * deleted records had not expired. */
        save_clock = save_clock || store->clock.fence_floor != floor ||
                     (op_wrote && op->verb == IDEM_OP_PURGE);
        now.fence_floor = store->clock.fence_floor;
    }
    /* Commit the time of the decisions with them, so that no later writer decides by
     * an earlier time. */
    if (wrote && save_clock) {
        rc = idem__clock_save(&store->clock, store->table.conn, &now);
        store->saved_ms = idem__clock_sure_ms(&now);
    }
    if (wrote && rc == SQLITE_OK) {
        rc = idem__counters_save(&store->counters, store->table.conn, batch);
    }
    return rc;
}

/* A purge advances its cursor as it deletes. A rollback restores the rows, so the
 * cursor goes back with it and the next run visits them again. */
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
            batch->u.purge.undone = batch->u.purge.purged;
            batch->u.purge.purged = 0;
        }
    }
}

/* The failed run was applied, so the next one does not find the rows that it deleted:
 * count them now. */
static void count_undone(struct idem_op *batch)
{
    for (; batch != NULL; batch = batch->next) {
        if (batch->verb == IDEM_OP_PURGE) {
            batch->u.purge.purged = batch->u.purge.undone;
        }
    }
}

/* A file at its size limit (EFBIG) is handled like a full disk, which SQLite reports
 * for ENOSPC alone. */
static int full_if_too_big(struct idem__sqlite_store *store, int rc)
{
    store->too_big =
        idem__sqlite_is_io(rc) && store->table.conn->io_errno == EFBIG;
    return store->too_big ? SQLITE_FULL : rc;
}

/* The last transaction failed cleanly: nothing of @op was done. */
static void fail_write(const struct idem__sqlite_store *store,
                       struct idem_op *op, int sqlite_rc)
{
    if (store->too_big) {
        (void)idem__op_fail(op, IDEM_EFULL,
                            "%.120s: cannot write to the store: a file of it "
                            "would exceed the limit of file sizes; raise that "
                            "(ulimit -f)",
                            store->path);
        return;
    }
    (void)idem__conn_fail(store->table.conn, sqlite_rc, "write to the store",
                          &op->error);
}

/* While the store is broken, the failed change may yet be found made, so it has not
 * ended. */
static void end_change(struct idem__sqlite_store *store)
{
    if (store->changes && !store->broken) {
        idem__lock_change(store->lock, /* begins= */ false);
        store->changes = false;
    }
}

/* One transaction over the batch. An SQLite result; the answers hold only if it
 * is SQLITE_OK. */
static int transact(struct idem__sqlite_store *store, struct idem_op *batch)
{
    int rc;

    store->table.sqlite_rc = SQLITE_OK;
    store->table.ends_replays = false;
    store->saved_ms = 0;
    idem__counters_begun(&store->counters);
    note_places(batch);
    rc = idem__conn_run(store->table.conn, IDEM__SQL_BEGIN);
    if (rc != SQLITE_OK) {
        return rc;
    }
    IDEM__CRASH_POINT("sqlite/batch/begun");
    rc = run_ops(store, batch);
    idem__sqlite_table_reset(&store->table);
    if (rc == SQLITE_OK) {
        /* The generation becomes odd before the commit, so that no process replays from
         * memory what this commit replaces (replays.h). */
        if (store->table.ends_replays) {
            idem__sqlite_begin_change(store);
        }
        IDEM__CRASH_POINT("sqlite/batch/before-commit");
        rc = idem__conn_run(store->table.conn, IDEM__SQL_COMMIT);
    }
    if (rc == SQLITE_OK) {
        /* Durable from here on, and no caller has its answer yet. If the process dies
         * now, its claims stay held until their leases end. */
        IDEM__CRASH_POINT("sqlite/batch/committed");
        store->table.conn->makes_tables = false;
        idem__counters_committed(&store->counters, batch);
        if (store->saved_ms != 0) {
            /* Note the time only after the commit: with a note later than its own time,
             * the store would pass for an older copy. */
            idem__seen_note(store->lock, store->saved_ms);
        }
    } else {
        rc = full_if_too_big(store, rc);
        roll_back(store);
        go_back(batch);
        idem__sqlite_purge_undone(store);
    }
    return rc;
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

/* Runs the batch once more after a write failed on the disk. The first run may reappear
 * from the log, so settle that first: then each op finds out whether it was applied. */
static void run_settled(struct idem__sqlite_store *store, struct idem_op *batch)
{
    struct idem_error error;

    store->broken = true;
    if (idem__sqlite_settle(store, &error) != 0) {
        fail_unknown(batch, error.text);
        return;
    }
    if (idem__sqlite_purge_was_applied(store)) {
        count_undone(batch);
    }
    if (transact(store, batch) != SQLITE_OK) {
        store->broken = true; /* Or the next commit trusts an unflushed log. */
        /* EUNKNOWN even if this run failed cleanly: the first may have been applied. */
        fail_unknown(batch, sqlite3_errmsg(store->table.conn->db));
    }
}

/* True if the failed commit may yet be found in the log, after a crash or by another
 * connection. */
static bool may_reappear(const struct idem__sqlite_store *store, int sqlite_rc)
{
    return idem__sqlite_is_io(sqlite_rc) ||
           ((sqlite_rc & 0xff) == SQLITE_FULL &&
            !store->table.conn->full_is_clean);
}

static bool is_full(int sqlite_rc)
{
    return (sqlite_rc & 0xff) == SQLITE_FULL;
}

/* Writes @op to a full disk. A checkpoint makes the blocks of the log free to be written
 * again; if they do not suffice, the reserve gives its blocks a slice at a time, so that
 * another program cannot take all of them at once. */
static int transact_on_full(struct idem__sqlite_store *store,
                            struct idem_op *op)
{
    int rc;

    do {
        (void)sqlite3_wal_checkpoint_v2(store->table.conn->db, NULL,
                                        SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        rc = transact(store, op);
    } while (is_full(rc) && !may_reappear(store, rc) &&
             idem__reserve_give(&store->reserve, store->path, &store->share));
    return rc;
}

/* True if @op could not read, for which SQLite has ended the transaction. @op has the
 * error. */
static bool could_not_read(const struct idem__sqlite_store *store,
                           const struct idem_op *op)
{
    return op->error.code != 0 && store->table.sqlite_rc == SQLITE_OK;
}

static void run_alone(struct idem__sqlite_store *store, struct idem_op *op)
{
    struct idem_op *next = op->next;
    int rc;

    op->next = NULL;
    rc = transact(store, op);
    /* The reserve is kept for ends: new work would use it up and could not end. */
    if (is_full(rc) && !may_reappear(store, rc) && !is_new(op)) {
        rc = transact_on_full(store, op);
    }
    if (may_reappear(store, rc)) {
        run_settled(store, op);
    } else if (rc != SQLITE_OK && !could_not_read(store, op)) {
        clear_answer(op);
        fail_write(store, op, rc);
    }
    op->next = next;
}

/* Another program holds the database, and would hold it against each op alone, too: the
 * whole batch fails at once. */
static void fail_busy(struct idem__sqlite_store *store, struct idem_op *batch,
                      int sqlite_rc)
{
    struct idem_error error;

    (void)idem__conn_fail(store->table.conn, sqlite_rc, "write to the store",
                          &error);
    fail_all(batch, &error);
}

/* Runs each op in a transaction of its own, so that one that fails does not fail the ops
 * of other callers. */
static void run_singly(struct idem__sqlite_store *store, struct idem_op *batch)
{
    for (; batch != NULL; batch = batch->next) {
        struct idem_error error;

        if (store->broken && idem__sqlite_settle(store, &error) != 0) {
            error.code = IDEM_EUNAVAILABLE; /* The rest has not run. */
            fail_all(batch, &error);
            return;
        }
        run_alone(store, batch);
    }
}

/* Fills the reserve before new work is taken. An end may have used it since, in any
 * process, or another process may have filled it. */
static void fill_reserve(struct idem__sqlite_store *store,
                         const struct idem_op *batch)
{
    for (; batch != NULL; batch = batch->next) {
        if (is_new(batch)) {
            (void)idem__reserve_fill(&store->reserve, store->path,
                                     &store->share);
            return;
        }
    }
}

/* True if the files have to be checked before anything is written. A claim that is
 * refused after its commit must not be in a file that is put back later, because no
 * caller would work under it. An end may be in such a file: if it is repeated, it finds
 * itself done. So for ends a check of a moment ago is enough. */
static bool needs_look(const struct idem__sqlite_store *store,
                       const struct idem_op *batch)
{
    if (store->broken || store->table.conn == NULL ||
        !idem__files_were_there(store)) {
        return true;
    }
    while (batch != NULL && is_continued(batch)) {
        batch = batch->next;
    }
    return batch != NULL;
}

static void run_batch(struct idem__sqlite_store *store, struct idem_op *batch)
{
    struct idem_error error;
    int rc;

    if (needs_look(store, batch) &&
        idem__files_check(store, /* committed= */ false, &error) != 0) {
        fail_all(batch, &error);
        return;
    }
    if ((store->broken || store->table.conn == NULL) &&
        idem__sqlite_settle(store, &error) != 0) {
        error.code = IDEM_EUNAVAILABLE; /* This batch has not run yet. */
        fail_all(batch, &error);
        return;
    }
    idem__conn_patience(store->table.conn,
                        batch->deadline_ms - idem__mono_ms());
    fill_reserve(store, batch);
    rc = transact(store, batch);
    if ((rc & 0xff) == SQLITE_READONLY) {
        /* If SQLite cannot open a file for writing, it opens it for reading, and all
         * connections then share that, even if the process only had no descriptor
         * left at that moment. Drop them all, and open it anew. */
        idem__readers_drop_idle(&store->readers);
        if (idem__sqlite_reconnect(store, &error) != 0) {
            fail_all(batch, &error);
            return;
        }
        rc = transact(store, batch);
    }
    if (rc == SQLITE_OK) {
        return;
    }
    /* Only a batch that may be on the disk has to be settled. The others did nothing. */
    if (may_reappear(store, rc)) {
        run_settled(store, batch);
    } else if ((rc & 0xff) == SQLITE_BUSY) {
        fail_busy(store, batch, rc);
    } else {
        run_singly(store, batch);
    }
}

/* Counts claims that started something, in a row: after many, a look by reading alone
 * would only cost time, and claims go to the leader at once (peek.c). */
static void note_begin(struct idem__sqlite_store *store,
                       const struct idem_op *op)
{
    unsigned n = __atomic_load_n(&store->new_in_a_row, __ATOMIC_RELAXED);

    if (op->verb != IDEM_OP_BEGIN && op->verb != IDEM_OP_LIMIT) {
        return;
    }
    if (!op->changed) {
        n = 0;
    } else if (n < IDEM__NEW_IN_A_ROW) {
        n++;
    }
    __atomic_store_n(&store->new_in_a_row, n, __ATOMIC_RELAXED);
}

/* True if callers may wait for the change that @op made. Limits and purges have no key.
 * An end counts even if it changed nothing: in the second run of a batch it finds the
 * change of the first. */
static bool may_have_changed(const struct idem_op *op)
{
    return op->error.code == 0 && op->key.len > 0 &&
           (op->changed || op->verb == IDEM_OP_END ||
            op->verb == IDEM_OP_RESOLVE);
}

void idem__sqlite_run(struct idem_store *base, struct idem_op *batch)
{
    struct idem__sqlite_store *store = (struct idem__sqlite_store *)base;
    int64_t start_ns = idem__mono_ns();
    int64_t commit_ns;
    struct idem_error error;
    struct idem_op *op;

    /* Another process truncated the lock file: write the notes about this store again.
     * The generation was lost, too: end_change() starts it anew. */
    if (idem__lock_was_emptied(store->lock)) {
        idem__making_renew(store);
        store->changes = true;
    }
    run_batch(store, batch);
    end_change(store);
    /* A commit to a file that was moved away is not on record: the claim has
     * not started, and the end goes to the journal. */
    if (idem__files_check(store, /* committed= */ true, &error) != 0) {
        fail_all(batch, &error);
    }
    commit_ns = idem__mono_ns() - start_ns;
    idem__sqlite_checkpoint(store);
    idem__sqlite_purge_ran(store, batch, commit_ns, idem__mono_ns() - start_ns);
    /* Release before any caller is answered, so that the next process works while ours
     * wake up. If the lock file was deleted, another process may have held a new one at
     * the same time: nothing of this batch is certain. */
    if (!idem__lock_release(store->lock)) {
        (void)idem__files_lost_lock(store, &error);
        fail_all(batch, &error);
    }
    IDEM__CRASH_POINT("sqlite/lock/released");
    for (op = batch; op != NULL; op = op->next) {
        note_begin(store, op);
        if (may_have_changed(op)) {
            idem__store_changed(base, op->id);
        }
    }
}
