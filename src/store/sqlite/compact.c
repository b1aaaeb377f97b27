/* Packs the table where purges have left its pages half empty.
 *
 * Rows lie in the order of seq, and rows beside each other may have any retention.
 * SQLite gives a page back when it is empty, and merges it with its neighbours when
 * a deletion leaves it more than two thirds empty; a page of which six rows of ten
 * are gone stays as it is, and no new row is put there. So a purge counts what it
 * deletes from each region of IDEM__REGION_ROWS numbers (idem_sparse), and when that is
 * a quarter of what is left there, or more, the region is packed, in one
 * transaction:
 *
 *     1. All but the id of its rows is taken out, and kept in memory. The rows
 *        shrink in place: SQLite does not merge then.
 *     2. A probe is inserted between them, where a number is free, and deleted: by
 *        the deletion SQLite sees pages that are nearly empty, and merges them.
 *     3. The rows are filled again, in their order. Pages that overflow share with
 *        their neighbours, which leaves them nine tenths full.
 *
 * No row changes its seq, status, deadline or id: no index is touched by it (of the
 * probe, their first pages), and nothing that walks the table can miss a row or meet
 * it twice. Pages that are left over are SQLite's to use again. If a release of
 * SQLite balanced its trees in another way, that would cost space, no record.
 */
#include "store/sqlite/compact.h"

#include "base/crash.h"
#include "store/sqlite/schema.h"

enum {
    FIRST_DUE = 8192, /* Bytes: two pages. */
    PROBE_EVERY = 4,  /* Rows: no more than a page has. */
    ROW_BYTES = 64,   /* The parts of a row beside its record, with its id. */
    COLUMN_LEN = 1,
    COLUMN_PARTS = 2,
    FIRST_BODY = 3 /* Of the parts: these may be absent. */
};

/* The number that the region of @seq begins with. */
static int64_t first_of(int64_t seq)
{
    return seq - (seq & (IDEM__REGION_ROWS - 1));
}

/* ---- What was deleted ---- */

int idem__compact_save(struct idem__conn *conn, struct idem__sparse *sparse)
{
    sqlite3_stmt *stmt;
    int rc = SQLITE_OK;

    if (sparse->bytes == 0) {
        return SQLITE_OK;
    }
    stmt = idem__conn_stmt(conn, IDEM__SQL_SPARSE_ADD);
    if (stmt == NULL && conn->prepare_rc == SQLITE_ERROR) {
        rc = idem__schema_add_purge(conn);
        stmt = idem__conn_stmt(conn, IDEM__SQL_SPARSE_ADD);
    }
    if (rc == SQLITE_OK) {
        (void)sqlite3_bind_int64(stmt, 1, sparse->seq);
        (void)sqlite3_bind_int64(stmt, 2, sparse->bytes);
        (void)sqlite3_bind_int64(stmt, 3, FIRST_DUE);
        rc = idem__conn_run(conn, IDEM__SQL_SPARSE_ADD);
    }
    sparse->bytes = 0;
    return rc;
}

int idem__compact_note(struct idem__conn *conn, struct idem__sparse *sparse,
                       int64_t seq, int64_t bytes)
{
    int64_t region = first_of(seq);
    int rc = SQLITE_OK;

    if (region != sparse->seq) {
        rc = idem__compact_save(conn, sparse);
        sparse->seq = region;
    }
    /* The rest of a long row has pages of its own. */
    sparse->bytes +=
        ROW_BYTES + (bytes < IDEM__LONG_ROW ? bytes : IDEM__LONG_ROW);
    return rc;
}

/* ---- Packing ---- */

/* SQLITE_ROW if a region is due; SQLITE_DONE: none is. */
static int find(struct idem__conn *conn, struct idem__region *region)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_SPARSE_NEXT);
    int rc;

    if (stmt == NULL) {
        /* Nothing was purged from this file yet. */
        return conn->prepare_rc == SQLITE_ERROR ? SQLITE_DONE
                                                : conn->prepare_rc;
    }
    rc = idem__conn_step(conn, stmt);
    if (rc == SQLITE_ROW) {
        region->key = sqlite3_column_int64(stmt, 0);
        region->seq = first_of(region->key); /* Independent of the contents of
                                                the file. */
        region->deleted = sqlite3_column_int64(stmt, 1);
    }
    idem__conn_reset(conn, IDEM__SQL_SPARSE_NEXT);
    return rc;
}

/* Whether the current row is as we write them: what is put back as a blob must
 * have been one, and as long as it was counted. */
static bool is_ours(sqlite3_stmt *stmt)
{
    int i;

    for (i = 0; i < IDEM__ROW_PARTS; i++) {
        int type = sqlite3_column_type(stmt, COLUMN_PARTS + i);

        if (type != SQLITE_BLOB && (type != SQLITE_NULL || i < FIRST_BODY)) {
            return false;
        }
    }
    return sqlite3_column_int64(stmt, COLUMN_LEN) <= IDEM__LONG_ROW;
}

static void keep_parts(struct idem__region *region,
                       struct idem__region_row *row, sqlite3_stmt *stmt)
{
    int i;

