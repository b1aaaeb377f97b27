/* The indexes of the records, and how their entries are read. */
#include "store/sqlite/scan.h"

#include <stdio.h>

enum {
    SQL_MAX = 1024
};

/* The columns, and their names with that of the number of the row. */
static int read_columns(struct idem__conn *conn, struct idem__scan_index *index,
                        char names[SQL_MAX], bool *ret_known)
{
    sqlite3_stmt *stmt = NULL;
    size_t len = 0;
    int n = 0;
    int rc = sqlite3_prepare_v2(conn->db,
                                "SELECT name, desc, coll FROM "
                                "pragma_index_xinfo(?1) WHERE key = 1 "
                                "ORDER BY seqno",
                                -1, &stmt, NULL);

    *ret_known = true;
    if (rc == SQLITE_OK) {
        rc = sqlite3_bind_text(stmt, 1, index->name, -1, SQLITE_STATIC);
    }
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
        const char *order = (const char *)sqlite3_column_text(stmt, 2);
        int column = name == NULL ? -1 : idem__scan_column(name);

        rc = SQLITE_OK;
        if (column < 0 || n == IDEM__SCAN_COLUMNS_MAX ||
            sqlite3_column_int(stmt, 1) != 0 || order == NULL ||
            strcmp(order, "BINARY") != 0) {
            *ret_known = false;
        } else {
            len += (size_t)snprintf(names + len, SQL_MAX - len, "%s, ", name);
            index->columns[n] = column;
            index->own[n] = n;
            n++;
        }
    }
    (void)sqlite3_finalize(stmt);
    index->columns[n] = IDEM__SCAN_COLUMN_SEQ;
    index->own[n] = n;
    index->columns_len = n + 1;
    (void)snprintf(names + len, SQL_MAX - len, "seq");
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int prepare(struct idem__conn *conn, const char *sql,
                   sqlite3_stmt **ret_stmt)
{
    return sqlite3_prepare_v2(conn->db, sql, -1, ret_stmt, NULL);
}

/* "?1, ?2, ?3" for @n. */
static void parameters(int n, char text[64])
{
    size_t len = 0;
    int i;

    for (i = 1; i <= n; i++) {
        len += (size_t)snprintf(text + len, 64 - len, "%s?%d",
                                i == 1 ? "" : ", ", i);
    }
}

/* "a = ?1 AND b > ?2" for @n of its columns. */
static void condition(const struct idem__scan_index *index, int n,
                      char text[SQL_MAX])
{
    size_t len = 0;
    int i;

    for (i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, SQL_MAX - len, "%s%s %s ?%d",
                                i == 0 ? "" : " AND ",
                                idem__scan_column_name(index->columns[i]),
                                i == n - 1 ? ">" : "=", i + 1);
    }
}

static int prepare_all(struct idem__conn *conn, struct idem__scan_index *index,
                       const char *names)
{
    char marks[64];
    char where[SQL_MAX];
    char sql[4 * SQL_MAX];
    int rc;
    int n;

    parameters(index->columns_len, marks);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT %s FROM idem_record INDEXED BY \"%s\" ORDER BY %s",
                   names, index->name, names);
    rc = prepare(conn, sql, &index->first);
    for (n = index->columns_len; rc == SQLITE_OK && n > 0; n--) {
        condition(index, n, where);
        (void)snprintf(sql, sizeof(sql),
                       "SELECT %s FROM idem_record INDEXED BY \"%s\" "
                       "WHERE %s ORDER BY %s",
                       names, index->name, where, names);
        rc = prepare(conn, sql, &index->after[index->columns_len - n]);
    }
    (void)snprintf(sql, sizeof(sql),
                   "SELECT 1 FROM idem_record INDEXED BY \"%s\" "
                   "WHERE (%s) = (%s)",
                   index->name, names, marks);
    rc = rc == SQLITE_OK ? prepare(conn, sql, &index->entry) : rc;
    (void)snprintf(sql, sizeof(sql),
                   "SELECT %s FROM idem_record NOT INDEXED WHERE seq = ?1",
                   names);
    return rc == SQLITE_OK ? prepare(conn, sql, &index->row) : rc;
}

static int add(struct idem__conn *conn, struct idem__scan_indexes *indexes,
               const char *name, bool is_partial)
{
    struct idem__scan_index *index = &indexes->at[indexes->len];
    char names[SQL_MAX];
    bool known = false;
    int rc = SQLITE_OK;

    if (indexes->len < IDEM__SCAN_INDEXES_MAX && !is_partial &&
        strlen(name) < sizeof(index->name) && strchr(name, '"') == NULL) {
        (void)strcpy(index->name, name);
        rc = read_columns(conn, index, names, &known);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (!known) {
        (void)snprintf(indexes->unknown, sizeof(indexes->unknown), "%s", name);
        return SQLITE_OK;
    }
    indexes->len++;
    return prepare_all(conn, index, names);
}

int idem__scan_indexes_read(struct idem__conn *conn,
                            struct idem__scan_indexes *ret_indexes)
{
    sqlite3_stmt *stmt = NULL;
    int rc;

    memset(ret_indexes, 0, sizeof(*ret_indexes));
    rc = prepare(conn,
                 "SELECT name, partial FROM pragma_index_list('idem_record') "
                 "ORDER BY name",
                 &stmt);
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = add(conn, ret_indexes, (const char *)sqlite3_column_text(stmt, 0),
                 sqlite3_column_int(stmt, 1) != 0);
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void idem__scan_indexes_finish(struct idem__scan_indexes *indexes)
{
    int i;
    int n;

    for (i = 0; i < indexes->len; i++) {
        (void)sqlite3_finalize(indexes->at[i].first);
        for (n = 0; n <= IDEM__SCAN_COLUMNS_MAX; n++) {
            (void)sqlite3_finalize(indexes->at[i].after[n]);
        }
        (void)sqlite3_finalize(indexes->at[i].entry);
        (void)sqlite3_finalize(indexes->at[i].row);
    }
    memset(indexes, 0, sizeof(*indexes));
}
