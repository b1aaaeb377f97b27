/* A transfer of money and the end of its attempt, in one commit of PostgreSQL.
 *
 *     $ createdb bank && psql bank -c "CREATE TABLE account (name text PRIMARY KEY,
 *           balance int8 NOT NULL CHECK (balance >= 0));
 *       CREATE TABLE transfer (id int8 GENERATED ALWAYS AS IDENTITY, key text,
 *           payer text, payee text, amount int8);
 *       INSERT INTO account VALUES ('ann', 100), ('bob', 0)"
 *     $ export IDEM_STORE=postgres:///bank; idem store create
 *     $ postgres postgres:///bank order-42 ann bob 30
 *     transfer 1: 30 from ann to bob
 *     $ postgres postgres:///bank order-42 ann bob 30     # again, after a time-out
 *     transfer 1: 30 from ann to bob
 *
 * idem claims the key on its own connection, with a lease. The end of the attempt is a
 * statement that this program runs on its connection, beside its own changes. Whenever it
 * is killed, transfer and record are both there or neither is; once the lease is over, the
 * next call does the rest.
 *
 * Build: cc postgres.c $(pkg-config --cflags --libs idem-postgres libpq)
 *
 * Exit status: 0 transferred, now or before; 1 refused, and nothing happened; 64 usage;
 * 65 the key is that of another transfer; 75 try again later.
 */
#include <idem/postgres.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_USAGE = 64,
    EXIT_MISMATCH = 65,
    EXIT_AGAIN = 75,
    LEASE_MS = 4000, /* A transfer takes milliseconds. */
    RECEIPT_MAX = 512,

    /* Results of run(). */
    FAILED = -1,
    REFUSED = -2, /* By a CHECK of the tables. */
};

/* The command line: DB KEY FROM TO AMOUNT. */
struct transfer {
    const char *db;
    const char *key;
    const char *payer;
    const char *payee;
    const char *amount;
};

static int say(const char *text, int status)
{
    (void)fprintf(stderr, "postgres: nothing was transferred: %s\n", text);
    return status;
}

static int say_error(const struct idem_error *error)
{
    enum idem_kind kind = idem_error_kind(error->code);

    return say(error->text, kind == IDEM_KIND_RETRY || kind == IDEM_KIND_LOST
                                ? EXIT_AGAIN
                                : EXIT_FAILURE);
}

static bool is_good(const PGresult *result)
{
    return PQresultStatus(result) == PGRES_COMMAND_OK ||
           PQresultStatus(result) == PGRES_TUPLES_OK;
}

static bool is_violation(const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    return state != NULL && strcmp(state, "23514") == 0;
}

/* Runs @sql, whose parameters $1 to $4 are the key, payer, payee and amount of @t; NULL:
 * it has none. Returns the number in its one row, or the number of rows that it changed;
 * or FAILED or REFUSED. */
static long run(PGconn *db, const char *sql, const struct transfer *t)
{
    const char *values[] = {NULL, NULL, NULL, NULL};
    PGresult *result;
    const char *number;
    long n;

    if (t != NULL) {
        values[0] = t->key;
        values[1] = t->payer;
        values[2] = t->payee;
        values[3] = t->amount;
    }
    result =
        PQexecParams(db, sql, t == NULL ? 0 : 4, NULL, values, NULL, NULL, 0);
    number =
        PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : PQcmdTuples(result);
    n = is_good(result)        ? strtol(number, NULL, 10)
        : is_violation(result) ? REFUSED
                               : FAILED;
    PQclear(result);
    return n;
}

/* Names all parameters, so that the server knows their types in each statement. */
#define ALL                                                                    \
    "WHERE $1::text IS NOT NULL AND $2::text <> $3::text AND $4::int8 > 0"

/* The effect. Returns the number of the transfer, FAILED, or REFUSED. */
static long move_money(PGconn *db, const struct transfer *t)
{
    static const char *const payments[] = {
        "UPDATE account SET balance = balance - $4 " ALL " AND name = $2",
        "UPDATE account SET balance = balance + $4 " ALL " AND name = $3",
    };
    size_t i;

    for (i = 0; i < 2; i++) {
        long n = run(db, payments[i], t);

        if (n != 1) {
            return n == 0 ? REFUSED : n;
        }
    }
    return run(db,
               "INSERT INTO transfer (key, payer, payee, amount)"
               " SELECT $1, $2, $3, $4 " ALL " RETURNING id",
               t);
}

/* Runs the statement that ends the attempt. */
static bool run_statement(PGconn *db, const struct idem_statement *statement)
{
    const char *values[IDEM_STATEMENT_VALUES_MAX];
    int lengths[IDEM_STATEMENT_VALUES_MAX];
    int formats[IDEM_STATEMENT_VALUES_MAX];
    char numbers[IDEM_STATEMENT_VALUES_MAX][24];
    PGresult *result;
    bool good;
    size_t i;

    for (i = 0; i < statement->values_len; i++) {
        const struct idem_value *value = &statement->values[i];

        (void)snprintf(numbers[i], sizeof(numbers[i]), "%" PRId64,
                       value->integer);
        values[i] = value->type == IDEM_VALUE_INTEGER ? numbers[i]
                    : value->type == IDEM_VALUE_BYTES ? value->bytes.base
                                                      : NULL;
        lengths[i] = (int)value->bytes.len;
        formats[i] = value->type == IDEM_VALUE_BYTES;
    }
    result = PQexecParams(db, statement->text, (int)statement->values_len, NULL,
                          values, lengths, formats, 0);
    good = is_good(result) && PQntuples(result) == statement->rows;
    PQclear(result);
    return good;
}

