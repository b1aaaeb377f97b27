/* Loads and saves records in the table, for the engine. */
#include "store/sqlite/conn.h"

#include "base/crash.h"
#include "core/decide.h"
#include "core/error.h"

#include <assert.h>
#include <idem/operator.h>

enum column {
    COLUMN_SEQ,
    COLUMN_STATUS,
    COLUMN_DEADLINE,
    COLUMN_SCOPE,
    COLUMN_KEY,
    COLUMN_HEAD,
    COLUMN_RESULT,
    COLUMN_INPUT,
};

/* IDEM_ECORRUPT, with the sentence for columns that do not match. */
static int row_differs(struct idem_error *error)
{
    return idem__error(error, IDEM_ECORRUPT,
                       "the record cannot be trusted: its columns do not match "
                       "it");
}

/* The columns beside the head are for SQL. If a person changed them by hand, the record
 * is refused: IDEM_ECORRUPT if they do not match @record, decoded from the head. */
static int row_check(const struct idem_record *record, int64_t status,
                     int64_t deadline, struct idem_error *error)
{
    if (status == IDEM__CLAIMED) {
        status = IDEM_STATUS_IN_PROGRESS;
    }
    return status == (int64_t)record->status &&
                   deadline == idem__deadline(record)
               ? 0
               : row_differs(error);
}

static size_t len_of(sqlite3_stmt *stmt, enum column column)
{
    return (size_t)sqlite3_column_bytes(stmt, (int)column);
}

static struct idem_slice blob(sqlite3_stmt *stmt, enum column column)
{
    const void *base = sqlite3_column_blob(stmt, (int)column);

    return idem_bytes(base, len_of(stmt, column));
}

/* Decodes a row. Does not check that @id is the hash of scope and key. */
static int decode(sqlite3_stmt *stmt, const uint8_t *id,
                  struct idem_record *ret_record, struct idem_error *error)
{
    int rc =
        idem__record_decode(id, blob(stmt, COLUMN_HEAD), ret_record, error);

    ret_record->scope = blob(stmt, COLUMN_SCOPE);
    ret_record->key = blob(stmt, COLUMN_KEY);
    return rc != 0
               ? rc
               : row_check(ret_record,
                           sqlite3_column_int64(stmt, COLUMN_STATUS),
                           sqlite3_column_int64(stmt, COLUMN_DEADLINE), error);
}

int idem__row_decode(sqlite3_stmt *stmt, const uint8_t *id,
                     struct idem_record *ret_record, struct idem_error *error)
{
    uint8_t names_id[IDEM_ID_LEN];
    int rc;

    memset(ret_record, 0, sizeof(*ret_record));
    rc = decode(stmt, id, ret_record, error);
    memcpy(ret_record->id, id, IDEM_ID_LEN);
    if (rc == 0 &&
        (idem_id(ret_record->scope, ret_record->key, names_id) != 0 ||
         memcmp(names_id, id, sizeof(names_id)) != 0)) {
        rc = row_differs(error);
    }
    return rc;
}

int idem__row_bodies(sqlite3_stmt *stmt, struct idem_record *record,
                     struct idem_error *error)
{
    record->result.bytes = blob(stmt, COLUMN_RESULT);
    record->input = blob(stmt, COLUMN_INPUT);
    return idem__verb_check_bodies(record, error);
}

/* True if the record of @id was loaded last, and is so small that its bodies came
 * along. */
static bool is_at_hand(const struct idem__sqlite_table *table,
                       const uint8_t *id)
{
    return table->row != NULL &&
           memcmp(table->record.id, id, IDEM_ID_LEN) == 0 &&
           len_of(table->row, COLUMN_RESULT) == table->record.result_len &&
           len_of(table->row, COLUMN_INPUT) == table->record.input_len;
}

static int load(void *ctx, const uint8_t *id, bool with_bodies,
                struct idem_record *ret_record, struct idem_error *ret_error)
{
    struct idem__sqlite_table *table = ctx;
    sqlite3_stmt *stmt;
    int rc;

    if (with_bodies && is_at_hand(table, id)) {
        *ret_record = table->record;
        rc = idem__row_bodies(table->row, ret_record, ret_error);
        return rc == 0 ? 1 : rc;
    }
    table->row = NULL;
    stmt = idem__conn_stmt(table->conn, with_bodies ? IDEM__SQL_LOAD_BODIES
                                                    : IDEM__SQL_LOAD);
    (void)sqlite3_bind_blob(stmt, 1, id, IDEM_ID_LEN, SQLITE_STATIC);
    rc = idem__conn_step(table->conn, stmt);
    if (rc == SQLITE_DONE) {
        (void)sqlite3_reset(stmt);
        return 0;
    }
    if (rc != SQLITE_ROW) {
        return idem__conn_fail(table->conn, rc, "read the record", ret_error);
    }
    table->seq = sqlite3_column_int64(stmt, COLUMN_SEQ);
    rc = decode(stmt, id, ret_record, ret_error);
    if (rc == 0 && with_bodies) {
        rc = idem__row_bodies(stmt, ret_record, ret_error);
    } else if (rc == 0) {
        table->row = stmt;
        table->record = *ret_record;
    }
    return rc == 0 ? 1 : rc;
}

static int bind(sqlite3_stmt *stmt, int at, struct idem_slice s)
{
    return sqlite3_bind_blob64(stmt, at, s.len > 0 ? s.base : "", s.len,
                               SQLITE_STATIC);
}

