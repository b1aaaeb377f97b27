/* Reads rows without trust in the server: checks each length, the head against its
 * checksum, and the columns beside it against the head. */
#include "postgres/task_request.h"

#include "base/bytes.h"
#include "core/decide.h"
#include "core/error.h"
#include "postgres/params.h"
#include "queue/op.h"

#include <assert.h>
#include <string.h>

/* The columns, as sql.c selects them. */
enum {
    ID,
    SCOPE,
    KEY,
    STATUS,
    DEADLINE,
    TAG,
    HEAD,
    RESULT,
    INPUT,
    COLUMNS,
};

_Static_assert((int)COLUMNS == (int)IDEM__PG_ROW_TIME,
               "task_request.h says the same");

static bool read_bytes(const PGresult *result, int row, int column, Oid type,
                       struct idem_slice *ret_bytes)
{
    if (row >= PQntuples(result) || column >= PQnfields(result) ||
        PQftype(result, column) != type || PQfformat(result, column) != 1 ||
        PQgetisnull(result, row, column)) {
        *ret_bytes = idem_bytes(NULL, 0);
        return false;
    }
    *ret_bytes = idem_bytes(PQgetvalue(result, row, column),
                            (size_t)PQgetlength(result, row, column));
    return true;
}

bool idem__pg_bytes(const PGresult *result, int row, int column,
                    struct idem_slice *ret_bytes)
{
    return read_bytes(result, row, column, IDEM__PG_BYTEA, ret_bytes);
}

bool idem__pg_text(const PGresult *result, int row, int column,
                   struct idem_slice *ret_text)
{
    return read_bytes(result, row, column, IDEM__PG_TEXT, ret_text);
}

static bool read_i64(const PGresult *result, int row, int column, Oid type,
                     int64_t *ret_number)
{
    if (row >= PQntuples(result) || column >= PQnfields(result) ||
        PQftype(result, column) != type || PQfformat(result, column) != 1 ||
        PQgetisnull(result, row, column) ||
        PQgetlength(result, row, column) != 8) {
        return false;
    }
    *ret_number = (int64_t)idem__get_u64(
        (const uint8_t *)PQgetvalue(result, row, column));
    return true;
}

bool idem__pg_number(const PGresult *result, int row, int column,
                     int64_t *ret_number)
{
    return read_i64(result, row, column, IDEM__PG_INT8, ret_number);
}

bool idem__pg_time(const PGresult *result, int row, int column, int64_t *ret_ms)
{
    const int64_t since_2000 =
        946684800000; /* The server sends microseconds since then. */
    int64_t us;

    if (!read_i64(result, row, column, IDEM__PG_TIMESTAMPTZ, &us)) {
        return false;
    }
    *ret_ms = us / 1000 - (us % 1000 < 0) + since_2000;
    return true;
}

bool idem__pg_row_id(const PGresult *result, int row,
                     uint8_t ret_id[IDEM_ID_LEN])
{
    struct idem_slice id;

    if (!idem__pg_bytes(result, row, ID, &id) || id.len != IDEM_ID_LEN) {
        return false;
    }
    memcpy(ret_id, id.base, IDEM_ID_LEN);
    return true;
}

bool idem__pg_row_deadline(const PGresult *result, int row,
                           int64_t *ret_deadline_ms)
{
    return idem__pg_number(result, row, DEADLINE, ret_deadline_ms);
}

static int corrupt(struct idem_error *error, const char *why)
{
    return idem__error(error, IDEM_ECORRUPT, "the record cannot be trusted: %s",
                       why);
}

static int read_names(const PGresult *result, int row,
                      struct idem_record *record, struct idem_error *error)
{
    uint8_t id[IDEM_ID_LEN];
    int rc;