/* Transfers and ends the attempt, in one commit. Answers the exit status. */
static int transfer_and_end(PGconn *db, const struct transfer *t,
                            struct idem_attempt *attempt)
{
    struct idem_result result = {.content_type = idem_str("text/plain")};
    struct idem_statement statement;
    struct idem_error error;
    char receipt[RECEIPT_MAX];
    long number;

    if (run(db, "BEGIN", NULL) < 0) {
        return say(PQerrorMessage(db), EXIT_AGAIN);
    }
    number = move_money(db, t);
    if (number == REFUSED) {
        return say("there is no such account, or not enough in it",
                   EXIT_FAILURE);
    }
    if (number < 0) {
        return say(PQerrorMessage(db), EXIT_AGAIN);
    }
    (void)snprintf(receipt, sizeof(receipt), "transfer %ld: %s from %s to %s\n",
                   number, t->amount, t->payer, t->payee);
    result.bytes = idem_str(receipt);
    if (idem_postgres_completion(attempt, &result, &statement, &error) != 0) {
        return say_error(&error);
    }
    if (!run_statement(db, &statement)) {
        return say(PQerrorMessage(db), EXIT_AGAIN);
    }
    if (run(db, "COMMIT", NULL) < 0) {
        /* The commit may have succeeded: the next call finds out. */
        (void)fprintf(stderr, "postgres: try again: %s", PQerrorMessage(db));
        return EXIT_AGAIN;
    }
    idem_attempt_recorded(attempt);
    return EXIT_SUCCESS;
}

static int start(const struct transfer *t, struct idem_attempt *attempt)
{
    struct idem_error error;
    PGconn *db = PQconnectdb(t->db);
    int status = PQstatus(db) == CONNECTION_OK
                     ? transfer_and_end(db, t, attempt)
                     : say(PQerrorMessage(db), EXIT_AGAIN);

    PQfinish(db); /* Rolls back an open transaction. */
    if (status == EXIT_FAILURE &&
        idem_release(attempt, idem_str("refused"), &error) != 0) {
        (void)say(error.text, status);
    }
    return status;
}

/* The receipt is the same for the first caller and for a replay. */
static int answer(const struct transfer *t, struct idem_attempt *attempt)
{
    int status = EXIT_SUCCESS;

    switch (attempt->verdict) {
    case IDEM_STARTED:
        status = start(t, attempt);
        break;
    case IDEM_REPLAY:
        break;
    case IDEM_MISMATCH:
        return say("this key is that of another transfer", EXIT_MISMATCH);
    default:
        return say(idem_verdict_name(attempt->verdict), EXIT_AGAIN);
    }
    if (status == EXIT_SUCCESS) {
        (void)fwrite(attempt->record->result.bytes.base, 1,
                     attempt->record->result.bytes.len, stdout);
    }
    return status;
}

static int claim(struct idem_store *store, const struct transfer *t)
{
    struct idem_slice parts[] = {idem_str(t->payer), idem_str(t->payee),
                                 idem_str(t->amount)};
    struct idem_request request = IDEM_REQUEST_INIT;
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    struct idem_attempt *attempt;
    struct idem_error error;
    int status;

    if (idem_fingerprint(parts, 3, idem_str(NULL), fingerprint) != 0) {
        return say("out of memory", EXIT_AGAIN);
    }
    request.key = idem_str(t->key);
    request.fingerprint = idem_bytes(fingerprint, sizeof(fingerprint));
    request.on_expired_lease = IDEM_RERUN; /* Without an end no effect. */
    request.lease_ms = LEASE_MS;
    request.retention_ms = IDEM_NEVER;
    request.attempts_max = 0;
    if (idem_begin(store, &request, &attempt, &error) != 0) {
        return say_error(&error);
    }
    status = answer(t, attempt);
    idem_attempt_destroy(attempt);
    return status;
}

int main(int argc, char **argv)
{
    const char *url = getenv("IDEM_STORE");
    struct idem_store *store;
    struct idem_error error;
    int status;

    if (argc != 6 || url == NULL || argv[5][0] == '\0' ||
        argv[5][strspn(argv[5], "0123456789")] != '\0') {
        (void)fprintf(stderr,
                      "usage: IDEM_STORE=postgres://... postgres DB KEY "
                      "FROM TO AMOUNT\n");
        return EXIT_USAGE;
    }
    if (idem_open(url, NULL, &store, &error) != 0) {
        return say_error(&error);
    }
    status = claim(store, &(struct transfer){argv[1], argv[2], argv[3], argv[4],
                                             argv[5]});
    idem_close(store);
    return status;
}
