/* SQLite files: opening stores in them, and reading and changing them without the store. */
#include "db.h"

#include "test.h"

#include <idem/sqlite.h>

struct idem_store *db_store(const char *path, int64_t timeout_ms)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store;

    options.timeout_ms = timeout_ms;
    assert_ok(idem_sqlite_open(path, &options, &store, &why));
    return store;
}

sqlite3 *db_open(const char *path)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 60000);
    return db;
}

void db_run(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_with("%s: %s", sql, sqlite3_errmsg(db));
    }
}

int64_t db_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW) {
        fail_with("%s: %s", sql, sqlite3_errmsg(db));
    }
    number = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return number;
}

void db_run_at(const char *path, const char *sql)
{
    sqlite3 *db = db_open(path);

    db_run(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int64_t db_number_at(const char *path, const char *sql)
{
    sqlite3 *db = db_open(path);
    int64_t number = db_number(db, sql);

    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return number;
}

static FILE *open_file(const char *path, const char *suffix, const char *mode,
                       long at)
{
    char name[4096];
    FILE *file;

    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    file = fopen(name, mode);
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    return file;
}

void file_read(const char *path, const char *suffix, long at, void *bytes,
               size_t len)
{
    FILE *file = open_file(path, suffix, "rb", at);

    assert_int_equal(fread(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

void file_write(const char *path, const char *suffix, long at,
                const void *bytes, size_t len)
{
    FILE *file = open_file(path, suffix, "r+b", at);

    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}
