/* Saves and reads the counters in the file; store.h describes when they are saved. */
#include "store/sqlite/store.h"

#include "base/crash.h"
#include "base/host.h"

enum {
    SAVE_EVERY_MS = 1000,
    SAVES_AT_ONCE = 4
};

static uint64_t pending(const struct idem__counters *counters, size_t i)
{
    return __atomic_load_n(&counters->pending.n[i], __ATOMIC_RELAXED);
}

/* @change may encode a negative number. */
static void add(struct idem__counters *counters, size_t i, uint64_t change)
{
    if (change != 0) {
        (void)__atomic_fetch_add(&counters->pending.n[i], change,
                                 __ATOMIC_RELAXED);
    }
}

static struct idem__tally tally_of(const struct idem_op *batch)
{
    struct idem__tally tally = {{0}};

    for (; batch != NULL; batch = batch->next) {
        idem__tally_op(&tally, batch);
    }
    return tally;
}

void idem__counters_note(struct idem__counters *counters,
                         const struct idem_op *op)
{
    struct idem__tally tally = {{0}};
    size_t i;

    idem__tally_op(&tally, op);
    for (i = 0; i < IDEM__COUNTERS; i++) {
        add(counters, i, tally.n[i]);
    }
}

/* True if a save is due. Each save costs a second of credit; a process may owe a few. */
static bool may_save(struct idem__counters *counters)
{
    int64_t now_ms = idem__mono_ms();

    if (counters->paid_ms > now_ms + (SAVES_AT_ONCE - 1) * SAVE_EVERY_MS) {
        return false;
    }
    if (counters->paid_ms < now_ms) {
        counters->paid_ms = now_ms;
    }
    counters->paid_ms += SAVE_EVERY_MS;
    return true;
}

static int save_one(struct idem__conn *conn, size_t i, uint64_t n)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_COUNTER_ADD);

    if (stmt == NULL) {
        return conn->prepare_rc;
    }
    (void)sqlite3_bind_text(stmt, 1, idem__counter_names[i], -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)n);
    return idem__conn_run(conn, IDEM__SQL_COUNTER_ADD);
}

static int save(struct idem__counters *counters, struct idem__conn *conn,
                const struct idem__tally *tally)
{
    int rc = SQLITE_OK;
    size_t i;

    for (i = 0; i < IDEM__COUNTERS && rc == SQLITE_OK; i++) {
        if (tally->n[i] != 0) {
            rc = save_one(conn, i, tally->n[i]);
        }
    }
    if (rc == SQLITE_OK) {
        counters->saved = *tally;
    }
    return rc;
}

int idem__counters_save(struct idem__counters *counters,
                        struct idem__conn *conn, const struct idem_op *batch)
{
    struct idem__tally tally;
    size_t i;
    int rc;

    if (!may_save(counters)) {
        return SQLITE_OK;
    }
    tally = tally_of(batch);
    for (i = 0; i < IDEM__COUNTERS; i++) {
        tally.n[i] += pending(counters, i);
    }
    rc = save(counters, conn, &tally);
    IDEM__CRASH_POINT("sqlite/counters/saved");
    if (rc != SQLITE_OK) {
        /* The batch runs again, and must not fail for the counters once more. */
        counters->paid_ms = idem__mono_ms() + 2 * SAVES_AT_ONCE * SAVE_EVERY_MS;
    }
    return rc;
}

void idem__counters_begun(struct idem__counters *counters)
{
    memset(&counters->saved, 0, sizeof(counters->saved));
}

void idem__counters_committed(struct idem__counters *counters,
                              const struct idem_op *batch)
{
    struct idem__tally tally = tally_of(batch);
    size_t i;

    for (i = 0; i < IDEM__COUNTERS; i++) {
        add(counters, i, tally.n[i] - counters->saved.n[i]);
    }
}

bool idem__counters_left(const struct idem__counters *counters)
{
    size_t i;

    for (i = 0; i < IDEM__COUNTERS; i++) {
        if (pending(counters, i) != 0) {
            return true;
        }
    }
    return false;
}

void idem__counters_flush(struct idem__counters *counters,
                          struct idem__conn *conn)
{
    int rc =
        sqlite3_exec(conn->db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);

    if (rc == SQLITE_OK) {
        rc = idem__conn_run(conn, IDEM__SQL_BEGIN);
    }
    if (rc != SQLITE_OK) {
        return;
    }
    rc = save(counters, conn, &counters->pending);
    if (rc == SQLITE_OK) {
        IDEM__CRASH_POINT("sqlite/counters/flushes");
        rc = idem__conn_run(conn, IDEM__SQL_COMMIT);
    }
    if (rc != SQLITE_OK) {
        (void)idem__conn_run(conn, IDEM__SQL_ROLLBACK);
    }
}

/* ---- Reading ---- */

static void read_row(sqlite3_stmt *stmt, struct idem__tally *tally)
{
    const char *name = (const char *)sqlite3_column_text(stmt, 0);
    size_t i;

    for (i = 0; name != NULL && i < IDEM__COUNTERS; i++) {
        if (strcmp(name, idem__counter_names[i]) == 0) {
            tally->n[i] += (uint64_t)sqlite3_column_int64(stmt, 1);
        }
    }
}

void idem__counters_answer(const struct idem__counters *counters,
                           struct idem__conn *conn, struct idem_op *op)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_COUNTERS_LOAD);
    struct idem__tally tally = {{0}};
    size_t i;
    int rc;

    for (i = 0; i < IDEM__COUNTERS; i++) {
        tally.n[i] = pending(counters, i);
    }
    while ((rc = idem__conn_step(conn, stmt)) == SQLITE_ROW) {
        read_row(stmt, &tally);
    }
    (void)sqlite3_reset(stmt);
    if (rc != SQLITE_DONE) {
        (void)idem__conn_fail(conn, rc, "read the counters", &op->error);
        return;
    }
    idem__tally_answer(&tally, op);
}
