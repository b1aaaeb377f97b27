/* The tables of records and of the clock, in a store and in the database of an
 * application. */
#include "store/sqlite/tables.h"

#include <stddef.h>

/* seq is the order of arrival: a completion touches pages that are still warm,
 * and only the index on id is random. deadline is when something is due: the end
 * of the lease in progress, the end of the retention afterwards; the greatest
 * number means never. One index serves lists by status, the search for late
 * work, and purge. The view is for people with a stock sqlite3 shell. */
const char *const idem__tables[] = {
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
    "  ON idem_record (status, deadline)",
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
    "  VALUES (1, " IDEM__TABLES_VERSION_TEXT ", zeroblob(16), 0, 0, 0, 0)",
    "CREATE VIEW IF NOT EXISTS idem_operations AS SELECT"
    "  CAST(scope AS TEXT) AS scope,"
    "  CAST(key AS TEXT) AS key,"
    "  CASE status WHEN 1 THEN 'in_progress' WHEN 2 THEN 'completed'"
    "    WHEN 3 THEN 'failed' WHEN 4 THEN 'unknown' ELSE 'released' END"
    "    AS status,"
    "  CASE deadline WHEN 9223372036854775807 THEN 'never'"
    "    ELSE strftime('%Y-%m-%dT%H:%M:%fZ', deadline / 1000.0, 'unixepoch')"
    "    END AS due,"
    "  lower(hex(id)) AS id,"
    "  length(result) AS result_bytes"
    "  FROM idem_record",
    NULL,
};
