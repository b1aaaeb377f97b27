/* Statements for a caller's own driver: the same records as in.c makes. */
#include "heap.h"
#include "temp.h"
#include "test.h"

#include <idem/plan.h>
#include <idem/sqlite.h>
#include <sqlite3.h>

/* ---- A driver ---- */

static sqlite3 *open_app(void)
{
    sqlite3 *db;
    size_t n;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    for (n = 0; idem_plan_table(n) != NULL; n++) {
        assert_int_equal(sqlite3_exec(db, idem_plan_table(n), NULL, NULL, NULL),
                         SQLITE_OK);
    }
    assert_int_equal(n, 5);
    assert_null(idem_plan_table(n + 1));
    return db;
}

static void sql(sqlite3 *db, const char *text)
{
    char *error = NULL;

    if (sqlite3_exec(db, text, NULL, NULL, &error) != SQLITE_OK) {
        fail_with("%s: %s", text, error);
    }
}

static sqlite3_stmt *prepare(sqlite3 *db, const struct idem_statement *s)
{
    sqlite3_stmt *stmt;
    size_t i;

    assert_int_equal(sqlite3_prepare_v2(db, s->text, -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_bind_parameter_count(stmt), s->values_len);
    for (i = 0; i < s->values_len; i++) {
        const struct idem_value *value = &s->values[i];
        int at = (int)i + 1;

        switch (value->type) {
        case IDEM_VALUE_INTEGER:
            (void)sqlite3_bind_int64(stmt, at, value->integer);
            break;
        case IDEM_VALUE_BYTES:
            (void)sqlite3_bind_blob64(stmt, at, value->bytes.base,
                                      value->bytes.len, SQLITE_TRANSIENT);
            break;
        default:
            (void)sqlite3_bind_null(stmt, at);
        }
    }
    return stmt;
}

/* A row, and memory of its own for its bytes. */
struct row {
    struct idem_value values[IDEM_PLAN_COLUMNS];
    uint8_t bytes[IDEM_PLAN_COLUMNS][512];
};

static void read_row(sqlite3 *db, const struct idem_op *op, struct row *row)
{
    struct idem_statement query;
    sqlite3_stmt *stmt;
    int i;

    assert_ok(idem_plan_read(op, &query));
    assert_int_equal(query.rows, 1);
    stmt = prepare(db, &query);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_count(stmt), IDEM_PLAN_COLUMNS);
    memset(row, 0, sizeof(*row));
    for (i = 0; i < IDEM_PLAN_COLUMNS; i++) {
        size_t len = (size_t)sqlite3_column_bytes(stmt, i);

        switch (sqlite3_column_type(stmt, i)) {
        case SQLITE_INTEGER:
            row->values[i].type = IDEM_VALUE_INTEGER;
            row->values[i].integer = sqlite3_column_int64(stmt, i);
            break;
        case SQLITE_BLOB:
            assert_true(len <= sizeof(row->bytes[i]));
            row->values[i].type = IDEM_VALUE_BYTES;
            memcpy(row->bytes[i], sqlite3_column_blob(stmt, i), len);
            row->values[i].bytes = idem_bytes(row->bytes[i], len);
            break;
        default:
            row->values[i].type = IDEM_VALUE_NULL;
        }
    }
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_finalize(stmt);
}

/* Runs a write; true if it changed as many rows as it must. */
static bool run(sqlite3 *db, const struct idem_statement *write)
{
    sqlite3_stmt *stmt = prepare(db, write);
    int rc = sqlite3_step(stmt);

    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE && sqlite3_changes(db) == write->rows;
}

/* Plans @op on the row that is there; carries it out. */
static int carry_out(sqlite3 *db, struct idem_op *op)
{
    struct idem_moment moment;
    struct idem_writes *writes;
    struct row row;
    size_t n;
    int rc;

    read_row(db, op, &row);
    assert_ok(idem_moment_read(&moment, &why));
    rc = idem_plan(op, row.values, IDEM_PLAN_COLUMNS, &moment, &writes, &why);
    memset(&row, 0xee, sizeof(row)); /* None of it is kept. */
    if (rc != 0) {
        return rc;
    }
    for (n = 0; idem_writes_at(writes, n) != NULL; n++) {
        assert_true(run(db, idem_writes_at(writes, n)));
    }
    idem_writes_destroy(writes);
    return 0;
}

