/* Keeps records in the caller's own database, within the caller's transaction. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "queue/op.h"
#include "store/sqlite/conn.h"

#include <idem/queue.h>
#include <idem/sqlite.h>

/* The state that one call needs besides the caller's connection. */
struct visit {
    struct idem__conn conn;
    struct idem__sqlite_clock clock;
    struct idem__sqlite_table table;
    uint8_t head[IDEM_HEAD_MAX];
};

static void leave(struct visit *visit)
{
    idem__conn_finalize(&visit->conn);
    idem__clock_finish(&visit->clock);
    idem__free(visit);
}

static int enter(sqlite3 *db, struct visit **ret_visit,
                 struct idem_error *error)
{
    struct visit *visit;
    int rc;

    if (sqlite3_get_autocommit(db)) {
        return idem__error(error, IDEM_EINVALID,
                           "no transaction is open: run BEGIN IMMEDIATE first");
    }
    visit = idem__zalloc(sizeof(*visit));
    if (visit == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    idem__clock_init(&visit->clock);
    visit->conn.db = db;
    visit->table.conn = &visit->conn;
    visit->table.head = visit->head;
    rc = idem__schema_create_in(&visit->conn, error);
    if (rc != 0) {
        leave(visit);
        return rc;
    }
    *ret_visit = visit;
    return 0;
}

static int run_op(struct visit *visit, struct idem_op *op)
{
    struct idem_table table = idem__sqlite_table_of(&visit->table);
    struct idem_host host = {.ctx = NULL};
    struct idem_now now;
    bool save_clock;
    int rc = idem__clock_load(&visit->clock, &visit->conn, /* writer= */ true);

    if (rc != SQLITE_OK) {
        return idem__conn_fail(&visit->conn, rc, "read the clock", &op->error);
    }
    idem__host_default(&host);
    rc = idem__clock_now(&visit->clock, &host, &now, &save_clock, &op->error);
    if (rc != 0) {
        return rc;
    }
    op->asked_boot_ms = now.boot_ms;
    if (!op->has_nonce && host.random(host.ctx, op->nonce, 16) != 0) {
        return idem__op_fail(op, IDEM_EUNAVAILABLE, "cannot read random bytes");
    }
    op->has_nonce = true;
    if (idem__table_run(&table, op, &now) && save_clock) {
        rc = idem__clock_save(&visit->clock, &visit->conn, &now);
        if (rc != SQLITE_OK) {
            return idem__conn_fail(&visit->conn, rc, "set the clock",
                                   &op->error);
        }
    }
    idem__sqlite_table_reset(&visit->table);
    IDEM__CRASH_POINT("sqlite/in/ran");
    return op->error.code;
}

/* Runs @op inside the caller's transaction. On failure, destroys @op. */
static int call_in(sqlite3 *db, struct idem_op *op, struct idem_error *error)
{
    struct visit *visit = NULL;
    int rc = enter(db, &visit, &op->error);

    if (rc == 0) {
        rc = run_op(visit, op);
        leave(visit);
    }
    if (rc != 0) {
        if (error != NULL) {
            *error = op->error;
        }
        idem_op_destroy(op);
    }
    return rc;
}

int idem_sqlite_begin_in(struct sqlite3 *db, const struct idem_request *request,
                         struct idem_attempt **ret_attempt,
                         struct idem_error *ret_error)
{
    struct idem_op *op;
    int rc = idem_op_begin(request, &op, ret_error);

    if (rc == 0) {
        rc = call_in(db, op, ret_error);
    }
    if (rc != 0) {
        return rc;
    }
    *ret_attempt = idem__attempt_of_op(op);
    idem_op_destroy(op);
    return 0;
}

/* A store and this database have separate keys: the same key and fence may belong to
 * another attempt here. */
static int check_origin(const struct idem_attempt *attempt,
                        struct idem_error *error)
{
    const struct idem__attempt *a = (const struct idem__attempt *)attempt;

    if (a->store == NULL) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "the attempt was begun in a store: end it with "
                       "idem_complete() and the other endings");
}

int idem_sqlite_end_in(struct sqlite3 *db, struct idem_attempt *attempt,
                       const struct idem_outcome *outcome,
                       struct idem_error *ret_error)
{
    struct idem_op *op;
    int rc = check_origin(attempt, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = idem_op_end(attempt, outcome, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = call_in(db, op, ret_error);
    if (rc == 0 || rc == IDEM_ELOST) {
        idem__attempt_set_lease_end(idem__attempt_of(attempt), 0);
    }
    if (rc == 0) {
        idem__attempt_update(attempt, op);
    }
    return rc;
}

int idem_sqlite_complete_in(struct sqlite3 *db, struct idem_attempt *attempt,
                            const struct idem_result *result,
                            struct idem_error *ret_error)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};

    if (result != NULL) {
        outcome.result = *result;
    }
    return idem_sqlite_end_in(db, attempt, &outcome, ret_error);
}

int idem_sqlite_renew_in(struct sqlite3 *db, struct idem_attempt *attempt,
                         int64_t lease_ms, struct idem_error *ret_error)
{
    struct idem__attempt *a = idem__attempt_of(attempt);
    struct idem_op *op;
    int rc = check_origin(attempt, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = idem_op_renew(attempt, lease_ms == 0 ? a->lease_ms : lease_ms, &op,
                       ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = call_in(db, op, ret_error);
    if (rc == IDEM_ELOST) {
        idem__attempt_set_lease_end(a, 0);
    }
    if (rc != 0) {
        return rc;
    }
    idem__attempt_count_lease(a, op);
    idem_op_destroy(op);
    return 0;
}
