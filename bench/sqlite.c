/* SQLite alone, with rows of the size that idem's have: what of a large store is the
 * format of the file. The same two durable steps, without what idem does to decide,
 * to prove a record, and to share a file between processes. */
#include "load.h"

#include <err.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct target target;

enum {
    ID_LEN = 32,
    HEAD_LEN = 210, /* As idem's have it for such a record. */
    FILL_BATCH = 10000,
    WAL_PAGES = 2000, /* When idem copies its log into the file. */
    STATUS_OPEN = 1,
    STATUS_DONE = 2
};

/* An index that has no order, and one by time: as in a store of idem. */
static const char tables[] =
    "CREATE TABLE IF NOT EXISTS operation ("
    "  seq INTEGER PRIMARY KEY,"
    "  id BLOB NOT NULL UNIQUE,"
    "  status INTEGER NOT NULL,"
    "  deadline INTEGER NOT NULL,"
    "  scope BLOB NOT NULL,"
    "  key BLOB NOT NULL,"
    "  head BLOB NOT NULL,"
    "  result BLOB"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS operation_due ON operation (status, deadline);";

static const char insert_sql[] =
    "INSERT INTO operation (id, status, deadline, scope, key, head, result) "
    "VALUES (?1, ?2, ?3, x'', ?4, ?5, ?6) ON CONFLICT DO NOTHING";

static const char update_sql[] =
    "UPDATE operation SET status = ?2, deadline = ?3, head = ?4, result = ?5 "
    "WHERE id = ?1 AND status = 1";

static const char select_sql[] =
    "SELECT status, head, result FROM operation WHERE id = ?1";

struct caller {
    sqlite3 *db;
    sqlite3_stmt *insert;
    sqlite3_stmt *update;
    sqlite3_stmt *select;
    bool reads;
};

static void check(sqlite3 *db, int rc)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW) {
        errx(1, "sqlite: %s", sqlite3_errmsg(db));
    }
}

