/* A transfer of money and its record, in one transaction.
 *
 *     $ sqlite3 bank.db "CREATE TABLE account (name TEXT PRIMARY KEY,
 *           balance INTEGER NOT NULL CHECK (balance >= 0));
 *       CREATE TABLE transfer (id INTEGER PRIMARY KEY, key TEXT,
 *           payer TEXT, payee TEXT, amount INTEGER);
 *       INSERT INTO account VALUES ('ann', 100), ('bob', 0);"
 *     $ transaction bank.db order-42 ann bob 30
 *     transfer 1: 30 from ann to bob
 *     $ transaction bank.db order-42 ann bob 30     # again, after a time-out
 *     transfer 1: 30 from ann to bob
 *
 * The record of the key is a row of the same database, and one COMMIT makes the
 * transfer and its record durable. Whenever this program is killed, the database
 * has both or neither: run it again until it answers. No lease ever runs out and
 * nobody has to take anything over.
 *
 * Build: cc transaction.c $(pkg-config --cflags --libs idem sqlite3)
 *
 * Exit status: 0 transferred, now or before; 1 refused, and nothing happened;
 * 64 usage; 65 the key is that of another transfer; 75 try again later.
 */
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    EXIT_USAGE = 64,
    EXIT_MISMATCH = 65,
    EXIT_AGAIN = 75,
    BUSY_MS = 20000
};

struct transfer {
    const char *key;
    const char *payer;
    const char *payee;
    const char *amount;
};

/* Prints on stderr why the program gives no receipt. */
static int say(const char *what, const char *why, int status)
{
    (void)fprintf(stderr, "transaction: %s: %s\n", what, why);
    return status;
}

static int say_error(const struct idem_error *error)
{
    return say("nothing was transferred", error->text,
               idem_error_kind(error->code) == IDEM_KIND_RETRY ? EXIT_AGAIN
                                                               : EXIT_FAILURE);
}

/* Runs one statement whose parameters ?1 to ?4 are the members of @transfer.
 * Returns whether it changed one row. */
static int change(sqlite3 *db, const char *sql, const struct transfer *t)
{
    const char *values[] = {t->key, t->payer, t->payee, t->amount};
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    int i;

    for (i = 0; rc == SQLITE_OK && i < sqlite3_bind_parameter_count(stmt);
         i++) {
        rc = sqlite3_bind_text(stmt, i + 1, values[i], -1, SQLITE_STATIC);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE && sqlite3_changes(db) == 1;
}

/* The effect. On failure the caller rolls back. */
static int move_money(sqlite3 *db, const struct transfer *t)
{
    return change(db,
                  "UPDATE account SET balance = balance - CAST(?4 AS INTEGER)"
                  " WHERE name = ?2",
                  t) &&
           change(db,
                  "UPDATE account SET balance = balance + CAST(?4 AS INTEGER)"
                  " WHERE name = ?3",
                  t) &&
           change(db,
                  "INSERT INTO transfer (key, payer, payee, amount)"
                  " VALUES (?1, ?2, ?3, CAST(?4 AS INTEGER))",
                  t);
}

/* Makes the transfer, records its outcome and commits. Returns the exit status. */
static int transfer_and_complete(sqlite3 *db, const struct transfer *t,
                                 struct idem_attempt *attempt)
{
    struct idem_result result = {.content_type = idem_str("text/plain")};
    struct idem_error error;
    char receipt[512];

    if (!move_money(db, t)) {
        return say("nothing was transferred",
                   sqlite3_errcode(db) == SQLITE_OK ? "no such account"
                                                    : sqlite3_errmsg(db),
                   EXIT_FAILURE);
    }
    (void)snprintf(receipt, sizeof(receipt),
                   "transfer %lld: %s from %s to %s\n",
                   (long long)sqlite3_last_insert_rowid(db), t->amount,
                   t->payer, t->payee);
    result.bytes = idem_str(receipt);
    if (idem_sqlite_complete_in(db, attempt, &result, &error) != 0) {
        return say_error(&error);
    }
    if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        return say("cannot commit", sqlite3_errmsg(db), EXIT_AGAIN);
    }
    return EXIT_SUCCESS;
}

/* Prints the receipt, which is the same for the first caller and for a replay. It
 * must not be printed before the COMMIT, which may fail. */
static void print_receipt(const struct idem_record *record)
{
    (void)fwrite(record->result.bytes.base, 1, record->result.bytes.len,
                 stdout);
}

/* Works inside the transaction that is open on @db. */
static int claim_and_transfer(sqlite3 *db, const struct transfer *t)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_slice parts[] = {idem_str(t->payer), idem_str(t->payee),
                                 idem_str(t->amount)};
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    struct idem_attempt *attempt;
    struct idem_error error;
    int status;

    if (idem_fingerprint(parts, 3, idem_str(NULL), fingerprint) != 0) {
        return say("nothing was transferred", "out of memory", EXIT_AGAIN);
    }
    request.key = idem_str(t->key);
    request.fingerprint = idem_bytes(fingerprint, sizeof(fingerprint));
    request.on_expired_lease = IDEM_HOLD; /* No lease ever expires here. */
    request.retention_ms = IDEM_NEVER;
    if (idem_sqlite_begin_in(db, &request, &attempt, &error) != 0) {
        return say_error(&error);
    }

    switch (attempt->verdict) {
    case IDEM_STARTED:
        status = transfer_and_complete(db, t, attempt);
        break;
    case IDEM_REPLAY:
        status = EXIT_SUCCESS;
        break;
    case IDEM_MISMATCH:
        status =
            say(t->key, "this key is that of another transfer", EXIT_MISMATCH);
        break;
    default:
        status = say(t->key, idem_verdict_name(attempt->verdict), EXIT_AGAIN);
    }
    if (status == EXIT_SUCCESS) {
        print_receipt(attempt->record);
    }

    idem_attempt_destroy(attempt);
    return status;
}

int main(int argc, char **argv)
{
    struct transfer transfer;
    sqlite3 *db;
    char *end = NULL;
    int status;

    if (argc != 6 || strtoll(argv[5], &end, 10) <= 0 || *end != '\0') {
        return say("usage", "transaction DB KEY FROM TO AMOUNT", EXIT_USAGE);
    }
    transfer = (struct transfer){argv[2], argv[3], argv[4], argv[5]};
    if (sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(db, BUSY_MS) != SQLITE_OK ||
        sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        status = say(argv[1], sqlite3_errmsg(db), EXIT_AGAIN);
    } else {
        status = claim_and_transfer(db, &transfer);
    }

    /* Rolls back what was not committed. */
    (void)sqlite3_close(db);
    return status;
}
