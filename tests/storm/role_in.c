/* Effect and record in one transaction of the program's own database. */
#include "base/crash.h"
#include "worker.h"

#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>

static int run(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    int rc = sqlite3_exec(db, sql, NULL, NULL, &why);

    if (rc != SQLITE_OK) {
        (void)fprintf(stderr, "worker: %s: %s\n", sql, why);
    }
    sqlite3_free(why);
    return rc;
}

static int effect(sqlite3 *db, const char *key, uint64_t fence)
{
    char sql[400];

    (void)snprintf(sql, sizeof(sql), "INSERT INTO effect VALUES ('%s', %llu)",
                   key, (unsigned long long)fence);
    return run(db, sql);
}

static int work(sqlite3 *db, const char *key, struct idem_attempt *attempt)
{
    struct idem_result result = {.not_kept = false};
    struct idem_error error = {0};
    char product[256];
    char id[PRODUCT_ID];

    product_id(attempt->fence, id);
    result.bytes =
        idem_bytes(product, product_make(id, 0, product, sizeof(product)));
    if (effect(db, key, attempt->fence) != SQLITE_OK) {
        return 1;
    }
    IDEM__CRASH_POINT("worker/in/effect");
    if (idem_sqlite_complete_in(db, attempt, &result, &error) != 0) {
        worker_complain(key, "complete in", &error);
        return 1;
    }
    if (run(db, "COMMIT") != SQLITE_OK) {
        return 1;
    }
    IDEM__CRASH_POINT("worker/in/committed");
    worker_ended(key, attempt, "A", id);
    return 0;
}

static int visit(sqlite3 *db, const char *key)
{
    struct idem_request request;
    struct idem_attempt *attempt;
    struct idem_error error = {0};
    int rc = 0;

    worker_request(key, &request);
    if (run(db, "BEGIN IMMEDIATE") != SQLITE_OK) {
        return 1;
    }
    if (idem_sqlite_begin_in(db, &request, &attempt, &error) != 0) {
        worker_complain(key, "begin in", &error);
        return 1;
    }
    if (attempt->verdict == IDEM_STARTED) {
        rc = work(db, key, attempt);
    } else {
        worker_note(key, attempt);
        rc = run(db, "ROLLBACK");
    }
    idem_attempt_destroy(attempt);
    return rc;
}

int role_in(struct worker *w)
{
    sqlite3 *db;
    size_t i;
    int rc = 0;

    if (sqlite3_open(w->path, &db) != SQLITE_OK ||
        sqlite3_busy_timeout(db, 60000) != SQLITE_OK) {
        return 1;
    }
    rc = run(db, "PRAGMA journal_mode = WAL;"
                 "CREATE TABLE IF NOT EXISTS effect (key TEXT, fence INTEGER)");
    for (i = 0; i < w->keys_len && rc == 0; i++) {
        rc = visit(db, w->keys[i]);
    }
    (void)sqlite3_close(db);
    return rc;
}