static void run(sqlite3 *db, const char *sql)
{
    check(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

static struct caller *open_db(const char *path, const char *settings)
{
    struct caller *caller = calloc(1, sizeof(*caller));

    if (caller == NULL) {
        err(1, "sqlite");
    }
    check(NULL, sqlite3_open(path, &caller->db));
    (void)sqlite3_busy_timeout(caller->db, 60000);
    run(caller->db, "PRAGMA journal_mode = WAL");
    run(caller->db, settings);
    run(caller->db, tables);
    check(caller->db, sqlite3_prepare_v2(caller->db, insert_sql, -1,
                                         &caller->insert, NULL));
    check(caller->db, sqlite3_prepare_v2(caller->db, update_sql, -1,
                                         &caller->update, NULL));
    check(caller->db, sqlite3_prepare_v2(caller->db, select_sql, -1,
                                         &caller->select, NULL));
    return caller;
}

static void close_db(struct caller *caller)
{
    (void)sqlite3_finalize(caller->insert);
    (void)sqlite3_finalize(caller->update);
    (void)sqlite3_finalize(caller->select);
    check(caller->db, sqlite3_close(caller->db));
    free(caller);
}

static void *open_shared(const char *where)
{
    return (void *)(uintptr_t)where;
}

static void close_shared(void *shared)
{
    (void)shared;
}

static void *connect_caller(void *shared)
{
    char settings[200];

    (void)snprintf(settings, sizeof(settings),
                   "PRAGMA synchronous = FULL; PRAGMA cache_size = -8192;"
                   "PRAGMA wal_autocheckpoint = %d",
                   WAL_PAGES);
    return open_db(shared, settings);
}

static void disconnect(void *caller)
{
    close_db(caller);
}

/* ---- Steps ---- */

static int64_t later_ms(int64_t ms)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + ms;
}

/* In no order: the hexadecimal digits of the key. */
static const char *id_of(const char *key)
{
    return key + sizeof("order-") - 1;
}

static void step(const struct caller *caller, sqlite3_stmt *stmt, bool must)
{
    check(caller->db, sqlite3_step(stmt));
    if (must && sqlite3_changes(caller->db) != 1) {
        errx(1, "sqlite: a new key was not claimed");
    }
    (void)sqlite3_reset(stmt);
}

static void claim(struct caller *caller, const char *key, int status,
                  int64_t deadline_ms, size_t result_len)
{
    sqlite3_stmt *stmt = caller->insert;

    (void)sqlite3_bind_blob(stmt, 1, id_of(key), ID_LEN, SQLITE_STATIC);
    (void)sqlite3_bind_int(stmt, 2, status);
    (void)sqlite3_bind_int64(stmt, 3, deadline_ms);
    (void)sqlite3_bind_blob(stmt, 4, key, KEY_LEN, SQLITE_STATIC);
    (void)sqlite3_bind_blob(stmt, 5, result, HEAD_LEN, SQLITE_STATIC);
    if (result_len > 0) {
        (void)sqlite3_bind_blob(stmt, 6, result, (int)result_len,
                                SQLITE_STATIC);
    }
    step(caller, stmt, /* must= */ true);
}

static void record(struct caller *caller, const char *key)
{
    sqlite3_stmt *stmt = caller->update;

    (void)sqlite3_bind_blob(stmt, 1, id_of(key), ID_LEN, SQLITE_STATIC);
    (void)sqlite3_bind_int(stmt, 2, STATUS_DONE);
    (void)sqlite3_bind_int64(stmt, 3, later_ms(RETENTION_MS));
    (void)sqlite3_bind_blob(stmt, 4, result, HEAD_LEN, SQLITE_STATIC);
    (void)sqlite3_bind_blob(stmt, 5, result, RESULT_LEN, SQLITE_STATIC);
    step(caller, stmt, /* must= */ true);
}

static void run_new(void *arg, const char *key)
{
    claim(arg, key, STATUS_OPEN, later_ms(LEASE_MS), 0);
    record(arg, key);
}

static void run_replay(void *arg, const char *key)
{
    struct caller *caller = arg;
    sqlite3_stmt *stmt = caller->select;

    if (!caller->reads) {
        caller->reads = true;
        run(caller->db, "PRAGMA cache_size = -2000"); /* As idem's readers. */
    }
    (void)sqlite3_bind_blob(stmt, 1, id_of(key), ID_LEN, SQLITE_STATIC);
    check(caller->db, sqlite3_step(stmt));
    if (sqlite3_column_int(stmt, 0) != STATUS_DONE ||
        (size_t)sqlite3_column_bytes(stmt, 2) != recorded_len ||
        sqlite3_column_blob(stmt, 1) == NULL ||
        memcmp(sqlite3_column_blob(stmt, 2), result, 64) != 0) {
        errx(1, "sqlite: %s: another result", key);
    }
    (void)sqlite3_reset(stmt);
}

/* ---- Many in one transaction ---- */

/* All claims in one commit, all outcomes in the next: no group commit shares its
 * flushes better. */
static void fly(void *shared, unsigned in_flight, int64_t from_ns,
                int64_t until_ns, struct times *times)
{
    char(*keys)[KEY_LEN + 1] = calloc(in_flight, sizeof(*keys));
    struct caller *caller = connect_caller(shared);
    uint64_t stream = (uint64_t)now_ns();
    uint64_t n = 0;
    unsigned i;

    if (keys == NULL) {
        err(1, "sqlite");
    }
    while (now_ns() < until_ns) {
        int64_t start_ns = now_ns();

        run(caller->db, "BEGIN IMMEDIATE");
        for (i = 0; i < in_flight; i++) {
            key_of(stream, n++, keys[i]);
            claim(caller, keys[i], STATUS_OPEN, later_ms(LEASE_MS), 0);
        }
        run(caller->db, "COMMIT; BEGIN IMMEDIATE");
        for (i = 0; i < in_flight; i++) {
            record(caller, keys[i]);
        }
        run(caller->db, "COMMIT");
        for (i = 0; i < in_flight && start_ns >= from_ns; i++) {
            times_add(times, now_ns() - start_ns);
        }
    }
    close_db(caller);
    free(keys);
}

/* ---- Filling ---- */

/* With a cache that holds the index, and nothing flushed. */
static void fill(void *shared, uint64_t from, uint64_t count, size_t len)
{
    struct caller *caller =
        open_db(shared, "PRAGMA synchronous = OFF;"
                        "PRAGMA cache_size = -1000000;"
                        "PRAGMA wal_autocheckpoint = 50000");
    char key[KEY_LEN + 1];
    uint64_t i;

    run(caller->db, "BEGIN IMMEDIATE");
    for (i = 0; i < count; i++) {
        key_of(0, from + i, key);
        claim(caller, key, STATUS_DONE, later_ms(RETENTION_MS), len);
        if (i % FILL_BATCH == FILL_BATCH - 1) {
            run(caller->db, "COMMIT; BEGIN IMMEDIATE");
        }
    }
    run(caller->db, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
    close_db(caller);
}

const struct target target = {
    .name = "sqlite",
    .open = open_shared,
    .close = close_shared,
    .connect = connect_caller,
    .disconnect = disconnect,
    .run_new = run_new,
    .run_replay = run_replay,
    .fill = fill,
    .fly = fly,
};