static struct idem_request request_for(const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str(key);
    request.on_expired_lease = IDEM_HOLD;
    request.owner = idem_str("host/7");
    request.input = idem_str("the order");
    return request;
}

static struct idem_op *begin_op(const char *key)
{
    struct idem_request request = request_for(key);
    struct idem_op *op;

    assert_ok(idem_op_begin(&request, &op, &why));
    return op;
}

static struct idem_attempt *begin(sqlite3 *db, const char *key)
{
    struct idem_op *op = begin_op(key);
    struct idem_attempt *attempt;

    assert_ok(carry_out(db, op));
    assert_ok(idem_op_take_attempt(op, &attempt));
    idem_op_destroy(op);
    return attempt;
}

static int end(sqlite3 *db, const struct idem_attempt *attempt,
               enum idem_status status, const char *result)
{
    struct idem_outcome outcome = {.status = status,
                                   .result.bytes = idem_str(result)};
    struct idem_op *op;
    int rc;

    assert_ok(idem_op_end(attempt, &outcome, &op, &why));
    rc = carry_out(db, op);
    if (rc == 0) {
        assert_int_equal(idem_op_record(op)->status, status);
    }
    idem_op_destroy(op);
    return rc;
}

/* What begin_in() says to @key, and the result that it gives. */
static void assert_replayed_in(sqlite3 *db, const char *key, const char *result)
{
    struct idem_request request = request_for(key);
    struct idem_attempt *attempt;

    sql(db, "BEGIN IMMEDIATE");
    assert_ok(idem_sqlite_begin_in(db, &request, &attempt, &why));
    assert_int_equal(attempt->verdict, IDEM_REPLAY);
    assert_text(attempt->record->result.bytes, result);
    assert_text(attempt->record->input, "the order");
    idem_attempt_destroy(attempt);
    sql(db, "ROLLBACK");
}

/* ---- The tests ---- */

/* Planned and carried out, it is on record: a plan and begin_in() replay it. */
TEST(plan, recordsWhatOthersReplay)
{
    sqlite3 *db = open_app();
    struct idem_attempt *attempt;

    sql(db, "BEGIN IMMEDIATE");
    attempt = begin(db, "k");
    assert_int_equal(attempt->verdict, IDEM_STARTED);
    assert_ok(end(db, attempt, IDEM_STATUS_COMPLETED, "receipt 7"));
    sql(db, "COMMIT");
    idem_attempt_destroy(attempt);
    assert_replayed_in(db, "k", "receipt 7");

    attempt = begin(db, "k");
    assert_int_equal(attempt->verdict, IDEM_REPLAY);
    assert_text(attempt->record->result.bytes, "receipt 7");
    idem_attempt_destroy(attempt);
    (void)sqlite3_close(db);
}

/* And what begin_in() has begun, a plan ends, by its token too. */
TEST(plan, endsWhatOthersBegan)
{
    sqlite3 *db = open_app();
    struct idem_request request = request_for("k");
    struct idem_attempt *attempt;
    struct idem_attempt *again;
    char token[IDEM_TOKEN_MAX];

    sql(db, "BEGIN IMMEDIATE");
    assert_ok(idem_sqlite_begin_in(db, &request, &attempt, &why));
    sql(db, "COMMIT");
    again = begin(db, "k");
    assert_int_equal(again->verdict, IDEM_BUSY);
    idem_attempt_destroy(again);
    assert_ok(idem_attempt_token(attempt, token));
    idem_attempt_destroy(attempt);
    assert_ok(idem_attempt_from_token(NULL, token, &attempt, &why));
    assert_ok(end(db, attempt, IDEM_STATUS_COMPLETED, "receipt"));
    assert_ok(end(db, attempt, IDEM_STATUS_COMPLETED, "receipt"));
    assert_code(IDEM_ELOST, end(db, attempt, IDEM_STATUS_COMPLETED, "other"));
    assert_replayed_in(db, "k", "receipt");
    idem_attempt_destroy(attempt);
    (void)sqlite3_close(db);
}