/* Binds a missing body as NULL, so that it takes no room. */
static int bind_body(sqlite3_stmt *stmt, int at, struct idem_slice s)
{
    return s.len > 0 ? bind(stmt, at, s) : SQLITE_OK;
}

static int bind_all(sqlite3_stmt *stmt, const struct idem_record *next,
                    struct idem_slice head, bool inserts)
{
    bool claims = inserts && next->status == IDEM_STATUS_IN_PROGRESS;
    int rc =
        sqlite3_bind_int(stmt, 2, claims ? IDEM__CLAIMED : (int)next->status);

    rc = rc != SQLITE_OK ? rc
                         : sqlite3_bind_int64(stmt, 3, idem__deadline(next));
    rc = rc != SQLITE_OK ? rc : bind(stmt, 6, head);
    return rc;
}

static int bind_insert(sqlite3_stmt *stmt, const struct idem_record *next)
{
    int rc = sqlite3_bind_blob(stmt, 1, next->id, IDEM_ID_LEN, SQLITE_STATIC);

    rc = rc != SQLITE_OK ? rc : bind(stmt, 4, next->scope);
    rc = rc != SQLITE_OK ? rc : bind(stmt, 5, next->key);
    return rc;
}

static enum idem__sql write_for(const struct idem_decision *decision)
{
    if (decision->change == IDEM_CHANGE_INSERT) {
        return IDEM__SQL_INSERT;
    }
    if (decision->set_input) {
        return decision->set_result ? IDEM__SQL_UPDATE_ALL
                                    : IDEM__SQL_UPDATE_INPUT;
    }
    return decision->set_result ? IDEM__SQL_UPDATE_RESULT
                                : IDEM__SQL_UPDATE_HEAD;
}

/* After an insert, puts older claims into the index (IDEM__CLAIMED). */
static int enter_claims(struct idem__conn *conn)
{
    int64_t seq = sqlite3_last_insert_rowid(conn->db);

    return seq % IDEM__ENTER_ROWS == 0
               ? IDEM__CONN_RUN(conn, IDEM__SQL_ENTER,
                                seq - (int64_t)2 * IDEM__ENTER_ROWS,
                                seq - (int64_t)IDEM__ENTER_ROWS)
               : SQLITE_OK;
}

static int write_row(struct idem__sqlite_table *table,
                     const struct idem_decision *decision, size_t head_len)
{
    const struct idem_record *next = &decision->next;
    enum idem__sql sql = write_for(decision);
    sqlite3_stmt *stmt = idem__conn_stmt(table->conn, sql);
    bool inserts = sql == IDEM__SQL_INSERT;
    int rc = bind_all(stmt, next, idem_bytes(table->head, head_len), inserts);

    if (rc == SQLITE_OK) {
        rc = inserts ? bind_insert(stmt, next)
                     : sqlite3_bind_int64(stmt, 1, table->seq);
    }
    if (rc == SQLITE_OK && (inserts || decision->set_result)) {
        rc = bind_body(stmt, 7, next->result.bytes);
    }
    if (rc == SQLITE_OK && (inserts || decision->set_input)) {
        rc = bind_body(stmt, 8, next->input);
    }
    rc = rc == SQLITE_OK ? idem__conn_run(table->conn, sql) : rc;
    IDEM__CRASH_POINT(inserts                        ? "sqlite/table/inserted"
                      : sql == IDEM__SQL_UPDATE_HEAD ? "sqlite/table/head-set"
                      : sql == IDEM__SQL_UPDATE_RESULT
                          ? "sqlite/table/result-set"
                          : "sqlite/table/all-set");
    /* Note the failure in the same transaction, so that the list of failures never lacks
     * one. */
    if (rc == SQLITE_OK && table->notes_failed && idem_outcome_failed(next)) {
        int64_t seq =
            inserts ? sqlite3_last_insert_rowid(table->conn->db) : table->seq;

        rc = IDEM__CONN_RUN(table->conn, IDEM__SQL_NOTE_FAILED, seq);
    }
    return rc == SQLITE_OK && inserts ? enter_claims(table->conn) : rc;
}

static int save(void *ctx, const struct idem_decision *decision,
                struct idem_error *ret_error)
{
    struct idem__sqlite_table *table = ctx;
    size_t head_len;
    int rc = idem__record_encode(&decision->next, table->head, IDEM_HEAD_MAX,
                                 &head_len);

    if (rc != 0) {
        return idem__error_plain(ret_error, rc);
    }
    rc = write_row(table, decision, head_len);
    if (rc != SQLITE_OK) {
        table->sqlite_rc = rc;
        return idem__conn_fail(table->conn, rc, "write the record", ret_error);
    }
    /* Processes may replay the completed record from memory: this commit must end
     * that. */
    table->ends_replays |= decision->change == IDEM_CHANGE_REPLACE &&
                           table->record.status == IDEM_STATUS_COMPLETED;
    return 0;
}

bool idem__sqlite_write_failed(struct idem__sqlite_table *table,
                               struct idem_op *op, int sqlite_rc,
                               const char *doing)
{
    table->sqlite_rc = sqlite_rc;
    (void)idem__conn_fail(table->conn, sqlite_rc, doing, &op->error);
    return false;
}

void idem__sqlite_table_reset(struct idem__sqlite_table *table)
{
    table->row = NULL;
    idem__conn_reset(table->conn, IDEM__SQL_LOAD);
    idem__conn_reset(table->conn, IDEM__SQL_LOAD_BODIES);
}

struct idem_table idem__sqlite_table_of(struct idem__sqlite_table *table)
{
    return (struct idem_table){.load = load, .save = save, .ctx = table};
}
