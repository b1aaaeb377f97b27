/* Creates and checks the tables of the file. */
#include "store/sqlite/conn.h"

#include "base/crash.h"
#include "core/error.h"

/* The version of the tables. */
#define TABLES_VERSION 1
#define TABLES_VERSION_TEXT "1"

/* seq is the order of arrival: a completion then touches pages that are still warm, and
 * only the index on id is random. deadline is when the record is due (idem__deadline()):
 * the end of its lease while it is in progress, afterwards the end of its retention; the
 * greatest number means never. One index serves lists by status, the search for late
 * work, and purges; the newest claims are not in it yet (IDEM__CLAIMED). The view is for
 * people with a stock sqlite3 shell. */
static const char *const tables[] = {
    "CREATE TABLE IF NOT EXISTS idem_record ("
    "  seq INTEGER PRIMARY KEY,"
    "  id BLOB NOT NULL UNIQUE,"
    "  status INTEGER NOT NULL,"
    "  deadline INTEGER NOT NULL,"
    "  scope BLOB NOT NULL,"
    "  key BLOB NOT NULL,"
    "  head BLOB NOT NULL,"
    "  result BLOB,"
    "  input BLOB"
    ") STRICT",
    "CREATE INDEX IF NOT EXISTS idem_record_due"
    "  ON idem_record (status, deadline) WHERE status <> 0",
    "CREATE TABLE IF NOT EXISTS idem_clock ("
    "  one INTEGER PRIMARY KEY CHECK (one = 1),"
    "  schema INTEGER NOT NULL,"
    "  boot_id BLOB NOT NULL,"
    "  boot_ms INTEGER NOT NULL,"
    "  store_ms INTEGER NOT NULL,"
    "  last_ms INTEGER NOT NULL,"
    "  fence_floor INTEGER NOT NULL,"
    "  sure_ms INTEGER NOT NULL DEFAULT 0,"
    "  jump_ms INTEGER NOT NULL DEFAULT 0,"
    "  store_id BLOB,"
    "  mark TEXT NOT NULL DEFAULT ''"
    ") STRICT",
    "INSERT OR IGNORE INTO idem_clock"
    "  (one, schema, boot_id, boot_ms, store_ms, last_ms, fence_floor)"
    "  VALUES (1, " TABLES_VERSION_TEXT ", zeroblob(16), 0, 0, 0, 0)",
    "CREATE VIEW IF NOT EXISTS idem_operations AS SELECT"
    "  CAST(scope AS TEXT) AS scope,"
    "  CAST(key AS TEXT) AS key,"
    "  CASE status WHEN 0 THEN 'in_progress' WHEN 1 THEN 'in_progress'"
    "    WHEN 2 THEN 'completed' WHEN 3 THEN 'failed' WHEN 4 THEN 'unknown'"
    "    ELSE 'released' END"
    "    AS status,"
    "  CASE deadline WHEN 9223372036854775807 THEN 'never'"
    "    ELSE strftime('%Y-%m-%dT%H:%M:%fZ', deadline / 1000.0, 'unixepoch')"
    "    END AS due,"
    "  lower(hex(id)) AS id,"
    "  length(result) AS result_bytes"
    "  FROM idem_record",
    NULL,
};

/* "idem", in the header of the file, where file(1) and other programs look. */
#define APPLICATION_TEXT "1768187245"
enum {
    APPLICATION = 1768187245
};

/* Only a store has this table: ops in an application's database are not counted. */
static const char counters[] = "CREATE TABLE IF NOT EXISTS idem_counter ("
                               "  name TEXT PRIMARY KEY,"
                               "  value INTEGER NOT NULL"
                               ") STRICT, WITHOUT ROWID;";

/* Only a store has this table. It lists the records that were completed with a failure,
 * so that a watcher need not read all completed records. A record may have been reopened
 * since it was listed, so readers of the table check the record, too. */
static const char failed[] =
    "CREATE TABLE IF NOT EXISTS idem_failed (seq INTEGER PRIMARY KEY) STRICT;"
    "CREATE TRIGGER IF NOT EXISTS idem_failed_deleted"
    "  AFTER DELETE ON idem_record"
    "  BEGIN DELETE FROM idem_failed WHERE seq = OLD.seq; END;";

/* Only a store has this table, which its first purge creates. It has the deadline up to
 * which all open records are held, and so never expire, and the time at which that was
 * found. */
static const char purge[] = "CREATE TABLE IF NOT EXISTS idem_purge ("
                            "  one INTEGER PRIMARY KEY CHECK (one = 1),"
                            "  held_ms INTEGER NOT NULL,"
                            "  looked_ms INTEGER NOT NULL"
                            ") STRICT;";