/* Every end, and the verdict after it. */
TEST(plan, recordsEveryEnd)
{
    static const struct {
        enum idem_status status;
        enum idem_verdict verdict;
        const char *key;
    } ends[] = {
        {IDEM_STATUS_FAILED, IDEM_FAILED, "failed"},
        {IDEM_STATUS_UNKNOWN, IDEM_UNKNOWN, "unknown"},
        {IDEM_STATUS_RELEASED, IDEM_STARTED, "released"},
    };
    sqlite3 *db = open_app();
    struct idem_attempt *attempt;
    size_t i;

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        attempt = begin(db, ends[i].key);
        assert_ok(end(db, attempt, ends[i].status, ""));
        idem_attempt_destroy(attempt);
        attempt = begin(db, ends[i].key);
        assert_int_equal(attempt->verdict, ends[i].verdict);
        idem_attempt_destroy(attempt);
    }
    (void)sqlite3_close(db);
}

/* A renewal extends the lease that is on record. */
TEST(plan, renews)
{
    sqlite3 *db = open_app();
    struct idem_attempt *attempt = begin(db, "k");
    int64_t end_ms = attempt->record->lease_end_ms;
    struct idem_op *op;

    assert_ok(idem_op_renew(attempt, 600000, &op, &why));
    assert_ok(carry_out(db, op));
    assert_true(idem_op_record(op)->lease_end_ms >= end_ms + 500000);
    idem_op_destroy(op);
    idem_attempt_destroy(attempt);
    (void)sqlite3_close(db);
}

/* A plan that somebody came before is refused by the database, not carried out. */
TEST(plan, isForTheRowThatWasRead)
{
    sqlite3 *db = open_app();
    struct idem_attempt *attempt = begin(db, "k");
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_op *late = begin_op("l");
    struct idem_op *stale;
    struct idem_moment moment;
    struct idem_writes *writes;
    struct row row;

    assert_ok(idem_moment_read(&moment, &why));
    read_row(db, late, &row);
    assert_ok(
        idem_plan(late, row.values, IDEM_PLAN_COLUMNS, &moment, &writes, &why));
    idem_attempt_destroy(begin(db, "l"));
    assert_false(run(db, idem_writes_at(writes, 0)));
    idem_writes_destroy(writes);
    idem_op_destroy(late);

    assert_ok(idem_op_end(attempt, &outcome, &stale, &why));
    read_row(db, stale, &row);
    assert_ok(idem_plan(stale, row.values, IDEM_PLAN_COLUMNS, &moment, &writes,
                        &why));
    assert_ok(end(db, attempt, IDEM_STATUS_UNKNOWN, ""));
    assert_false(run(db, idem_writes_at(writes, 0)));
    idem_writes_destroy(writes);
    idem_op_destroy(stale);
    idem_attempt_destroy(attempt);
    (void)sqlite3_close(db);
}

/* The same row, moment and op make the same statements, byte for byte; nothing is
 * asked of the system. */
