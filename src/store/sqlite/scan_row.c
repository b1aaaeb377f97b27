/* One row of the records, and its entries in the indexes. */
#include "store/sqlite/scan.h"

#define COLUMNS "seq, status, deadline, scope, key, head, result, input, id"

const char idem__scan_rows_sql[] =
    "SELECT " COLUMNS " FROM idem_record NOT INDEXED "
    "WHERE seq > ?1 AND seq <= ?2 ORDER BY seq";

enum {
    COLUMN_ID = 8
};

int idem__scan_range(struct idem__conn *conn, int64_t *ret_first,
                     int64_t *ret_last)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(conn->db,
                                "SELECT (SELECT min(seq) FROM idem_record), "
                                "(SELECT max(seq) FROM idem_record)",
                                -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = idem__conn_step(conn, stmt);
    }
    if (rc == SQLITE_ROW) {
        int64_t first = sqlite3_column_int64(stmt, 0);
        int64_t last = sqlite3_column_int64(stmt, 1);

        *ret_first = first > 0 ? first : 0;
        *ret_last = last > 0 ? last : 0;
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

static const char *const names[] = {"seq",    "status", "deadline",
                                    "scope",  "key",    "head",
                                    "result", "input",  "id"};

int idem__scan_column(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *idem__scan_column_name(int column)
{
    return names[column];
}

int idem__scan_row(sqlite3_stmt *stmt, struct idem_error *ret_error)
{
    const void *id = sqlite3_column_blob(stmt, COLUMN_ID);
    struct idem_record record;
    int rc;

    if (sqlite3_column_bytes(stmt, COLUMN_ID) != IDEM_ID_LEN) {
        return IDEM_ECORRUPT;
    }
    rc = idem__row_decode(stmt, id, &record, ret_error);
    return rc == 0 ? idem__row_bodies(stmt, &record, ret_error) : rc;
}

int idem__scan_has_entry(struct idem__conn *conn, sqlite3_stmt *stmt,
                         const struct idem__scan_index *index, bool *ret_has)
{
    struct idem__scan_key key;
    int rc;

    *ret_has = false;
    if (!idem__scan_key_of(stmt, index->columns, index->columns_len, &key)) {
        return SQLITE_OK; /* No value of ours is so long. */
    }
    rc = idem__scan_key_bind(index->entry, &key, index->columns_len);
    if (rc == SQLITE_OK) {
        rc = idem__conn_step(conn, index->entry);
    }
    *ret_has = rc == SQLITE_ROW;
    (void)sqlite3_reset(index->entry);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int idem__scan_has_row(struct idem__conn *conn,
                       const struct idem__scan_index *index, int64_t seq,
                       const struct idem__scan_key *key, bool *ret_has)
{
    struct idem__scan_key row;
    int rc = sqlite3_bind_int64(index->row, 1, seq);

    if (rc == SQLITE_OK) {
        rc = idem__conn_step(conn, index->row);
    }
    *ret_has =
        rc == SQLITE_ROW &&
        idem__scan_key_of(index->row, index->own, index->columns_len, &row) &&
        idem__scan_key_compare(&row, key) == 0;
    (void)sqlite3_reset(index->row);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}
