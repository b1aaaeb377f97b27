/* Effect and record in one commit of PostgreSQL: the end of an attempt is a statement
 * that its owner runs, on a connection of its own. */
#include "claims.h"
#include "test.h"

#include <idem/memory.h>
#include <idem/postgres.h>
#include <idem/queue.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A schema with a store and a ledger. */
struct bank {
    char schema[32];
    struct idem_store *store;
    struct idem_store *other; /* Another handle on it. */
    PGconn *db;               /* The application's. */
};

/* Runs @sql on the application's connection: the SQLSTATE, or "" where it worked. */
static const char *query(struct bank *bank, const char *sql)
{
    static char state[8];
    PGresult *result = PQexec(bank->db, sql);
    const char *is = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    (void)snprintf(state, sizeof(state), "%s", is == NULL ? "" : is);
    PQclear(result);
    return state;
}

static void must(struct bank *bank, const char *sql)
{
    assert_string_equal(query(bank, sql), "");
}

static struct idem_store *open_store(const char *place)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store;

    options.timeout_ms = 3000;
    assert_ok(idem_postgres_open(place, &options, &store, &why));
    return store;
}

static void set_up(struct bank *bank)
{
    static unsigned made;
    const char *url = getenv("IDEM_TEST_POSTGRES");
    char place[400];
    char sql[200];

    if (url == NULL) {
        fail_with("IDEM_TEST_POSTGRES names no server");
    }
    (void)snprintf(bank->schema, sizeof(bank->schema), "c%ld_%u",
                   (long)getpid(), made++);
    (void)snprintf(place, sizeof(place), "%s&schema=%s", strchr(url, ':') + 1,
                   bank->schema);
    assert_ok(idem_postgres_create(place, NULL, &why));
    bank->store = open_store(place);
    bank->other = open_store(place);
    bank->db = PQconnectdb(url);
    assert_int_equal(PQstatus(bank->db), CONNECTION_OK);
    must(bank, "SET client_min_messages = error");
    (void)snprintf(sql, sizeof(sql),
                   "CREATE TABLE %s.ledger (key text NOT NULL); "
                   "SET search_path = %s",
                   bank->schema, bank->schema);
    must(bank, sql);
}

static void finish(struct bank *bank)
{
    PQfinish(bank->db);
    idem_close(bank->other);
    idem_close(bank->store);
}

#define TEST_BANK(suite, condition)                                            \
    TEST_WITH(suite, condition, struct bank, bank, set_up, finish)

/* Claims "k" in @store, and meets @verdict. */
static struct idem_attempt *begin_k(struct idem_store *store,
                                    enum idem_verdict verdict)
{
    struct idem_request request = rerun("k");

    return begin(store, &request, verdict);
}

/* The attempt of @attempt's token, in the other handle. */
static struct idem_attempt *in_other(const struct bank *bank,
                                     const struct idem_attempt *attempt)
{
    char token[IDEM_TOKEN_MAX];

    assert_ok(idem_attempt_token(attempt, token));
    return by_token(bank->other, token);
}

static struct idem_result receipt(const char *text)
{
    return (struct idem_result){
        .bytes = idem_str(text),
        .content_type = idem_str("text/plain"),
    };
}

static struct idem_statement completion(struct idem_attempt *attempt,
                                        const char *text)
{
    struct idem_result result = receipt(text);
    struct idem_statement statement;

    assert_ok(idem_postgres_completion(attempt, &result, &statement, &why));
    return statement;
}

/* Runs it as a driver does that knows no types; otherwise as query(). Where it fails, it
 * says @sentence. */
static const char *run_saying(struct bank *bank,
                              const struct idem_statement *statement,
                              const char *sentence)
{
    static char state[8];
    const char *values[IDEM_STATEMENT_VALUES_MAX] = {NULL};
    int lengths[IDEM_STATEMENT_VALUES_MAX] = {0};
    int formats[IDEM_STATEMENT_VALUES_MAX] = {0};
    char numbers[IDEM_STATEMENT_VALUES_MAX][24];
    const char *is;
    PGresult *result;
    size_t i;

    for (i = 0; i < statement->values_len; i++) {
        const struct idem_value *value = &statement->values[i];

        if (value->type == IDEM_VALUE_INTEGER) {
            (void)snprintf(numbers[i], sizeof(numbers[i]), "%" PRId64,
                           value->integer);
            values[i] = numbers[i];
        } else if (value->type == IDEM_VALUE_BYTES) {
            values[i] = value->bytes.base;
            lengths[i] = (int)value->bytes.len;
            formats[i] = 1;
        }
    }
    result = PQexecParams(bank->db, statement->text, (int)statement->values_len,
                          NULL, values, lengths, formats, 0);
    is = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    (void)snprintf(state, sizeof(state), "%s", is == NULL ? "" : is);
    if (is == NULL) {
        assert_int_equal(PQntuples(result), statement->rows);
    } else if (strcmp(is, "22P02") == 0) {
        assert_non_null(strstr(PQresultErrorMessage(result), sentence));
    }
    PQclear(result);
    return state;
}