TEST(plan, dependsOnItsArgumentsAlone)
{
    sqlite3 *db = open_app();
    struct idem_moment moment = {
        .clock = {.wall_ms = 1700000000000, .boot_ms = 5000, .boot_id = "boot"},
        .nonce = "nonce",
    };
    struct idem_writes *plans[2];
    struct idem_op *ops[2];
    struct row row;
    size_t i;
    size_t n;

    for (i = 0; i < 2; i++) {
        ops[i] = begin_op("k");
        read_row(db, ops[i], &row);
        assert_ok(idem_plan(ops[i], row.values, IDEM_PLAN_COLUMNS, &moment,
                            &plans[i], &why));
    }
    for (n = 0; idem_writes_at(plans[0], n) != NULL; n++) {
        const struct idem_statement *a = idem_writes_at(plans[0], n);
        const struct idem_statement *b = idem_writes_at(plans[1], n);

        assert_string_equal(a->text, b->text);
        assert_int_equal(a->values_len, b->values_len);
        for (i = 0; i < a->values_len; i++) {
            assert_int_equal(a->values[i].integer, b->values[i].integer);
            assert_int_equal(a->values[i].bytes.len, b->values[i].bytes.len);
            assert_memory_equal(a->values[i].bytes.base,
                                b->values[i].bytes.base,
                                a->values[i].bytes.len);
        }
    }
    assert_int_equal(n, 2); /* The record, and the clock of a new boot. */
    assert_int_equal(idem_op_record(ops[0])->started_ms, 1700000000000);
    for (i = 0; i < 2; i++) {
        idem_writes_destroy(plans[i]);
        idem_op_destroy(ops[i]);
    }
    (void)sqlite3_close(db);
}

/* The clock is saved by a plan, and not by each: the next one has what was saved. */
TEST(plan, savesTheClockNowAndThen)
{
    sqlite3 *db = open_app();
    struct idem_moment moment = {
        .clock = {.wall_ms = 1700000000000, .boot_ms = 5000, .boot_id = "boot"},
    };
    static const struct {
        int64_t boot_ms;
        size_t writes;
    } steps[] = {{5000, 2}, {5500, 1}, {6500, 2}, {6600, 1}};
    size_t i;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        char key[] = "k0";
        struct idem_writes *writes;
        struct idem_op *op;
        struct row row;
        size_t n;

        key[1] = (char)('0' + i);
        op = begin_op(key);
        moment.nonce[0] = (uint8_t)i;
        moment.clock.boot_ms = steps[i].boot_ms;
        moment.clock.wall_ms = 1; /* Set back: store time goes on. */
        if (i == 0) {
            moment.clock.wall_ms = 1700000000000;
        }
        read_row(db, op, &row);
        assert_ok(idem_plan(op, row.values, IDEM_PLAN_COLUMNS, &moment, &writes,
                            &why));
        for (n = 0; idem_writes_at(writes, n) != NULL; n++) {
            assert_true(run(db, idem_writes_at(writes, n)));
        }
        assert_int_equal(n, steps[i].writes);
        assert_int_equal(idem_op_record(op)->started_ms,
                         1700000000000 + steps[i].boot_ms - 5000);
        idem_writes_destroy(writes);
        idem_op_destroy(op);
    }
    (void)sqlite3_close(db);
}

static int plan_row(const struct row *row, size_t len)
{
    struct idem_op *op = begin_op("k");
    struct idem_moment moment;
    struct idem_writes *writes;
    int rc;

    assert_ok(idem_moment_read(&moment, &why));
    rc = idem_plan(op, row->values, len, &moment, &writes, &why);
    if (rc == 0) {
        idem_writes_destroy(writes);
    }
    idem_op_destroy(op);
    return rc;
}

enum {
    SCHEMA,
    BOOT_ID,
    STORE_MS = 3,
    SEQ = 8,
    STATUS,
    DEADLINE,
    SCOPE,
    KEY,
    HEAD,
    RESULT
};

