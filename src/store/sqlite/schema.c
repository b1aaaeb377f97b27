/* The tables of the file. */
#include "store/sqlite/schema.h"

#include "base/crash.h"
#include "core/error.h"
#include "store/sqlite/tables.h"

/* "idem" in the header of the file; file(1) and others look there. */
#define APPLICATION_TEXT "1768187245"
enum {
    APPLICATION = 1768187245
};

/* Of a file of ours only: what others keep in theirs is not counted. */
static const char counters[] = "CREATE TABLE IF NOT EXISTS idem_counter ("
                               "  name TEXT PRIMARY KEY,"
                               "  value INTEGER NOT NULL"
                               ") STRICT, WITHOUT ROWID;";

/* Likewise. The rows that were completed with a failure, so that a watcher need
 * not read all that is completed. One may have been reopened since: whoever reads
 * them looks at the record. */
static const char failed[] =
    "CREATE TABLE IF NOT EXISTS idem_failed (seq INTEGER PRIMARY KEY) STRICT;"
    "CREATE TRIGGER IF NOT EXISTS idem_failed_deleted"
    "  AFTER DELETE ON idem_record"
    "  BEGIN DELETE FROM idem_failed WHERE seq = OLD.seq; END;";

/* Likewise, made by the first purge: before which deadline all that is open is held
 * and never expires, and when that was found. */
static const char purge[] = "CREATE TABLE IF NOT EXISTS idem_purge ("
                            "  one INTEGER PRIMARY KEY CHECK (one = 1),"
                            "  held_ms INTEGER NOT NULL,"
                            "  looked_ms INTEGER NOT NULL"
                            ") STRICT;";

static const char mark_file[] =
    "PRAGMA application_id = " APPLICATION_TEXT ";"
    "PRAGMA user_version = " IDEM__TABLES_VERSION_TEXT ";";

static int read_number(struct idem__conn *conn, const char *sql, int *ret)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(conn->db, sql, -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
    }
    if (rc == SQLITE_ROW) {
        *ret = sqlite3_column_int(stmt, 0);
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int idem__schema_check_version(int version, struct idem_error *error)
{
    if (version == IDEM__TABLES_VERSION) {
        return 0;
    }
    if (version < IDEM__TABLES_VERSION) {
        return idem__error(error, IDEM_ECONFIG,
                           "the store has schema version %d, which no release "
                           "of idem has written: name another file",
                           version);
    }
    return idem__error(error, IDEM_ECONFIG,
                       "the store has schema version %d and this program "
                       "knows %d: use a newer idem",
                       version, IDEM__TABLES_VERSION);
}

/* The version is kept twice: in the header, and beside the clock, for tables
 * that live in a file of somebody else's. */
static int check_both_versions(struct idem__conn *conn, int version,
                               struct idem_error *error)
{
    int rc = idem__schema_check_version(version, error);

    if (rc != 0) {
        return rc;
    }
    rc = read_number(conn, "SELECT schema FROM idem_clock WHERE one = 1",
                     &version);
    return rc == SQLITE_OK || rc == SQLITE_DONE
               ? idem__schema_check_version(version, error)
               : idem__conn_fail(conn, rc, "read the store", error);
}

static int run(struct idem__conn *conn, const char *sql, int rc)
{
    return rc == SQLITE_OK ? sqlite3_exec(conn->db, sql, NULL, NULL, NULL) : rc;
}

static int run_all(struct idem__conn *conn, const char *const *sql, int rc)
{
    for (; *sql != NULL; sql++) {
        rc = run(conn, *sql, rc);
    }
    return rc;
}

int idem__schema_create(struct idem__conn *conn,
                        const uint8_t id[IDEM__STORE_ID_LEN],
                        struct idem_error *error)
{
    int rc = run(conn, "BEGIN IMMEDIATE", SQLITE_OK);

    IDEM__CRASH_POINT("sqlite/schema/begun");
    rc = run_all(conn, idem__tables, rc);
    IDEM__CRASH_POINT("sqlite/schema/tables-made");
    rc = run(conn, counters, rc);
    rc = run(conn, failed, rc);
    rc = run(conn, mark_file, rc);
    rc = rc == SQLITE_OK ? idem__identity_save(conn, id) : rc;
    IDEM__CRASH_POINT("sqlite/schema/before-commit");
    rc = run(conn, "COMMIT", rc);
    IDEM__CRASH_POINT("sqlite/schema/committed");
    if (rc != SQLITE_OK) {
        rc = idem__conn_fail(conn, rc, "create the store's tables", error);
        (void)run(conn, "ROLLBACK", SQLITE_OK);
    }
    return rc;
}

int idem__schema_add_purge(struct idem__conn *conn)
{
    conn->makes_tables = true;
    return run(conn, purge, SQLITE_OK);
}

/* Looks before it makes: what is there may be of another version, whose tables
 * are not ours to complete, and a replay must not need to write. */
int idem__schema_create_in(struct idem__conn *conn, struct idem_error *error)
{
    int clocks = 0;
    int version = IDEM__TABLES_VERSION;
    int rc = read_number(conn,
                         "SELECT count(*) FROM main.sqlite_schema "
                         "WHERE type = 'table' AND name = 'idem_clock'",
                         &clocks);

    if (rc == SQLITE_OK && clocks == 0) {
        rc = run_all(conn, idem__tables, rc);
        IDEM__CRASH_POINT("sqlite/in/tables-made");
    } else if (rc == SQLITE_OK) {
        rc = read_number(conn,
                         "SELECT schema FROM main.idem_clock WHERE one = 1",
                         &version);
    }
    if (rc != SQLITE_OK) {
        return idem__conn_fail(conn, rc, "make the tables of idem", error);
    }
    return idem__schema_check_version(version, error);
}

/* A file of somebody else's: does idem_sqlite_begin_in() keep records there? */
static int check_foreign(struct idem__conn *conn, struct idem_error *error)
{
    int tables_of_ours = 0;
    int version = IDEM__TABLES_VERSION;
    int rc = read_number(conn,
                         "SELECT count(*) FROM sqlite_schema WHERE type = "
                         "'table' AND name IN ('idem_clock', 'idem_record')",
                         &tables_of_ours);

    if (rc == SQLITE_OK && tables_of_ours < 2) {
        return idem__error(error, IDEM_ECONFIG,
                           "%.100s is an SQLite database of another program: "
                           "name another file",
                           idem__conn_path(conn));
    }
    if (rc != SQLITE_OK) {
        return idem__conn_fail(conn, rc, "read the store", error);
    }
    return check_both_versions(conn, version, error);
}

int idem__schema_check(struct idem__conn *conn, enum idem__holder *ret_holder,
                       struct idem_error *error)
{
    int application = 0;
    int version = 0;
    int objects = 0;
    int rc = read_number(conn, "PRAGMA application_id", &application);

    if (rc == SQLITE_OK) {
        rc = read_number(conn, "PRAGMA user_version", &version);
    }
    if (rc == SQLITE_OK) {
        rc = read_number(conn, "SELECT count(*) FROM sqlite_schema", &objects);
    }
    if (rc != SQLITE_OK) {
        return idem__conn_fail(conn, rc, "read the store", error);
    }
    if (application == APPLICATION) {
        *ret_holder = IDEM__HOLDER_STORE;
        return check_both_versions(conn, version, error);
    }
    if (application == 0 && version == 0 && objects == 0) {
        *ret_holder = IDEM__HOLDER_NONE;
        return 0;
    }
    *ret_holder = IDEM__HOLDER_APPLICATION;
    return check_foreign(conn, error);
}
