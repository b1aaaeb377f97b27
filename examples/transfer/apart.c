/* The control of ../transaction.c: the same with a table of keys, and two commits.
 *
 * The transfer is committed, and then its key. Killed in between, this program leaves
 * a transfer without a key, and the next try transfers again. (The other order
 * could leave a key without a transfer, which no later try would make.)
 *
 * Build: cc apart.c $(pkg-config --cflags --libs sqlite3)
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(sqlite3 *db)
{
    (void)fprintf(stderr, "apart: %s\n", sqlite3_errmsg(db));
    exit(EXIT_FAILURE);
}

/* Runs @sql, whose parameters are @argv's key, payer, payee and amount. The text of
 * its row, which the caller frees with sqlite3_free(), or NULL. */
static char *run(sqlite3 *db, const char *sql, char **argv)
{
    sqlite3_stmt *stmt;
    char *text = NULL;
    int i;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        fail(db);
    }
    for (i = 1; i <= sqlite3_bind_parameter_count(stmt); i++) {
        (void)sqlite3_bind_text(stmt, i, argv[i - 1], -1, SQLITE_STATIC);
    }
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        text = sqlite3_mprintf("%s", sqlite3_column_text(stmt, 0));
    }
    if (sqlite3_finalize(stmt) != SQLITE_OK) {
        fail(db);
    }
    return text;
}

static const char *const move_money[] = {
    "BEGIN IMMEDIATE",
    "UPDATE account SET balance = balance - ?4 WHERE name = ?2",
    "UPDATE account SET balance = balance + ?4 WHERE name = ?3",
    "INSERT INTO transfer (key, payer, payee, amount) VALUES (?1, ?2, ?3, ?4)",
    "COMMIT",
};

int main(int argc, char **argv)
{
    sqlite3 *db;
    char *receipt;
    size_t i;

    if (argc != 6 || sqlite3_open(argv[1], &db) != SQLITE_OK ||
        sqlite3_busy_timeout(db, 20000) != SQLITE_OK) {
        (void)fprintf(stderr, "usage: apart DB KEY FROM TO AMOUNT\n");
        return 64;
    }
    argv += 2;
    (void)run(db,
              "CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY, "
              "receipt TEXT)",
              argv);
    receipt = run(db, "SELECT receipt FROM done WHERE key = ?1", argv);
    if (receipt == NULL) {
        for (i = 0; i < sizeof(move_money) / sizeof(move_money[0]); i++) {
            (void)run(db, move_money[i], argv);
        }
        receipt = run(db,
                      "INSERT INTO done VALUES (?1, 'transfer ' || "
                      "last_insert_rowid() || ': ' || ?4 || ' from ' || ?2 || "
                      "' to ' || ?3) RETURNING receipt",
                      argv);
    }
    (void)puts(receipt);
    sqlite3_free(receipt);
    return sqlite3_close(db) == SQLITE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