/* A row that is not the query's, or whose record cannot be trusted, is refused. */
TEST(plan, refusesRowsThatCannotBe)
{
    sqlite3 *db = open_app();
    struct idem_attempt *attempt = begin(db, "k");
    struct idem_op *op = begin_op("k");
    struct row good;
    struct row row;
    int i;

    assert_ok(end(db, attempt, IDEM_STATUS_COMPLETED, "receipt"));
    read_row(db, op, &good);
    assert_ok(plan_row(&good, IDEM_PLAN_COLUMNS));
    assert_code(IDEM_EINVALID, plan_row(&good, IDEM_PLAN_COLUMNS - 1));
    for (i = 0; i < IDEM_PLAN_COLUMNS; i++) {
        row = good;
        row.values[i].type = IDEM_VALUE_TEXT;
        assert_code(IDEM_EINVALID, plan_row(&row, IDEM_PLAN_COLUMNS));
    }

    row = good;
    row.values[SCHEMA].integer = 2;
    assert_code(IDEM_ECONFIG, plan_row(&row, IDEM_PLAN_COLUMNS));
    assert_why("schema version 2");
    row = good;
    row.values[SCHEMA].integer = INT64_C(0x100000001);
    assert_code(IDEM_ECONFIG, plan_row(&row, IDEM_PLAN_COLUMNS));
    row = good;
    row.values[BOOT_ID].bytes.len = 15;
    assert_code(IDEM_ECORRUPT, plan_row(&row, IDEM_PLAN_COLUMNS));
    row = good;
    row.values[STORE_MS].integer = INT64_MAX;
    assert_code(IDEM_ECORRUPT, plan_row(&row, IDEM_PLAN_COLUMNS));

    for (i = STATUS; i <= DEADLINE; i++) {
        row = good;
        row.values[i].integer++;
        assert_code(IDEM_ECORRUPT, plan_row(&row, IDEM_PLAN_COLUMNS));
    }
    for (i = KEY; i <= RESULT; i++) {
        uint8_t byte = 'x';

        row = good;
        row.values[i].bytes = idem_bytes(&byte, 1);
        assert_code(IDEM_ECORRUPT, plan_row(&row, IDEM_PLAN_COLUMNS));
    }
    idem_op_destroy(op);
    idem_attempt_destroy(attempt);
    (void)sqlite3_close(db);
}

/* Verbs that have no plan, and an op that was used up, are refused. */
TEST(plan, refusesOtherOps)
{
    sqlite3 *db = open_app();
    struct idem_statement query;
    struct idem_attempt *attempt;
    struct idem_moment moment;
    struct idem_writes *writes;
    struct idem_op *op;
    struct row row;

    assert_ok(idem_moment_read(&moment, &why));
    assert_ok(idem_op_get(idem_str(""), idem_str("k"), &op, &why));
    assert_code(IDEM_EINVALID, idem_plan_read(op, &query));
    assert_code(IDEM_EINVALID, idem_plan(op, row.values, IDEM_PLAN_COLUMNS,
                                         &moment, &writes, &why));
    idem_op_destroy(op);

    op = begin_op("k");
    assert_ok(carry_out(db, op));
    assert_ok(idem_op_take_attempt(op, &attempt));
    assert_code(IDEM_EINVALID, idem_plan_read(op, &query));
    idem_op_destroy(op);
    idem_attempt_destroy(attempt);
    (void)sqlite3_close(db);
}

/* Whichever allocation fails, a plan is whole or there is none. */
TEST(plan, survivesEveryFailedAllocation)
{
    sqlite3 *db = open_app();
    struct idem_attempt *attempt = begin(db, "done");
    struct idem_moment moment;
    struct row row;
    const char *keys[] = {"done", "new"};
    size_t which;
    int rc;
    long n;

    assert_ok(end(db, attempt, IDEM_STATUS_COMPLETED, "receipt"));
    idem_attempt_destroy(attempt);
    assert_ok(idem_moment_read(&moment, &why));
    for (which = 0; which < 2; which++) {
        rc = -1;
        for (n = 0; rc != 0; n++) {
            struct idem_op *op = begin_op(keys[which]);
            struct idem_writes *writes = NULL;

            read_row(db, op, &row);
            heap_fail(n, /* on= */ true);
            rc = idem_plan(op, row.values, IDEM_PLAN_COLUMNS, &moment, &writes,
                           &why);
            if (heap_fail_never()) {
                assert_code(IDEM_ENOMEM, rc);
                assert_null(writes);
            } else {
                assert_ok(rc);
            }
            idem_writes_destroy(writes);
            idem_op_destroy(op);
        }
        assert_true(n > 1);
    }
    (void)sqlite3_close(db);
}