static const char mark_file[] =
    "PRAGMA application_id = " APPLICATION_TEXT ";"
    "PRAGMA user_version = " TABLES_VERSION_TEXT ";";

/* IDEM_ECONFIG  Tables of @version are not ours. */
static int check_version(int64_t version, struct idem_error *error)
{
    if (version == TABLES_VERSION) {
        return 0;
    }
    if (version < TABLES_VERSION) {
        return idem__error(error, IDEM_ECONFIG,
                           "the store has schema version %lld, which no "
                           "release of idem has written: name another file",
                           (long long)version);
    }
    return idem__error(error, IDEM_ECONFIG,
                       "the store has schema version %lld and this program "
                       "knows %d: use a newer idem",
                       (long long)version, TABLES_VERSION);
}

/* The version is kept twice: in the header, and beside the clock, for tables in an
 * application's file. */
static int check_both_versions(struct idem__conn *conn, int64_t version,
                               struct idem_error *error)
{
    int rc = check_version(version, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__conn_number(conn, "SELECT schema FROM idem_clock WHERE one = 1",
                           &version);
    return rc == SQLITE_OK || rc == SQLITE_DONE
               ? check_version(version, error)
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
    rc = run_all(conn, tables, rc);
    IDEM__CRASH_POINT("sqlite/schema/tables-made");
    rc = run(conn, counters, rc);
    rc = run(conn, failed, rc);
    rc = run(conn, mark_file, rc);
    rc = rc == SQLITE_OK ? idem__schema_save_id(conn, id) : rc;
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

/* Looks before it creates tables: existing ones may be of another version, which we
 * must not complete, and a replay must not need to write. */
int idem__schema_create_in(struct idem__conn *conn, struct idem_error *error)
{
    int64_t clocks = 0;
    int64_t version = TABLES_VERSION;
    int rc = idem__conn_number(conn,
                               "SELECT count(*) FROM main.sqlite_schema "
                               "WHERE type = 'table' AND name = 'idem_clock'",
                               &clocks);

    if (rc == SQLITE_OK && clocks == 0) {
        rc = run_all(conn, tables, rc);
        IDEM__CRASH_POINT("sqlite/in/tables-made");
    } else if (rc == SQLITE_OK) {
        rc = idem__conn_number(
            conn, "SELECT schema FROM main.idem_clock WHERE one = 1", &version);
    }
    if (rc != SQLITE_OK) {
        return idem__conn_fail(conn, rc, "make the tables of idem", error);
    }
    return check_version(version, error);
}

/* Finds out whether idem_sqlite_begin_in() keeps records in another program's file. */
static int check_foreign(struct idem__conn *conn, struct idem_error *error)
{
    int64_t tables_of_ours = 0;
    int64_t version = TABLES_VERSION;
    int rc =
        idem__conn_number(conn,
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
    int64_t application = 0;
    int64_t version = 0;
    int64_t objects = 0;
    int rc = idem__conn_number(conn, "PRAGMA application_id", &application);

    if (rc == SQLITE_OK) {
        rc = idem__conn_number(conn, "PRAGMA user_version", &version);
    }
    if (rc == SQLITE_OK && application == 0) {
        rc = idem__conn_number(conn, "SELECT count(*) FROM sqlite_schema",
                               &objects);
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

/* ---- The id of the store ------------------------------------------------- */

static int read_id(sqlite3_stmt *stmt, bool *ret_has,
                   uint8_t ret_id[IDEM__STORE_ID_LEN])
{
    int rc = sqlite3_step(stmt);

    *ret_has =
        rc == SQLITE_ROW && sqlite3_column_bytes(stmt, 0) == IDEM__STORE_ID_LEN;
    if (*ret_has) {
        memcpy(ret_id, sqlite3_column_blob(stmt, 0), IDEM__STORE_ID_LEN);
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int idem__schema_load_id(struct idem__conn *conn, bool *ret_has,
                         uint8_t ret_id[IDEM__STORE_ID_LEN],
                         struct idem_error *error)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(conn->db,
                                "SELECT store_id FROM idem_clock WHERE one = 1",
                                -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = read_id(stmt, ret_has, ret_id);
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_OK
               ? 0
               : idem__conn_fail(conn, rc, "read the store's id", error);
}

int idem__schema_save_id(struct idem__conn *conn,
                         const uint8_t id[IDEM__STORE_ID_LEN])
{
    sqlite3_stmt *stmt = NULL;
    int rc =
        sqlite3_prepare_v2(conn->db,
                           "UPDATE idem_clock SET store_id = ?1 WHERE one = 1",
                           -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        (void)sqlite3_bind_blob(stmt, 1, id, IDEM__STORE_ID_LEN, SQLITE_STATIC);
        rc = sqlite3_step(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
