/* Effect and record in one transaction: both are there, or neither is. */
#include "claims.h"
#include "db.h"
#include "temp.h"
#include "test.h"

#include <idem/operator.h>
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <unistd.h>

static void close_app(void *db)
{
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A database of an application: it has a table of its own, and is closed when the test
 * has ended. */
static sqlite3 *open_app(const char *path)
{
    sqlite3 *db = db_open(path);

    (void)sqlite3_busy_timeout(db, 0);
    db_run(db, "CREATE TABLE IF NOT EXISTS effect (key TEXT)");
    test_after(close_app, db);
    return db;
}

static int64_t records(sqlite3 *db)
{
    return db_number(db, "SELECT count(*) FROM idem_operations");
}

static int64_t tables_of_ours(sqlite3 *db)
{
    return db_number(db, "SELECT count(*) FROM sqlite_schema "
                         "WHERE name LIKE 'idem%'");
}

static struct idem_attempt *begin_in(sqlite3 *db, const char *key)
{
    struct idem_request request = claim(key);
    struct idem_attempt *attempt;

    assert_ok(idem_sqlite_begin_in(db, &request, &attempt, &why));
    return freed_later(attempt);
}

static int complete_in(sqlite3 *db, struct idem_attempt *attempt,
                       const char *text)
{
    struct idem_result result = {.bytes = idem_str(text)};

    return idem_sqlite_complete_in(db, attempt, &result, &why);
}

/* The whole life of a key in one transaction. */
static void live(sqlite3 *db, const char *key, const char *result)
{
    struct idem_attempt *attempt;

    db_run(db, "BEGIN IMMEDIATE");
    attempt = begin_in(db, key);
    assert_int_equal(attempt->verdict, IDEM_STARTED);
    db_run(db, "INSERT INTO effect VALUES ('x')");
    assert_ok(complete_in(db, attempt, result));
    db_run(db, "COMMIT");
}

static void assert_verdict(sqlite3 *db, const char *key,
                           enum idem_verdict verdict)
{

    db_run(db, "BEGIN IMMEDIATE");
    assert_int_equal(begin_in(db, key)->verdict, verdict);
    db_run(db, "ROLLBACK");
}

/* Begun, done and completed in one transaction: the next caller has the result,
 * byte for byte, and the effect is there once. */
TEST(in, replaysWhatWasCommitted)
{
    sqlite3 *db = open_app(":memory:");
    struct idem_attempt *attempt;

    live(db, "k", "receipt 7");
    db_run(db, "BEGIN IMMEDIATE");
    attempt = begin_in(db, "k");
    assert_int_equal(attempt->verdict, IDEM_REPLAY);
    assert_text(attempt->record->result.bytes, "receipt 7");
    db_run(db, "ROLLBACK");
    assert_int_equal(db_number(db, "SELECT count(*) FROM effect"), 1);
    assert_int_equal(records(db), 1);
}

/* A transaction that is rolled back leaves nothing: no record, no table of ours,
 * no effect. The key is free, and who held it no longer owns it. */
TEST(in, leavesNothingAfterRollback)
{
    sqlite3 *db = open_app(":memory:");
    struct idem_attempt *attempt;

    db_run(db, "BEGIN IMMEDIATE");
    attempt = begin_in(db, "k");
    db_run(db, "INSERT INTO effect VALUES ('k')");
    assert_ok(complete_in(db, attempt, "done"));
    db_run(db, "ROLLBACK");
    assert_int_equal(tables_of_ours(db), 0);
    assert_int_equal(db_number(db, "SELECT count(*) FROM effect"), 0);

    db_run(db, "BEGIN IMMEDIATE");
    assert_code(IDEM_ELOST, complete_in(db, attempt, "done"));
    assert_why("not in this store");
    db_run(db, "ROLLBACK");
    assert_verdict(db, "k", IDEM_STARTED);
}

/* Outside a transaction nothing is touched, and the error names the cure. */
TEST(in, wantsATransaction)
{
    sqlite3 *db = open_app(":memory:");
    struct idem_request request = claim("k");
    struct idem_outcome outcome = {.status = IDEM_STATUS_FAILED};
    struct idem_attempt *attempt = NULL;

    assert_code(IDEM_EINVALID,
                idem_sqlite_begin_in(db, &request, &attempt, &why));
    assert_why("BEGIN IMMEDIATE");
    assert_int_equal(why.code, IDEM_EINVALID);
    assert_null(attempt);
    assert_int_equal(tables_of_ours(db), 0);

    db_run(db, "BEGIN IMMEDIATE");
    attempt = begin_in(db, "k");
    db_run(db, "COMMIT");
    assert_code(IDEM_EINVALID, complete_in(db, attempt, "done"));
    assert_why("BEGIN IMMEDIATE");
    assert_code(IDEM_EINVALID, idem_sqlite_end_in(db, attempt, &outcome, NULL));
}

/* A request that a store would refuse is refused here, and so is waiting. */
TEST(in, refusesABadRequest)
{
    sqlite3 *db = open_app(":memory:");
    struct idem_request request = claim("");
    struct idem_attempt *attempt = NULL;

    db_run(db, "BEGIN IMMEDIATE");
    assert_code(IDEM_EINVALID,
                idem_sqlite_begin_in(db, &request, &attempt, &why));
    request = claim("k");
    request.wait_ms = 1;
    assert_code(IDEM_EINVALID,
                idem_sqlite_begin_in(db, &request, &attempt, &why));
    assert_why("wait");
    request = claim("k");
    request.on_expired_lease = IDEM_ON_EXPIRED_UNSET;
    assert_code(IDEM_EINVALID,
                idem_sqlite_begin_in(db, &request, &attempt, NULL));
    assert_null(attempt);
    db_run(db, "ROLLBACK");
}

/* A claim may be committed and ended in a later transaction: busy in between,
 * and its owner knows how long it may go on. */
TEST(in, endsInALaterTransaction)
{
    sqlite3 *db = open_app(temp_path("later.db"));
    struct idem_attempt *attempt;

    db_run(db, "BEGIN IMMEDIATE");
    attempt = begin_in(db, "k");
    db_run(db, "COMMIT");
    assert_verdict(db, "k", IDEM_BUSY);
    assert_true(idem_attempt_lease_left_ms(attempt) > 50000);
    assert_true(idem_attempt_lease_left_ms(attempt) <= 60000);

    db_run(db, "BEGIN IMMEDIATE");
    assert_ok(complete_in(db, attempt, "done"));
    db_run(db, "COMMIT");
    assert_text(attempt->record->result.bytes, "done");
    assert_true(idem_attempt_lease_left_ms(attempt) == 0);
    assert_verdict(db, "k", IDEM_REPLAY);
}

/* An attempt that was not started, or that a store began, is not ended here; and
 * one that was begun here is not ended there. */
TEST(in, endsWhatWasBegunHere)
{
    sqlite3 *db = open_app(":memory:");
    struct idem_request request = claim("k");
    struct idem_attempt *attempt;
    struct idem_store *store = open_memory(NULL);

    live(db, "k", "done");
    db_run(db, "BEGIN IMMEDIATE");
    attempt = begin_in(db, "k");
    assert_int_equal(attempt->verdict, IDEM_REPLAY);
    assert_code(IDEM_EINVALID, complete_in(db, attempt, "again"));

    attempt = begin(store, &request, IDEM_STARTED);
    assert_code(IDEM_EINVALID, complete_in(db, attempt, "here"));
    assert_why("idem_complete()");
    assert_ok(idem_complete(attempt, NULL, &why));

    attempt = begin_in(db, "l");
    assert_code(IDEM_EINVALID, idem_complete(attempt, NULL, &why));
    assert_why("idem_sqlite_end_in()");
    assert_code(IDEM_EINVALID, idem_renew(attempt, 0, &why));
    assert_ok(complete_in(db, attempt, "done"));
    db_run(db, "COMMIT");
}

/* A token carries a committed claim to another process and connection. */
TEST(in, endsByToken)
{
    const char *path = temp_path("token.db");
    sqlite3 *db = open_app(path);
    char token[IDEM_TOKEN_MAX];
    struct idem_attempt *attempt;

    db_run(db, "BEGIN IMMEDIATE");
    attempt = begin_in(db, "k");
    db_run(db, "COMMIT");
    assert_ok(idem_attempt_token(attempt, token));

    db = open_app(path);
    attempt = by_token(/* store= */ NULL, token);
    assert_true(idem_attempt_lease_left_ms(attempt) == 0);
    db_run(db, "BEGIN IMMEDIATE");
    assert_ok(complete_in(db, attempt, "done"));
    db_run(db, "COMMIT");
    assert_verdict(db, "k", IDEM_REPLAY);
}

/* A claim that was committed is renewed in a transaction, by its attempt or by its
 * token; a renewal that is rolled back never was; one that ended is lost. */
TEST(in, renewsWhatWasCommitted)
{
    sqlite3 *db = open_app(":memory:");
    struct idem_attempt *attempt;
    struct idem_attempt *other;
    char token[IDEM_TOKEN_MAX];
    int64_t left;

    db_run(db, "BEGIN IMMEDIATE");
    attempt = begin_in(db, "k");
    assert_code(IDEM_EINVALID, idem_sqlite_renew_in(db, attempt, 1, &why));
    assert_ok(idem_sqlite_renew_in(db, attempt, 90000, &why));
    db_run(db, "COMMIT");
    assert_code(IDEM_EINVALID, idem_sqlite_renew_in(db, attempt, 0, &why));
    left = idem_attempt_lease_left_ms(attempt);
    assert_true(left > 80000 && left <= 90000);

    assert_ok(idem_attempt_token(attempt, token));
    other = by_token(NULL, token);
    assert_true(idem_attempt_lease_left_ms(other) == 0);
    db_run(db, "BEGIN IMMEDIATE");
    assert_ok(idem_sqlite_renew_in(db, other, IDEM_NEVER, &why));
    db_run(db, "ROLLBACK");
    db_run(db, "BEGIN IMMEDIATE");
    assert_ok(idem_sqlite_renew_in(db, other, 0, &why));
    db_run(db, "COMMIT");
    assert_true(idem_attempt_lease_left_ms(other) > 50000);
    assert_true(idem_attempt_lease_left_ms(other) <= 90000);

    db_run(db, "BEGIN IMMEDIATE");
    assert_ok(complete_in(db, attempt, "receipt"));
    other = by_token(NULL, token);
    assert_code(IDEM_ELOST, idem_sqlite_renew_in(db, other, 0, &why));
    assert_true(idem_attempt_lease_left_ms(other) == 0);
    db_run(db, "COMMIT");
}

/* The application's own tables, version and marks stay as they are. */
TEST(in, livesBesideOtherTables)
{
    sqlite3 *db = open_app(":memory:");

    db_run(db, "CREATE TABLE record (id); CREATE VIEW operations AS SELECT 1;"
               "CREATE TABLE clock (one); INSERT INTO record VALUES (1);"
               "PRAGMA application_id = 77; PRAGMA user_version = 12;");
    live(db, "k", "done");
    assert_int_equal(db_number(db, "PRAGMA application_id"), 77);
    assert_int_equal(db_number(db, "PRAGMA user_version"), 12);
    assert_int_equal(db_number(db, "SELECT count(*) FROM record"), 1);
    assert_int_equal(tables_of_ours(db), 4);
}

/* Tables of another version are refused, whatever their shape, and not changed. */
TEST(in, refusesTablesOfAnotherVersion)
{
    static const char *const changes[] = {
        "UPDATE idem_clock SET schema = 2",
        ("UPDATE idem_clock SET schema = 2; DROP VIEW idem_operations;"
         "DROP INDEX idem_record_due;"
         "ALTER TABLE idem_clock ADD COLUMN more INTEGER;"
         "ALTER TABLE idem_record RENAME COLUMN deadline TO due;"),
        ("UPDATE idem_clock SET schema = 2; DROP TABLE idem_record;"
         "DROP VIEW idem_operations;"),
    };

    EACH(change, changes) {
        sqlite3 *db = open_app(":memory:");
        struct idem_request request = claim("k");
        struct idem_attempt *attempt = NULL;
        int64_t tables;

        live(db, "before", "done");
        db_run(db, *change);
        tables = tables_of_ours(db);
        db_run(db, "BEGIN IMMEDIATE");
        assert_code(IDEM_ECONFIG,
                    idem_sqlite_begin_in(db, &request, &attempt, &why));
        assert_why("schema version 2");
        assert_null(attempt);
        db_run(db, "COMMIT");
        assert_int_equal(tables_of_ours(db), tables);
    }
}

/* While another connection writes, the answer is that the database is locked. */
TEST(in, isUnavailableWhileLocked)
{
    const char *path = temp_path("locked.db");
    sqlite3 *db = open_app(path);
    sqlite3 *other = open_app(path);
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = NULL;

    live(db, "before", "done");
    db_run(other, "BEGIN IMMEDIATE");
    db_run(db, "BEGIN");
    assert_code(IDEM_EUNAVAILABLE,
                idem_sqlite_begin_in(db, &request, &attempt, &why));
    assert_why("locked");
    assert_null(attempt);
    db_run(db, "ROLLBACK");
    db_run(other, "ROLLBACK");
}

/* ---- Read from outside ---- */

static int count_records(void *ctx, int code, const struct idem_record *record)
{
    size_t *n = ctx;

    assert_ok(code);
    assert_int_equal(record->scope.len, 0);
    (*n)++;
    return 0;
}

static int open_app_as(const char *path, unsigned flags,
                       struct idem_store **ret_store)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;

    options.flags = flags;
    return idem_sqlite_open(path, &options, ret_store, &why);
}