static const char *run_statement(struct bank *bank,
                                 const struct idem_statement *statement)
{
    return run_saying(bank, statement, "idem: the attempt is lost");
}

/* How many lines the ledger has. */
static int effects(struct bank *bank)
{
    PGresult *result = PQexec(bank->db, "SELECT count(*) FROM ledger");
    int n = atoi(PQgetvalue(result, 0, 0));

    PQclear(result);
    return n;
}

/* Transfers, and ends the attempt by @statement: what the latter answers. The
 * transaction is open yet. */
static const char *transfer(struct bank *bank,
                            const struct idem_statement *statement)
{
    must(bank, "BEGIN");
    must(bank, "INSERT INTO ledger VALUES ('k')");
    return run_statement(bank, statement);
}

/* A replay has @text, and its record can be trusted. */
static void assert_replay(struct bank *bank, const char *text)
{
    struct idem_attempt *attempt = begin_k(bank->other, IDEM_REPLAY);

    assert_text(attempt->record->result.bytes, text);
    assert_text(attempt->record->result.content_type, "text/plain");
    assert_int_equal(attempt->record->status, IDEM_STATUS_COMPLETED);
}

/* One commit makes effect and record durable, by a role with two rights; the attempt
 * knows its end then, and to say it again is answered 0. */
TEST_BANK(completion, isOneCommitWithTheEffect)
{
    struct idem_result result = receipt("transfer 1");
    struct idem_result another = receipt("transfer 2");
    struct idem_postgres_info info = IDEM_POSTGRES_INFO_INIT;
    struct idem_statement statement;
    struct idem_attempt *attempt;
    uint64_t trips;
    char sql[300];

    (void)snprintf(sql, sizeof(sql),
                   "CREATE ROLE bank; GRANT USAGE ON SCHEMA %s TO bank;"
                   "GRANT SELECT, UPDATE ON idem_record TO bank;"
                   "GRANT SELECT, INSERT ON ledger TO bank; SET ROLE bank",
                   bank->schema);
    must(bank, sql);
    attempt = begin_k(bank->store, IDEM_STARTED);
    assert_ok(idem_postgres_inspect(bank->store, &info, &why));
    trips = info.round_trips;
    statement = completion(attempt, "transfer 1");
    assert_ok(idem_postgres_inspect(bank->store, &info, &why));
    assert_int_equal(info.round_trips, trips);

    assert_string_equal(transfer(bank, &statement), "");
    assert_true(idem_attempt_lease_left_ms(attempt) > 0);
    must(bank, "COMMIT");
    idem_attempt_recorded(attempt);
    assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
    assert_int_equal(attempt->record->status, IDEM_STATUS_COMPLETED);
    assert_text(attempt->record->result.bytes, "transfer 1");
    assert_replay(bank, "transfer 1");
    assert_int_equal(effects(bank), 1);

    assert_code(IDEM_ELOST, idem_renew(attempt, 0, &why));
    assert_code(IDEM_ELOST, idem_complete(attempt, &another, &why));
    assert_ok(idem_complete(attempt, &result, &why));
    assert_replay(bank, "transfer 1");
    must(bank, "RESET ROLE");
}

/* What is rolled back leaves neither, and the attempt goes on: it can be ended by another
 * statement, also with an empty result, or as any other. */
TEST_BANK(completion, leavesNeitherWhenItIsRolledBack)
{
    struct idem_attempt *attempt = begin_k(bank->store, IDEM_STARTED);
    struct idem_statement statement = completion(attempt, "never");

    assert_string_equal(transfer(bank, &statement), "");
    must(bank, "ROLLBACK");
    assert_int_equal(effects(bank), 0);
    (void)begin_k(bank->other, IDEM_BUSY);
    assert_ok(idem_renew(attempt, 0, &why));
    assert_ok(idem_postgres_completion(attempt, NULL, &statement, &why));
    assert_string_equal(transfer(bank, &statement), "");
    must(bank, "COMMIT");
    /* The attempt is never told: nothing is lost by that. */
    attempt = begin_k(bank->store, IDEM_REPLAY);
    assert_int_equal(attempt->record->result.bytes.len, 0);
    assert_int_equal(effects(bank), 1);
}

