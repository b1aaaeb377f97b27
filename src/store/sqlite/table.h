/* Records in the table: what the engine loads and saves. */
#ifndef IDEM_STORE_SQLITE_TABLE_H
#define IDEM_STORE_SQLITE_TABLE_H

#include "contract/parts.h"
#include "store/sqlite/conn.h"

struct idem__sqlite_table {
    struct idem__conn *conn;
    int64_t seq;       /* Of the row that was loaded last. */
    sqlite3_stmt *row; /* Is on its row, if it was loaded without bodies. */
    struct idem_record record; /* Its contents then. */
    int sqlite_rc;             /* Of the first write that failed; SQLITE_OK. */
    uint8_t *head; /* IDEM_HEAD_MAX bytes to write with; NULL: it only reads. */
    bool notes_failed; /* A record that is completed with a failure is noted. */
};

/* The engine's view of @table. */
struct idem_table idem__sqlite_table_of(struct idem__sqlite_table *table);

/* Lets go of the record that was loaded last, and of the snapshot that an
 * unfinished statement would keep alive. */
void idem__sqlite_table_reset(struct idem__sqlite_table *table);

/* Reads a row of ROW_COLUMNS: verifies and decodes it. Fills in scope, key and
 * id also where it fails. @id is what the row is stored under. 0 or a code. */
int idem__row_decode(sqlite3_stmt *stmt, const uint8_t *id,
                     struct idem_record *ret_record, struct idem_error *error);

/* Adds result and input, the columns after those, to a record that was read from
 * the row, and verifies them. 0 or a code. */
int idem__row_bodies(sqlite3_stmt *stmt, struct idem_record *record,
                     struct idem_error *error);

#endif