static bool exists(const char *path, const char *suffix)
{
    char name[4096];

    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    return access(name, F_OK) == 0;
}

/* A handle that only reads lists, counts and reads the records of an application's
 * database, and leaves the file, and the place beside it, as they were. */
TEST(in, isReadByAReadOnlyStore)
{
    const char *path = temp_path("app.db");
    sqlite3 *db = open_app(path);
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    struct idem_counters counters = IDEM_COUNTERS_INIT;
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_answer *found;
    struct idem_store *store;
    size_t n = 0;

    live(db, "k", "receipt 7");
    live(db, "l", "");
    assert_ok(open_app_as(path, IDEM_OPEN_READONLY, &store));
    assert_ok(idem_list(store, &filter, count_records, &n, NULL, &why));
    assert_int_equal(n, 2);
    assert_ok(idem_get(store, idem_str(""), idem_str("k"), &found, &why));
    assert_text(idem_answer_record(found)->result.bytes, "receipt 7");
    idem_answer_destroy(found);
    assert_ok(idem_sqlite_inspect(store, &info, &why));
    assert_true(info.of_application);
    assert_false(info.is_other || info.is_copy);
    assert_int_equal(info.records[IDEM_STATUS_COMPLETED], 2);
    assert_code(IDEM_ENOTFOUND, idem_count(store, &counters, &why));
    assert_why("keeps no counters");
    live(db, "m", ""); /* The application goes on beside it. */
    n = 0;
    assert_ok(idem_list(store, &filter, count_records, &n, NULL, &why));
    assert_int_equal(n, 3);
    idem_close(store);
    assert_false(exists(path, "-lock") || exists(path, "-reserve"));
    assert_int_equal(db_number(db, "PRAGMA application_id"), 0);
}

/* A handle that may write is refused, says why, and leaves nothing behind. */
TEST(in, isNotWrittenByAStore)
{
    const char *path = temp_path("app.db");
    sqlite3 *db = open_app(path);
    struct idem_store *store = NULL;

    live(db, "k", "receipt 7");
    assert_code(IDEM_ECONFIG, open_app_as(path, 0, &store));
    assert_why("app.db is an application's database");
    assert_null(store);
    assert_false(exists(path, "-lock") || exists(path, "-wal"));
}