static void expect_good(void *ctx, const struct idem_finding *finding)
{
    (void)ctx;
    if (strcmp(finding->about, "records") == 0) {
        assert_int_equal(finding->grade, IDEM_GRADE_OK);
    }
}

enum {
    TAG_MAX = 64,
    BOUND_MAX = 2048,
};

/* The tag of the one record, in hex. */
static void read_tag(struct bank *bank, char tag[TAG_MAX])
{
    PGresult *result =
        PQexec(bank->db, "SELECT encode(tag, 'hex') FROM idem_record");

    (void)snprintf(tag, TAG_MAX, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
}

/* Makes @statement one that ends the attempt if its record has this tag yet. */
static void bind_to_tag(struct idem_statement *statement, const char *tag,
                        char bound[BOUND_MAX])
{
    static const char condition[] = "r.status = 1";
    const char *at = strstr(statement->text, condition);

    assert_non_null(at);
    (void)snprintf(bound, BOUND_MAX, "%.*s r.tag = decode('%s', 'hex')%s",
                   (int)(at - statement->text), statement->text, tag,
                   at + strlen(condition));
    statement->text = bound;
}

/* A renewal between the making and the running of the statement, by whoever has the
 * token, changes nothing: it ends the attempt, and the record can be trusted. The control:
 * bound to the tag of the record it would end nothing. */
TEST_BANK(completion, holdsWhateverRenewalCameBetween)
{
    struct idem_attempt *same;
    char bound[BOUND_MAX];
    char tag[TAG_MAX];
    char place[400];
    struct idem_attempt *attempt = begin_k(bank->store, IDEM_STARTED);
    struct idem_statement statement = completion(attempt, "renewed");

    read_tag(bank, tag);
    same = in_other(bank, attempt);
    assert_ok(idem_renew(same, (int64_t)3600 * 1000, &why));
    assert_ok(idem_renew(attempt, (int64_t)7200 * 1000, &why));

    bind_to_tag(&statement, tag, bound);
    assert_string_equal(transfer(bank, &statement), "22P02");
    must(bank, "ROLLBACK");

    statement = completion(attempt, "renewed");
    assert_ok(idem_renew(same, (int64_t)9000 * 1000, &why));
    assert_string_equal(transfer(bank, &statement), "");
    must(bank, "COMMIT");
    idem_attempt_recorded(attempt);
    assert_replay(bank, "renewed");
    (void)snprintf(place, sizeof(place), "%s&schema=%s",
                   strchr(getenv("IDEM_TEST_POSTGRES"), ':') + 1, bank->schema);
    assert_ok(idem_postgres_check(place, NULL, expect_good, NULL, &why));
}

/* In a stricter isolation a renewal that was committed meanwhile is 40001: the same
 * statement, in a new transaction, ends the attempt. */
TEST_BANK(completion, isRunAgainInAStricterTransaction)
{
    struct idem_attempt *attempt = begin_k(bank->store, IDEM_STARTED);
    struct idem_statement statement = completion(attempt, "strict");

    must(bank, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    must(bank, "INSERT INTO ledger VALUES ('k')");
    assert_ok(idem_renew(attempt, (int64_t)3600 * 1000, &why));
    assert_string_equal(run_statement(bank, &statement), "40001");
    must(bank, "ROLLBACK");
    assert_string_equal(transfer(bank, &statement), "");
    must(bank, "COMMIT");
    assert_replay(bank, "strict");
    assert_int_equal(effects(bank), 1);
}

/* Of two owners after a takeover one commits: the statement of the first fails, and its
 * transaction with it, whether anybody looks or not. */
TEST_BANK(completion, isForOneOfTwoOwners)
{
    struct idem_statement second;
    struct idem_attempt *taker;
    struct idem_attempt *attempt = begin_k(bank->store, IDEM_STARTED);
    struct idem_statement first = completion(attempt, "first");
    struct idem_attempt *same = in_other(bank, attempt);

    assert_ok(idem_expire(same, &why));
    taker = begin_k(bank->other, IDEM_STARTED);
    assert_true(taker->takeover);
    second = completion(taker, "second");

    assert_string_equal(transfer(bank, &first), "22P02");
    assert_string_equal(query(bank, "INSERT INTO ledger VALUES ('k')"),
                        "25P02");
    must(bank, "COMMIT"); /* Of a failed transaction: a rollback. */
    assert_int_equal(effects(bank), 0);
    assert_string_equal(transfer(bank, &second), "");
    must(bank, "COMMIT");
    assert_string_equal(transfer(bank, &first), "22P02");
    must(bank, "ROLLBACK");
    assert_string_equal(transfer(bank, &second), "22P02");
    must(bank, "ROLLBACK");
    assert_int_equal(effects(bank), 1);
    idem_attempt_recorded(taker);
    assert_replay(bank, "second");
}

/* Statements of the application find the server's time to be @days later. */
static void go_forward(struct bank *bank, int days)
{
    char sql[400];

    (void)snprintf(
        sql, sizeof(sql),
        "CREATE OR REPLACE FUNCTION %s.clock_timestamp() RETURNS timestamptz"
        " LANGUAGE sql VOLATILE"
        " AS 'SELECT pg_catalog.clock_timestamp() + interval ''%d days''';"
        "SET search_path = %s, pg_catalog",
        bank->schema, days, bank->schema);
    must(bank, sql);
}

/* A statement that comes to run only after the retention, which counts from its making,
 * would leave a record that has expired, and the next caller would make the effect again:
 * it fails, and its transaction with it. The attempt goes on. */
TEST_BANK(completion, isRefusedAfterItsRetention)
{
    struct idem_statement statement;
    struct idem_attempt *attempt;

    attempt = begin_k(bank->store, IDEM_STARTED); /* Kept for a day. */
    statement = completion(attempt, "late");
    go_forward(bank, 2);
    must(bank, "BEGIN");
    must(bank, "INSERT INTO ledger VALUES ('k')");
    assert_string_equal(run_saying(bank, &statement,
                                   "idem: the retention was over"),
                        "22P02");
    must(bank, "COMMIT"); /* Of a failed transaction: a rollback. */
    assert_int_equal(effects(bank), 0);
    (void)begin_k(bank->other, IDEM_BUSY);

    go_forward(bank, 0);
    assert_string_equal(transfer(bank, &statement), "");
    must(bank, "COMMIT");
    assert_replay(bank, "late");
    assert_int_equal(effects(bank), 1);
}

/* From the statement until the end of its transaction nobody takes over, though the lease
 * is over; the next caller is given the outcome. */
TEST_BANK(completion, keepsTakersOutUntilItsTransactionEnds)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *taker;
    struct idem_attempt *attempt = begin_k(bank->store, IDEM_STARTED);
    struct idem_statement statement = completion(attempt, "slow");
    struct idem_attempt *same = in_other(bank, attempt);

    assert_ok(idem_expire(same, &why));
    assert_string_equal(transfer(bank, &statement), "");
    assert_int_not_equal(idem_begin(bank->other, &request, &taker, &why), 0);
    must(bank, "COMMIT");
    idem_attempt_recorded(attempt);
    assert_replay(bank, "slow");
    assert_int_equal(effects(bank), 1);
}

/* Hands over renewals of @n attempts, together. */
static struct idem_queue *renew_all(struct idem_store *store, size_t n,
                                    struct idem_attempt **attempts)
{
    struct idem_op *ops[8];
    struct idem_queue *queue;
    size_t i;

    assert_true(n <= 8);
    assert_ok(idem_queue_create(store, &queue, &why));
    for (i = 0; i < n; i++) {
        assert_ok(
            idem_op_renew(attempts[i], (int64_t)3600 * 1000, &ops[i], &why));
        idem_op_set_user(ops[i], attempts[i]);
    }
    assert_int_equal(idem_queue_submit_all(queue, ops, n, &why), 0);
    return queue;
}

/* The next renewal to be answered is answered @code. Its attempt. */
static const void *reap_renewal(struct idem_queue *queue, int code)
{
    struct idem_op *op = idem_queue_reap(queue, /* timeout_ms= */ -1);
    const void *attempt;

    assert_non_null(op);
    assert_code(code, idem_op_code(op));
    attempt = idem_op_user(op);
    idem_op_destroy(op);
    return attempt;
}

/* A plain UPDATE of all records waits for a lock. */
static void assert_update_waits(const struct bank *bank)
{
    struct bank apart = *bank;
    char sql[100];

    apart.db = PQconnectdb(getenv("IDEM_TEST_POSTGRES"));
    must(&apart, "SET lock_timeout = 200");
    (void)snprintf(sql, sizeof(sql), "UPDATE %s.idem_record SET tag = tag",
                   bank->schema);
    assert_string_equal(query(&apart, sql), "55P03");
    PQfinish(apart.db);
}

static uint64_t round_trips(struct idem_store *store)
{
    struct idem_postgres_info info = IDEM_POSTGRES_INFO_INIT;

    assert_ok(idem_postgres_inspect(store, &info, &why));
    return info.round_trips;
}

/* An application's transaction is open after its statement, and has the row. The renewals
 * of other attempts of the same handle, in one batch with one of this row, are answered at
 * once; that one is when the transaction is over. The control: an UPDATE of all these rows
 * waits for it. */
TEST_BANK(completion, holdsUpNoRenewalOfOthers)
{
    static const char *const keys[] = {"a", "k", "z"};
    enum {
        HELD = 1, /* In keys[]. */
        N = 3
    };
    struct idem_attempt *attempts[N];
    struct idem_statement statement;
    struct idem_queue *queue;
    uint64_t trips;
    size_t i;

    assert_ok(idem_store_set_timeout(bank->store, 10000, &why));
    for (i = 0; i < N; i++) {
        struct idem_request request = rerun(keys[i]);

        attempts[i] = begin(bank->store, &request, IDEM_STARTED);
    }
    statement = completion(attempts[HELD], "slow");
    assert_string_equal(transfer(bank, &statement), "");

    trips = round_trips(bank->store);
    queue = renew_all(bank->store, N, attempts);
    for (i = 0; i < N - 1; i++) {
        assert_ptr_not_equal(reap_renewal(queue, 0), attempts[HELD]);
    }
    /* That of the batch; the held row may have been looked at since. A batch that waits
     * is given up after a while, and its ops are tried one by one: six. */
    assert_true(round_trips(bank->store) - trips <= 3);
    assert_update_waits(bank);
    must(bank, "COMMIT");
    assert_ptr_equal(reap_renewal(queue, IDEM_ELOST), attempts[HELD]);

    idem_queue_destroy(queue);
    assert_replay(bank, "slow");
}

/* An attempt that was given back for another run, released, or decided about by a person
 * is not ended by a statement that was made before. */
TEST(completion, isRefusedAfterAnotherEnd)
{
    enum {
        RETRIED,
        RELEASED,
        RESOLVED,
        ENDS
    };
    int end;

    for (end = RETRIED; end < ENDS; end++) {
        struct idem_statement statement;
        struct idem_attempt *attempt;
        struct idem_attempt *same;
        struct bank bank;

        set_up(&bank);
        attempt = begin_k(bank.store, IDEM_STARTED);
        statement = completion(attempt, "late");
        same = in_other(&bank, attempt);
        if (end == RETRIED) {
            assert_ok(idem_retry(same, idem_str("again"), &why));
        } else if (end == RELEASED) {
            assert_ok(idem_release(same, idem_str("nothing"), &why));
        } else {
            struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};

            assert_ok(idem_resolve(bank.other, idem_str(""), idem_str("k"),
                                   attempt->fence, idem_str("me"), &outcome,
                                   IDEM_RESOLVE_FORCE, &why));
        }
        assert_string_equal(transfer(&bank, &statement), "22P02");
        must(&bank, "ROLLBACK");
        assert_code(IDEM_ELOST,
                    idem_postgres_completion(same, NULL, &statement, &why));
        finish(&bank);
    }
}

/* An attempt under hold whose lease was found to be over is unknown from then on, and a
 * person is told so: no statement ends it, and who reads the record makes none. */
TEST_BANK(completion, isNotMadeOfWhatIsUnknown)
{
    struct idem_request request = claim("k");
    struct idem_statement statement;
    struct idem_attempt *attempt;
    struct idem_attempt *same;

    attempt = begin(bank->store, &request, IDEM_STARTED);
    statement = completion(attempt, "late");
    same = in_other(bank, attempt);
    assert_ok(idem_expire(same, &why));
    expect(bank->other, &request, IDEM_UNKNOWN);

    assert_string_equal(transfer(bank, &statement), "22P02");
    must(bank, "ROLLBACK");
    assert_code(IDEM_ELOST,
                idem_postgres_completion(same, NULL, &statement, &why));
    assert_why("no longer in progress");
    assert_ok(idem_complete(same, NULL, &why)); /* Its word still counts. */
}
