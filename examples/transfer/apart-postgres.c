/* The control of postgres.c: the same with a table of keys, and two commits.
 *
 * The transfer is committed, and then its key. Killed in between, this program leaves
 * a transfer without a key, and the next try transfers again. (The other order
 * could leave a key without a transfer, which no later try would make.)
 *
 * Build: cc apart-postgres.c $(pkg-config --cflags --libs libpq)
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(PGconn *db)
{
    (void)fprintf(stderr, "apart-postgres: %s\n", PQerrorMessage(db));
    exit(EXIT_FAILURE);
}

/* Runs @sql with @n parameters. The text in its row, which the caller frees, or NULL. */
static char *run(PGconn *db, const char *sql, int n, const char *const *values)
{
    PGresult *result = PQexecParams(db, sql, n, NULL, values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    char *text = NULL;

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail(db);
    }
    if (PQntuples(result) == 1) {
        text = strdup(PQgetvalue(result, 0, 0));
    }
    PQclear(result);
    return text;
}

/* Answers the receipt. @values: key, payer, payee and amount. */
static char *move_money(PGconn *db, const char *const *values)
{
    char *receipt;

    (void)run(db, "BEGIN", 0, NULL);
    (void)run(db, "UPDATE account SET balance = balance - $2 WHERE name = $1",
              2, (const char *[]){values[1], values[3]});
    (void)run(db, "UPDATE account SET balance = balance + $2 WHERE name = $1",
              2, (const char *[]){values[2], values[3]});
    receipt = run(db,
                  "INSERT INTO transfer (key, payer, payee, amount)"
                  " VALUES ($1, $2, $3, $4) RETURNING format("
                  "'transfer %s: %s from %s to %s', id, amount, payer, payee)",
                  4, values);
    (void)run(db, "COMMIT", 0, NULL);
    return receipt;
}

int main(int argc, char **argv)
{
    const char *const *values = (const char *const *)argv + 2;
    PGconn *db;
    char *receipt;

    if (argc != 6) {
        (void)fprintf(stderr, "usage: apart-postgres DB KEY FROM TO AMOUNT\n");
        return 64;
    }
    db = PQconnectdb(argv[1]);
    if (PQstatus(db) != CONNECTION_OK) {
        fail(db);
    }
    receipt = run(db, "SELECT receipt FROM done WHERE key = $1", 1, values);
    if (receipt == NULL) {
        receipt = move_money(db, values);
        (void)run(db, "INSERT INTO done VALUES ($1, $2)", 2,
                  (const char *[]){values[0], receipt});
    }
    (void)puts(receipt);
    free(receipt);
    PQfinish(db);
    return EXIT_SUCCESS;
}