    row->at = region->bytes_len;
    for (i = 0; i < IDEM__ROW_PARTS; i++) {
        const void *part = sqlite3_column_blob(stmt, COLUMN_PARTS + i);

        row->has[i] =
            sqlite3_column_type(stmt, COLUMN_PARTS + i) != SQLITE_NULL;
        row->len[i] = (size_t)sqlite3_column_bytes(stmt, COLUMN_PARTS + i);
        if (row->len[i] > 0) {
            memcpy(region->bytes + region->bytes_len, part, row->len[i]);
            region->bytes_len += row->len[i];
        }
    }
}

static int read_rows(struct idem__conn *conn, struct idem__region *region)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_COMPACT_ROWS);
    int rc;

    (void)sqlite3_bind_int64(stmt, 1, region->seq);
    (void)sqlite3_bind_int64(stmt, 2, region->seq + IDEM__REGION_ROWS - 1);
    while ((rc = idem__conn_step(conn, stmt)) == SQLITE_ROW &&
           region->len < IDEM__REGION_ROWS) {
        struct idem__region_row *row = &region->rows[region->len++];

        row->seq = sqlite3_column_int64(stmt, 0);
        row->stays = !is_ours(stmt);
        if (!row->stays) {
            keep_parts(region, row, stmt);
        }
    }
    idem__conn_reset(conn, IDEM__SQL_COMPACT_ROWS);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int run_with_seq(struct idem__conn *conn, enum idem__sql sql,
                        int64_t seq)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, sql);

    (void)sqlite3_bind_int64(stmt, 1, seq);
    return idem__conn_run(conn, sql);
}

static int empty_rows(struct idem__conn *conn, struct idem__region *region)
{
    int rc = SQLITE_OK;
    size_t i;

    for (i = 0; i < region->len && rc == SQLITE_OK; i++) {
        if (!region->rows[i].stays) {
            rc = run_with_seq(conn, IDEM__SQL_COMPACT_EMPTY,
                              region->rows[i].seq);
        }
    }
    IDEM__CRASH_POINT("sqlite/compact/emptied");
    return rc;
}

/* Makes SQLite look at the pages around the free number @seq. */
static int probe(struct idem__conn *conn, int64_t seq)
{
    int rc = run_with_seq(conn, IDEM__SQL_COMPACT_PROBE, seq);

    return rc == SQLITE_OK ? run_with_seq(conn, IDEM__SQL_DELETE, seq) : rc;
}

static int merge_pages(struct idem__conn *conn, struct idem__region *region)
{
    size_t since = 0;
    int rc = SQLITE_OK;
    size_t i;

    for (i = 0; i + 1 < region->len && rc == SQLITE_OK; i++) {
        int64_t seq = region->rows[i].seq + 1;

        since++;
        if (since >= PROBE_EVERY && seq < region->rows[i + 1].seq) {
            rc = probe(conn, seq);
            since = 0;
        }
    }
    IDEM__CRASH_POINT("sqlite/compact/merged");
    return rc;
}

static int fill_row(struct idem__conn *conn, struct idem__region *region,
                    const struct idem__region_row *row)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_COMPACT_FILL);
    const uint8_t *part = region->bytes + row->at;
    int rc = sqlite3_bind_int64(stmt, 1, row->seq);
    int i;

    for (i = 0; i < IDEM__ROW_PARTS && rc == SQLITE_OK; i++) {
        if (row->has[i]) {
            rc = sqlite3_bind_blob64(stmt, 2 + i, part, row->len[i],
                                     SQLITE_STATIC);
        }
        part += row->len[i];
    }
    return rc == SQLITE_OK ? idem__conn_run(conn, IDEM__SQL_COMPACT_FILL) : rc;
}

static int fill_rows(struct idem__conn *conn, struct idem__region *region)
{
    int rc = SQLITE_OK;
    size_t i;

    for (i = 0; i < region->len && rc == SQLITE_OK; i++) {
        if (!region->rows[i].stays) {
            rc = fill_row(conn, region, &region->rows[i]);
        }
    }
    IDEM__CRASH_POINT("sqlite/compact/filled");
    return rc;
}

static int set_due(struct idem__conn *conn, struct idem__region *region,
                   int64_t due)
{
    sqlite3_stmt *stmt = idem__conn_stmt(conn, IDEM__SQL_SPARSE_LATER);

    (void)sqlite3_bind_int64(stmt, 1, region->key);
    (void)sqlite3_bind_int64(stmt, 2, due);
    return idem__conn_run(conn, IDEM__SQL_SPARSE_LATER);
}

static int pack(struct idem__conn *conn, struct idem__region *region)
{
    int rc = read_rows(conn, region);
    int64_t left = (int64_t)(region->bytes_len + region->len * ROW_BYTES);

    if (rc != SQLITE_OK) {
        return rc;
    }
    if (region->deleted < left / 4) {
        return set_due(conn, region, left / 4);
    }
    rc = empty_rows(conn, region);
    rc = rc == SQLITE_OK ? merge_pages(conn, region) : rc;
    rc = rc == SQLITE_OK ? fill_rows(conn, region) : rc;
    return rc == SQLITE_OK
               ? run_with_seq(conn, IDEM__SQL_SPARSE_DONE, region->key)
               : rc;
}

int idem__compact_region(struct idem__conn *conn, struct idem__region *region,
                         bool *ret_did)
{
    int rc = find(conn, region);

    *ret_did = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW) {
        region->len = 0;
        region->bytes_len = 0;
        rc = pack(conn, region);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