    if (!idem__pg_bytes(result, row, SCOPE, &record->scope) ||
        !idem__pg_bytes(result, row, KEY, &record->key) ||
        record->scope.len > IDEM_SCOPE_MAX || record->key.len > IDEM_KEY_MAX ||
        record->key.len == 0) {
        record->scope.len = 0;
        record->key.len = 0;
        return corrupt(error, "it has no scope or no key");
    }
    rc = idem_id(record->scope, record->key, id);
    if (rc == 0 && memcmp(id, record->id, IDEM_ID_LEN) != 0) {
        return corrupt(error, "its scope and key do not match it");
    }
    return rc == 0 ? 0 : idem__error_plain(error, rc);
}

static int read_head(const PGresult *result, int row,
                     struct idem__pg_row *ret_row, struct idem_error *error)
{
    struct idem_record record;
    struct idem_slice head;
    struct idem_slice tag;
    int64_t status;
    int64_t deadline;
    int rc;

    if (!idem__pg_bytes(result, row, HEAD, &head) ||
        !idem__pg_bytes(result, row, TAG, &tag) ||
        !idem__pg_number(result, row, STATUS, &status) ||
        !idem__pg_number(result, row, DEADLINE, &deadline)) {
        return corrupt(error, "a column of it is missing");
    }
    rc = idem__record_decode(ret_row->record.id, head, &record, error);
    if (rc != 0) {
        return rc;
    }
    record.scope = ret_row->record.scope;
    record.key = ret_row->record.key;
    if (tag.len != IDEM__PG_TAG_LEN ||
        memcmp(tag.base,
               (const uint8_t *)head.base + head.len - IDEM__PG_TAG_LEN,
               IDEM__PG_TAG_LEN) != 0 ||
        status != (int64_t)record.status ||
        deadline != idem__deadline(&record)) {
        return corrupt(error, "its columns do not match it");
    }
    memcpy(ret_row->tag, tag.base, IDEM__PG_TAG_LEN);
    ret_row->record = record;
    ret_row->head = head;
    return 0;
}

/* A body that did not come with its row, although the record says that there is one, is too
 * long for that, or missing. A caller that needs it loads it, and
 * idem__verb_check_bodies() reports what is wrong. */
static void read_bodies(const PGresult *result, int row,
                        struct idem__pg_row *ret_row)
{
    bool has_result = idem__pg_bytes(result, row, RESULT, &ret_row->result) ||
                      ret_row->record.result_len == 0;
    bool has_input = idem__pg_bytes(result, row, INPUT, &ret_row->input) ||
                     ret_row->record.input_len == 0;

    ret_row->has_bodies = has_result && has_input;
}

int idem__pg_row_read(const PGresult *result, int row,
                      struct idem__pg_row *ret_row,
                      struct idem_error *ret_error)
{
    int rc;

    memset(ret_row, 0, sizeof(*ret_row));
    if (PQnfields(result) < COLUMNS ||
        !idem__pg_row_id(result, row, ret_row->record.id)) {
        return corrupt(ret_error, "it has no identity");
    }
    rc = read_names(result, row, &ret_row->record, ret_error);
    rc = rc == 0 ? read_head(result, row, ret_row, ret_error) : rc;
    if (rc == 0) {
        read_bodies(result, row, ret_row);
    }
    return rc;
}

static struct idem_slice copy(struct idem_slice from, struct idem__buffer *to)
{
    size_t at = to->len;

    idem__buffer_add(to, from.base, from.len);
    return idem_bytes(to->base + at, from.len);
}

int idem__pg_row_keep(struct idem__pg_row *row, struct idem__buffer *memory)
{
    size_t record_len = idem__op_record_len(&row->record);
    size_t size = record_len + row->head.len + row->result.len + row->input.len;

    memory->len = 0;
    /* Get all the memory at once: if it grew later, it would move the first slices. */
    if (idem__buffer_room(memory, size) == NULL) {
        return IDEM_ENOMEM;
    }
    idem__op_copy_record(&row->record, memory->base);
    memory->len = record_len;
    row->head = copy(row->head, memory);
    row->result = copy(row->result, memory);
    row->input = copy(row->input, memory);
    assert(memory->len == size);
    return 0;
}
