/* Statements over rows in memory. */
#include "pg_table.h"

#include "base/bytes.h"
#include "contract/parts.h"
#include "core/decide.h"
#include "postgres/params.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct pg_failure pg_failures[] = {
    {"40001", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
    {"40P01", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
    {"55P03", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
    {"57014", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
    {"53300", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
    {"25006", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
    {"58030", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
    {"53100", IDEM__SAID_NEVER, IDEM_EFULL},
    {"42501", IDEM__SAID_NEVER, IDEM_EDENIED},
    {"42P01", IDEM__SAID_NEVER, IDEM_ECONFIG},
    {"23514", IDEM__SAID_NEVER, IDEM_ECONFIG},
    /* After this the connection is unusable. */
    {"57P01", IDEM__SAID_UNKNOWN, IDEM_EUNAVAILABLE},
};
const size_t pg_failures_len = sizeof(pg_failures) / sizeof(pg_failures[0]);

const struct pg_failure *pg_failure(const char *state)
{
    size_t i = 0;

    while (strcmp(pg_failures[i].state, state) != 0) {
        i++;
        assert(i < pg_failures_len);
    }
    return &pg_failures[i];
}

/* ---- Bytes ---- */

static void set_bytes(struct pg_bytes *to, const void *base, size_t len)
{
    if (len > to->cap) {
        free(to->base);
        to->base = malloc(len);
        assert(to->base != NULL);
        to->cap = len;
    }
    if (len > 0) {
        memcpy(to->base, base, len);
    }
    to->len = len;
    to->is_null = false;
}

static void copy_bytes(struct pg_bytes *to, const struct pg_bytes *from)
{
    set_bytes(to, from->base, from->len);
    to->is_null = from->is_null;
}

static void set_body(struct pg_bytes *to, bool set, struct idem_slice body)
{
    set_bytes(to, body.base, set ? body.len : 0);
    to->is_null = to->len == 0;
}

static void copy_version(struct pg_version *to, const struct pg_version *from)
{
    to->exists = from->exists;
    if (!from->exists) {
        return;
    }
    memcpy(to->nonce, from->nonce, sizeof(to->nonce));
    memcpy(to->tag, from->tag, sizeof(to->tag));
    to->fence = from->fence;
    to->status = from->status;
    to->deadline = from->deadline;
    copy_bytes(&to->scope, &from->scope);
    copy_bytes(&to->key, &from->key);
    copy_bytes(&to->head, &from->head);
    copy_bytes(&to->result, &from->result);
    copy_bytes(&to->input, &from->input);
}

static void free_version(struct pg_version *version)
{
    free(version->scope.base);
    free(version->key.base);
    free(version->head.base);
    free(version->result.base);
    free(version->input.base);
}

/* ---- The table ---- */

void pg_table_init(struct pg_table *table)
{
    memset(table, 0, sizeof(*table));
    table->result_inline = IDEM__PG_RESULT_INLINE;
    table->input_inline = IDEM__PG_INPUT_INLINE;
}

void pg_table_clear(struct pg_table *table)
{
    size_t i;

    for (i = 0; i < PG_ROWS_MAX; i++) {
        table->rows[i].used = false;
        table->rows[i].now.exists = false;
        table->rows[i].holder = NULL;
    }
    for (i = 0; i < PG_WINDOWS_MAX; i++) {
        table->windows[i].used = false;
        table->windows[i].now.exists = false;
        table->windows[i].holder = NULL;
    }
    table->fence_floor = 0;
    table->floor_holder = NULL;
    table->sharers = 0;
    table->waiter = NULL;
    table->transactions = 0;
}

void pg_table_finish(struct pg_table *table)
{
    size_t i;

    for (i = 0; i < PG_ROWS_MAX; i++) {
        free_version(&table->rows[i].now);
        free_version(&table->rows[i].next);
    }
    memset(table, 0, sizeof(*table));
}

/* Returns the row of @id, which it makes if there is none. */
static struct pg_row *row_of(struct pg_table *table, const uint8_t *id)
{
    size_t i;

    for (i = 0; i < PG_ROWS_MAX; i++) {
        struct pg_row *row = &table->rows[i];

        if (row->used && memcmp(row->id, id, IDEM_ID_LEN) == 0) {
            return row;
        }
    }
    for (i = 0; i < PG_ROWS_MAX; i++) {
        struct pg_row *row = &table->rows[i];

        if (!row->used) {
            row->used = true;
            row->now.exists = false;
            row->holder = NULL;
            memcpy(row->id, id, IDEM_ID_LEN);
            return row;
        }
    }
    assert(!"too many rows");
    return NULL;
}

struct pg_version *pg_table_row(struct pg_table *table,
                                const uint8_t id[IDEM_ID_LEN])
{
    struct pg_row *row = row_of(table, id);

    return row->now.exists ? &row->now : NULL;
}

bool pg_table_holds(struct pg_table *table, const uint8_t id[IDEM_ID_LEN])
{
    return row_of(table, id)->holder != NULL;
}

/* What @tx sees of @row. */
static const struct pg_version *visible(const struct pg_tx *tx,
                                        const struct pg_row *row)
{
    return row->holder == tx ? &row->next : &row->now;
}

bool pg_sees(const struct pg_tx *tx, const uint8_t id[IDEM_ID_LEN])
{
    return visible(tx, row_of(tx->table, id))->exists;
}

static bool is_free(const struct pg_tx *tx, const struct pg_row *row)
{
    return row->holder == NULL || row->holder == tx;
}

static void hold(struct pg_tx *tx, struct pg_row *row)
{
    if (row->holder != tx) {
        copy_version(&row->next, &row->now);
        row->holder = tx;
    }
}

bool pg_lock(struct pg_tx *tx, const uint8_t id[IDEM_ID_LEN])
{
    struct pg_row *row = row_of(tx->table, id);

    if (!row->now.exists || row->holder != NULL) {
        return false;
    }
    hold(tx, row);
    return true;
}

/* Shares the lock on idem_store, as claims and RAISE do. False: another transaction has it
 * alone. */
static bool share(struct pg_tx *tx)
{
    struct pg_table *table = tx->table;

    if (table->waiter != NULL && table->waiter != tx) {
        return false;
    }
    table->sharers += !tx->shares;
    tx->shares = true;
    return true;
}

static int64_t floor_seen(const struct pg_tx *tx)
{
    return tx->table->floor_holder == tx ? tx->floor_next
                                         : tx->table->fence_floor;
}

/* ---- Results ---- */

enum {
    ROW_COLUMNS = IDEM__PG_ROW_TIME + 1
};

static PGresult *make_result(const Oid *types, int n)
{
    PGresAttDesc columns[ROW_COLUMNS];
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    static char name[] = "c";
    int i;

    assert(result != NULL && n <= ROW_COLUMNS);
    memset(columns, 0, sizeof(columns));
    for (i = 0; i < n; i++) {
        columns[i].name = name;
        columns[i].typid = types[i];
        columns[i].format = 1;
        columns[i].typlen =
            types[i] == IDEM__PG_INT8 || types[i] == IDEM__PG_TIMESTAMPTZ ? 8
                                                                          : -1;
        columns[i].atttypmod = -1;
    }
    (void)PQsetResultAttrs(result, n, columns);
    return result;
}

static PGresult *keep(struct pg_tx *tx, enum idem__pg_sql sql,
                      struct idem__pg_request *request, PGresult *result)
{
    assert(tx->steps_len < PG_STEPS_MAX);
    tx->steps[tx->steps_len++] = (struct pg_step){sql, request, result};
    return result;
}

static void put(PGresult *result, int row, int column, const void *base,
                size_t len)
{
    static char none[] = "";
    char *value = len == 0 ? none : (char *)(uintptr_t)base;

    (void)PQsetvalue(result, row, column, value, (int)len);
}

static void put_null(PGresult *result, int row, int column)
{
    (void)PQsetvalue(result, row, column, NULL, -1);
}

static void put_number(PGresult *result, int row, int column, int64_t number)
{
    uint8_t bytes[8];

    idem__put_u64(bytes, (uint64_t)number);
    put(result, row, column, bytes, sizeof(bytes));
}

static void put_bytes(PGresult *result, int row, int column,
                      const struct pg_bytes *bytes, size_t most)
{
    if (bytes->is_null || bytes->len > most) {
        put_null(result, row, column);
    } else {
        put(result, row, column, bytes->base, bytes->len);
    }
}

static PGresult *make_rows(void)
{
    static const Oid types[ROW_COLUMNS] = {
        IDEM__PG_BYTEA, IDEM__PG_BYTEA,      IDEM__PG_BYTEA, IDEM__PG_INT8,
        IDEM__PG_INT8,  IDEM__PG_BYTEA,      IDEM__PG_BYTEA, IDEM__PG_BYTEA,
        IDEM__PG_BYTEA, IDEM__PG_TIMESTAMPTZ};

    return make_result(types, ROW_COLUMNS);
}

/* One row, as ROW of sql.c, or with bodies. */
static void add_row(const struct pg_table *table, PGresult *result,
                    const uint8_t *id, const struct pg_version *version,
                    bool with_bodies)
{
    int row = PQntuples(result);
    int i = 0;

    put(result, row, i++, id, IDEM_ID_LEN);
    put_bytes(result, row, i++, &version->scope, SIZE_MAX);
    put_bytes(result, row, i++, &version->key, SIZE_MAX);
    put_number(result, row, i++, version->status);
    put_number(result, row, i++, version->deadline);
    put(result, row, i++, version->tag, sizeof(version->tag));
    put_bytes(result, row, i++, &version->head, SIZE_MAX);
    if (with_bodies) {
        put_bytes(result, row, i++, &version->result, table->result_inline);
        put_bytes(result, row, i++, &version->input, table->input_inline);
    } else {
        put_null(result, row, i++);
        put_null(result, row, i++);
    }
    put_number(result, row, i++,
               (table->now_ms - INT64_C(946684800000)) * 1000);
}

/* Puts the present time into the answer. */
static void tell(struct pg_tx *tx)
{
    assert(tx->told_len < PG_TOLD_MAX);
    tx->told_ms[tx->told_len++] = tx->table->now_ms;
}

static void tell_floor(struct pg_tx *tx)
{
    tx->fence_floor = tx->table->fence_floor;
    tx->tells_floor = true;
}

static void tell_with_rows(struct pg_tx *tx, const PGresult *result)
{
    if (PQntuples(result) > 0) {
        tell(tx);
    }
}

static void put_count(struct pg_tx *tx, enum idem__pg_sql sql,
                      struct idem__pg_request *request, int64_t n)
{
    static const Oid type = IDEM__PG_INT8;

    put_number(keep(tx, sql, request, make_result(&type, 1)), 0, 0, n);
}

/* ---- Lists and purges ---- */

static int compare_rows(const struct pg_row *a, const struct pg_row *b,
                        const struct pg_tx *tx, bool by_deadline)
{
    int64_t left = visible(tx, a)->deadline;
    int64_t right = visible(tx, b)->deadline;

    if (by_deadline && left != right) {
        return left < right ? -1 : 1;
    }
    return memcmp(a->id, b->id, IDEM_ID_LEN);
}

static bool is_listed(const struct idem__pg_request *request,
                      const struct pg_row *row,
                      const struct pg_version *version)
{
    bool by_status = request->ask == IDEM__PG_ASK_LIST_STATUS;
    bool after =
        request->from_start || memcmp(row->id, request->id, IDEM_ID_LEN) > 0;

    if (!row->used || !version->exists) {
        return false;
    }
    if (!by_status) {
        return after;
    }
    return version->status == request->numbers[0] &&
           (version->deadline > request->numbers[1] ||
            (version->deadline == request->numbers[1] && after)) &&
           version->deadline <= request->numbers[2];
}

static void list(struct pg_tx *tx, struct idem__pg_request *request)
{
    bool by_status = request->ask == IDEM__PG_ASK_LIST_STATUS;
    PGresult *result =
        keep(tx, by_status ? IDEM__PG_LIST_STATUS : IDEM__PG_LIST_ALL, request,
             make_rows());
    const struct pg_row *rows[PG_ROWS_MAX];
    size_t n = 0;
    size_t i;
    size_t j;

    for (i = 0; i < PG_ROWS_MAX; i++) {
        const struct pg_row *row = &tx->table->rows[i];

        if (!is_listed(request, row, visible(tx, row))) {
            continue;
        }
        for (j = n++;
             j > 0 && compare_rows(row, rows[j - 1], tx, by_status) < 0; j--) {
            rows[j] = rows[j - 1];
        }
        rows[j] = row;
    }
    for (i = 0; i < n && (int64_t)i < request->limit; i++) {
        add_row(tx->table, result, rows[i]->id, visible(tx, rows[i]),
                /* with_bodies= */ false);
    }
    tell_with_rows(tx, result);
}

/* False: @tx waits for a transaction that raises the floor, or has idem_store alone. */
static bool raise_floor(struct pg_tx *tx, struct idem__pg_request *request)
{
    static const Oid type = IDEM__PG_INT8;
    struct pg_table *table = tx->table;
    PGresult *result;

    if (!share(tx)) {
        return false;
    }
    if (floor_seen(tx) < request->numbers[0] && table->floor_holder != NULL &&
        table->floor_holder != tx) {
        return false;
    }
    result = keep(tx, IDEM__PG_RAISE, request, make_result(&type, 1));
    if (floor_seen(tx) < request->numbers[0]) {
        table->floor_holder = tx;
        tx->floor_next = request->numbers[0];
        put_number(result, 0, 0, ++table->transactions);
    }
    return true;
}

/* False: @tx waits for a transaction that shares idem_store, or has it alone. */
static bool wait_for_claims(struct pg_tx *tx, struct idem__pg_request *request)
{
    struct pg_table *table = tx->table;

    if (table->sharers > tx->shares ||
        (table->waiter != NULL && table->waiter != tx)) {
        return false;
    }
    table->waiter = tx;
    (void)keep(tx, IDEM__PG_WAIT, request, make_result(NULL, 0));
    return true;
}

static void purge(struct pg_tx *tx, struct idem__pg_request *request)
{
    static const Oid types[] = {IDEM__PG_INT8, IDEM__PG_INT8, IDEM__PG_INT8};
    struct pg_table *table = tx->table;
    bool may = floor_seen(tx) >= request->numbers[0];
    PGresult *result;
    int64_t gone = 0;
    size_t i;

    for (i = 0; may && i < request->victims_len; i++) {
        struct pg_row *row = row_of(table, request->victims[i].id);
        const struct pg_version *version = visible(tx, row);

        if (version->exists && is_free(tx, row) &&
            memcmp(version->tag, request->victims[i].tag, IDEM__PG_TAG_LEN) ==
                0) {
            hold(tx, row);
            row->next.exists = false;
            gone++;
        }
    }
    result = keep(tx, IDEM__PG_PURGE, request, make_result(types, 3));
    put_number(result, 0, 0, gone);
    put_number(result, 0, 1, ++table->transactions);
    put_number(result, 0, 2, floor_seen(tx));
}

static void purge_limits(struct pg_tx *tx, struct idem__pg_request *request)
{
    int64_t gone = 0;
    size_t i;

    for (i = 0; i < PG_WINDOWS_MAX && gone < request->limit; i++) {
        struct pg_window *window = &tx->table->windows[i];

        if (window->used && window->holder == NULL && window->now.exists &&
            window->now.expires < request->numbers[0]) {
            window->holder = tx;
            window->next = window->now;
            window->next.exists = false;
            gone++;
        }
    }
    put_count(tx, IDEM__PG_PURGE_LIMITS, request, gone);
}

static void load(struct pg_tx *tx, struct idem__pg_request *request)
{
    static const Oid types[] = {IDEM__PG_BYTEA, IDEM__PG_BYTEA, IDEM__PG_BYTEA};
    PGresult *result = keep(tx, IDEM__PG_LOAD, request, make_result(types, 3));
    const struct pg_version *version =
        visible(tx, row_of(tx->table, request->id));

    if (version->exists) {
        put(result, 0, 0, version->tag, sizeof(version->tag));
        put_bytes(result, 0, 1, &version->result, SIZE_MAX);
        put_bytes(result, 0, 2, &version->input, SIZE_MAX);
    }
}

/* ---- Writes ---- */

static const uint8_t *tag_of(const struct idem__pg_write *write)
{
    return (const uint8_t *)write->head.base + write->head.len -
           IDEM__PG_TAG_LEN;
}

/* The fence that is compared with those of purged records. */
static int64_t above_of(const struct idem__pg_write *write)
{
    return write->old_fence ? INT64_MAX : (int64_t)write->record->fence;
}

static void write_version(struct pg_version *to,
                          const struct idem__pg_write *write, bool insert)
{
    const struct idem_record *record = write->record;

    to->exists = true;
    memcpy(to->nonce, record->nonce, sizeof(to->nonce));
    memcpy(to->tag, tag_of(write), sizeof(to->tag));
    to->fence = (int64_t)record->fence;
    to->status = (int64_t)record->status;
    to->deadline = idem__deadline(record);
    set_bytes(&to->head, write->head.base, write->head.len);
    if (insert) {
        set_bytes(&to->scope, record->scope.base, record->scope.len);
        set_bytes(&to->key, record->key.base, record->key.len);
    }
    if (insert || write->set_result) {
        set_body(&to->result, write->set_result, record->result.bytes);
    }
    if (insert || write->set_input) {
        set_body(&to->input, write->set_input, record->input);
    }
}

static bool takes(const struct pg_table *table,
                  const struct idem__pg_request *later)
{
    return table->takes != NULL && table->takes(table->ctx, later);
}

static bool same_id(const struct idem__pg_request *a,
                    const struct idem__pg_request *b)
{
    return memcmp(a->id, b->id, IDEM_ID_LEN) == 0;
}

/* Returns the request of this statement that has written the row of @request, or NULL. */
static struct idem__pg_request *rival_of(const struct pg_tx *tx,
                                         const struct idem__pg_request *request)
{
    size_t i;

    for (i = 0; i < tx->requests_len; i++) {
        struct idem__pg_request *other = tx->requests[i];

        if (other != request && other->ask == request->ask && other->applied &&
            same_id(other, request)) {
            return other;
        }
    }
    return NULL;
}

static bool has_head(const struct pg_version *version, struct idem_slice head)
{
    return version->exists && version->head.len == head.len &&
           memcmp(version->head.base, head.base, head.len) == 0;
}

static void update_one(struct pg_tx *tx, struct idem__pg_request *request)
{
    struct pg_row *row = row_of(tx->table, request->write.record->id);
    struct idem__pg_request *rival = rival_of(tx, request);

    if (rival != NULL) {
        if (!has_head(&row->now, request->found) ||
            !takes(tx->table, request)) {
            return;
        }
        rival->applied = false;
        copy_version(&row->next, &row->now);
    } else if (!is_free(tx, row) ||
               !has_head(visible(tx, row), request->found)) {
        return;
    }
    hold(tx, row);
    write_version(&row->next, &request->write, /* insert= */ false);
    request->applied = true;
}

static bool is(const struct pg_tx *tx, size_t i, enum idem__pg_ask ask)
{
    return tx->requests[i]->ask == ask;
}

/* The rows that a statement returns have the time. */
static void tell_if_applied(struct pg_tx *tx, enum idem__pg_ask ask)
{
    size_t i = 0;

    while (i < tx->requests_len &&
           !(is(tx, i, ask) && tx->requests[i]->applied)) {
        i++;
    }
    if (i < tx->requests_len) {
        tell(tx);
    }
}

static void update(struct pg_tx *tx)
{
    size_t i;

    for (i = 0; i < tx->requests_len; i++) {
        if (is(tx, i, IDEM__PG_ASK_UPDATE)) {
            update_one(tx, tx->requests[i]);
        }
    }
    tell_if_applied(tx, IDEM__PG_ASK_UPDATE);
}

/* Takes the snapshot that the statement sees. */
static void see_claims(struct pg_tx *tx)
{
    size_t i;

    tx->seen = 0;
    tx->claims_floor = floor_seen(tx);
    for (i = 0; i < tx->requests_len; i++) {
        if (is(tx, i, IDEM__PG_ASK_CLAIM) &&
            visible(tx, row_of(tx->table, tx->requests[i]->write.record->id))
                ->exists) {
            tx->seen |= UINT64_C(1) << i;
        }
    }
}

/* True for a claim whose lease is over by the server's clock; the end is in whole seconds. */
static bool is_late(const struct pg_tx *tx, const struct idem__pg_write *write)
{
    return !write->old_fence &&
           write->record->lease_end_ms / 1000 * 1000 <= tx->table->now_ms;
}

/* False: @tx waits for the transaction that inserts the row. */
static bool claim_one(struct pg_tx *tx, size_t i)
{
    struct idem__pg_request *request = tx->requests[i];
    const struct idem__pg_write *write = &request->write;
    struct pg_row *row = row_of(tx->table, write->record->id);
    struct idem__pg_request *rival = rival_of(tx, request);

    if ((tx->seen & UINT64_C(1) << i) != 0 ||
        above_of(write) <= tx->claims_floor || is_late(tx, write)) {
        return true;
    }
    if (rival != NULL) {
        if (!takes(tx->table, request)) {
            return true;
        }
        rival->applied = false;
        row->next.exists = false;
    }
    if (!is_free(tx, row)) {
        return false;
    }
    if (visible(tx, row)->exists) {
        return true; /* It was committed while this waited. */
    }
    hold(tx, row);
    write_version(&row->next, write, /* insert= */ true);
    request->applied = true;
    return true;
}

/* The index of the claim that comes after @last in the order of ids, or the number of
 * requests; the first for SIZE_MAX. */
static size_t next_claim(const struct pg_tx *tx, size_t last)
{
    size_t best = tx->requests_len;
    size_t i;

    for (i = 0; i < tx->requests_len; i++) {
        int order;

        if (!is(tx, i, IDEM__PG_ASK_CLAIM)) {
            continue;
        }
        if (last != SIZE_MAX) {
            order = memcmp(tx->requests[i]->id, tx->requests[last]->id,
                           IDEM_ID_LEN);
            if (order < 0 || (order == 0 && i <= last)) {
                continue;
            }
        }
        if (best == tx->requests_len ||
            memcmp(tx->requests[i]->id, tx->requests[best]->id, IDEM_ID_LEN) <
                0) {
            best = i;
        }
    }
    return best;
}

static bool begin_claim(struct pg_tx *tx)
{
    if (!share(tx)) {
        return false;
    }
    see_claims(tx);
    tx->part = next_claim(tx, SIZE_MAX) + 1;
    return true;
}

static bool claim(struct pg_tx *tx)
{
    if (tx->part == 0 && !begin_claim(tx)) {
        return false;
    }
    while (tx->part - 1 < tx->requests_len) {
        if (!claim_one(tx, tx->part - 1)) {
            return false;
        }
        tx->part = next_claim(tx, tx->part - 1) + 1;
    }
    tx->part = 0;
    tell_if_applied(tx, IDEM__PG_ASK_CLAIM);
    return true;
}

/* ---- Reads ---- */

static void there(struct pg_tx *tx)
{
    PGresult *result = keep(tx, IDEM__PG_THERE, NULL, make_rows());
    size_t i;

    for (i = 0; i < tx->requests_len; i++) {
        const struct idem__pg_write *write = &tx->requests[i]->write;
        const struct pg_row *row;

        if (!is(tx, i, IDEM__PG_ASK_CLAIM)) {
            continue;
        }
        row = row_of(tx->table, write->record->id);
        if (visible(tx, row)->exists &&
            memcmp(visible(tx, row)->tag, tag_of(write), IDEM__PG_TAG_LEN) !=
                0) {
            add_row(tx->table, result, row->id, visible(tx, row),
                    /* with_bodies= */ true);
        }
    }
    tell_with_rows(tx, result);
}

static void look(struct pg_tx *tx)
{
    PGresult *result = keep(tx, IDEM__PG_LOOK, NULL, make_rows());
    size_t i;
    size_t j;

    for (i = 0; i < PG_ROWS_MAX; i++) {
        const struct pg_row *row = &tx->table->rows[i];
        bool asked = false;

        for (j = 0; j < tx->requests_len; j++) {
            asked = asked ||
                    (is(tx, j, IDEM__PG_ASK_LOOK) &&
                     memcmp(tx->requests[j]->id, row->id, IDEM_ID_LEN) == 0);
        }
        if (row->used && asked && visible(tx, row)->exists) {
            add_row(tx->table, result, row->id, visible(tx, row),
                    /* with_bodies= */ true);
        }
    }
    if (tx->has_setup) {
        tell_with_rows(tx, result);
    } else { /* LOOK_ONE. */
        tell(tx);
        tell_floor(tx);
    }
}

/* ---- Limits ---- */

static struct pg_window *window_of(struct pg_table *table, const uint8_t *id)
{
    size_t i;

    for (i = 0; i < PG_WINDOWS_MAX; i++) {
        struct pg_window *window = &table->windows[i];

        if (!window->used) {
            window->used = true;
            window->now.exists = false;
            window->holder = NULL;
            memcpy(window->id, id, IDEM_ID_LEN);
        }
        if (memcmp(window->id, id, IDEM_ID_LEN) == 0) {
            return window;
        }
    }
    assert(!"too many windows");
    return NULL;
}

static const struct pg_counted *find_counted(const struct pg_count *count,
                                             struct idem_slice request)
{
    size_t i;

    for (i = 0; count->exists && i < count->requests_len; i++) {
        if (memcmp(count->requests[i].request, request.base, 16) == 0) {
            return &count->requests[i];
        }
    }
    return NULL;
}

static void limit_look(struct pg_tx *tx, struct idem__pg_request *request)
{
    static const Oid types[] = {IDEM__PG_INT8, IDEM__PG_INT8, IDEM__PG_INT8};
    PGresult *result =
        keep(tx, IDEM__PG_LIMIT_LOOK, request, make_result(types, 3));
    const struct pg_window *window = window_of(tx->table, request->id);
    const struct pg_count *count =
        window->holder == tx ? &window->next : &window->now;
    const struct pg_counted *counted = find_counted(count, request->request_id);

    if (!count->exists) {
        return;
    }
    put_number(result, 0, 0, count->used);
    put_number(result, 0, 1, count->refusals);
    if (counted != NULL) {
        put_number(result, 0, 2, counted->entry);
    } else {
        put_null(result, 0, 2);
    }
}

/* False: another transaction holds the window. */
static bool limit_count(struct pg_tx *tx, struct idem__pg_request *request)
{
    static const Oid type = IDEM__PG_BYTEA;
    const int64_t *numbers = request->numbers;
    struct pg_window *window = window_of(tx->table, request->id);
    struct pg_count *count;
    PGresult *result;

    if (window->holder != NULL && window->holder != tx) {
        return false;
    }
    result = keep(tx, IDEM__PG_LIMIT_COUNT, request, make_result(&type, 1));
    if (window->holder != tx) {
        window->next = window->now;
        window->holder = tx;
    }
    count = &window->next;
    if (count->exists
            ? count->used != numbers[1] || count->refusals != numbers[2]
            : numbers[1] >= 0) {
        return true;
    }
    if (!count->exists) {
        memset(count, 0, sizeof(*count));
        count->exists = true;
    }
    count->expires = count->expires > numbers[3] ? count->expires : numbers[3];
    count->used = numbers[4];
    count->refusals = numbers[5];
    if (find_counted(count, request->request_id) == NULL) {
        struct pg_counted *counted = &count->requests[count->requests_len++];

        assert(count->requests_len < PG_COUNTED_MAX);
        memcpy(counted->request, request->request_id.base, 16);
        counted->entry = numbers[0];
        put(result, 0, 0, counted->request, sizeof(counted->request));
    }
    return true;
}

/* ---- A batch ---- */

static bool is_of_limits(const struct idem__pg_request *request)
{
    return request->ask == IDEM__PG_ASK_LIMIT_LOOK ||
           request->ask == IDEM__PG_ASK_LIMIT_COUNT;
}

static bool is_of_all(const struct idem__pg_request *request)
{
    return request->ask == IDEM__PG_ASK_LOOK ||
           request->ask == IDEM__PG_ASK_CLAIM ||
           request->ask == IDEM__PG_ASK_UPDATE;
}

static bool has_setup(const struct pg_tx *tx, bool settled)
{
    size_t i;

    if (!settled || (tx->requests_len == 1 && is_of_all(tx->requests[0]))) {
        return !settled;
    }
    for (i = 0; i < tx->requests_len; i++) {
        if (!is(tx, i, IDEM__PG_ASK_CLAIM) && !is(tx, i, IDEM__PG_ASK_UPDATE)) {
            return true;
        }
    }
    return false;
}

void pg_begin(struct pg_tx *tx, struct pg_table *table,
              struct idem__pg_request **requests, size_t n, bool settled,
              bool shows)
{
    size_t i;

    assert(n <= 64);
    memset(tx, 0, offsetof(struct pg_tx, steps));
    tx->steps_len = 0;
    tx->table = table;
    tx->requests = requests;
    tx->requests_len = n;
    tx->sql = IDEM__PG_SETUP;
    tx->shows = shows;
    tx->has_setup = has_setup(tx, settled);
    if (tx->has_setup) {
        tell(tx);
        tell_floor(tx);
    }
    for (i = 0; i < n; i++) {
        requests[i]->applied = false;
    }
}

static bool has(const struct pg_tx *tx, enum idem__pg_ask ask)
{
    size_t i;

    for (i = 0; i < tx->requests_len; i++) {
        if (is(tx, i, ask)) {
            return true;
        }
    }
    return false;
}

/* The order of the statements: one for each request that is a statement of its own, then
 * four for all others, then those of limits. */
enum {
    PLACE_UPDATE,
    PLACE_CLAIM,
    PLACE_THERE,
    PLACE_LOOK,
    PLACES,
};

/* The @n-th request of limits in the order of their windows. */
static struct idem__pg_request *limit_at(const struct pg_tx *tx, size_t n)
{
    size_t i;
    size_t j;

    for (i = 0; i < tx->requests_len; i++) {
        size_t before = 0;

        for (j = 0; j < tx->requests_len; j++) {
            int order =
                memcmp(tx->requests[j]->id, tx->requests[i]->id, IDEM_ID_LEN);

            before += is_of_limits(tx->requests[j]) &&
                      (order < 0 || (order == 0 && j < i));
        }
        if (is_of_limits(tx->requests[i]) && before == n) {
            return tx->requests[i];
        }
    }
    return NULL;
}

/* Moves tx->at on to the next statement of this batch, or to the end. */
static void find_next(struct pg_tx *tx)
{
    static const enum idem__pg_ask asks[PLACES] = {IDEM__PG_ASK_UPDATE,
                                                   IDEM__PG_ASK_CLAIM,
                                                   IDEM__PG_ASK_CLAIM,
                                                   IDEM__PG_ASK_LOOK};
    size_t n = tx->requests_len;

    for (; tx->at < n; tx->at++) {
        if (!is_of_all(tx->requests[tx->at]) &&
            !is_of_limits(tx->requests[tx->at])) {
            return;
        }
    }
    for (; tx->at < n + PLACES; tx->at++) {
        if (has(tx, asks[tx->at - n]) &&
            (tx->shows || tx->at - n != PLACE_THERE)) {
            return;
        }
    }
}

static enum idem__pg_sql sql_of(const struct idem__pg_request *request)
{
    switch (request->ask) {
    case IDEM__PG_ASK_LOAD:
        return IDEM__PG_LOAD;
    case IDEM__PG_ASK_LIST:
        return IDEM__PG_LIST_ALL;
    case IDEM__PG_ASK_LIST_STATUS:
        return IDEM__PG_LIST_STATUS;
    case IDEM__PG_ASK_RAISE:
        return IDEM__PG_RAISE;
    case IDEM__PG_ASK_WAIT:
        return IDEM__PG_WAIT;
    case IDEM__PG_ASK_PURGE:
        return IDEM__PG_PURGE;
    case IDEM__PG_ASK_PURGE_LIMITS:
        return IDEM__PG_PURGE_LIMITS;
    case IDEM__PG_ASK_LIMIT_COUNT:
        return IDEM__PG_LIMIT_COUNT;
    case IDEM__PG_ASK_LIMIT_LOOK:
        return IDEM__PG_LIMIT_LOOK;
    default:
        assert(!"not a statement of its own");
        return IDEM__PG_COMMIT;
    }
}

/* Returns the statement at tx->at, and its request. */
static enum idem__pg_sql find_sql(const struct pg_tx *tx,
                                  struct idem__pg_request **ret_request)
{
    static const enum idem__pg_sql sqls[PLACES] = {IDEM__PG_UPDATE,
                                                   IDEM__PG_CLAIM,
                                                   IDEM__PG_THERE,
                                                   IDEM__PG_LOOK};
    size_t n = tx->requests_len;

    *ret_request = NULL;
    if (tx->at >= n && tx->at < n + PLACES) {
        return sqls[tx->at - n];
    }
    *ret_request =
        tx->at < n ? tx->requests[tx->at] : limit_at(tx, tx->at - n - PLACES);
    return *ret_request == NULL ? IDEM__PG_COMMIT : sql_of(*ret_request);
}

enum idem__pg_sql pg_next(const struct pg_tx *tx)
{
    struct pg_tx ahead = {.requests = tx->requests,
                          .requests_len = tx->requests_len,
                          .shows = tx->shows,
                          .at = tx->at};
    struct idem__pg_request *request;

    find_next(&ahead);
    return find_sql(&ahead, &request);
}

bool pg_begin_claim(struct pg_tx *tx)
{
    assert(pg_next(tx) == IDEM__PG_CLAIM && tx->part == 0);
    find_next(tx);
    return begin_claim(tx);
}

static enum pg_went unless_blocked(bool done)
{
    return done ? PG_RAN : PG_BLOCKED;
}

static enum pg_went run(struct pg_tx *tx)
{
    struct idem__pg_request *request = tx->request;

    switch (tx->sql) {
    case IDEM__PG_LOAD:
        load(tx, request);
        return PG_RAN;
    case IDEM__PG_LIST_ALL:
    case IDEM__PG_LIST_STATUS:
        list(tx, request);
        return PG_RAN;
    case IDEM__PG_RAISE:
        return unless_blocked(raise_floor(tx, request));
    case IDEM__PG_WAIT:
        return unless_blocked(wait_for_claims(tx, request));
    case IDEM__PG_PURGE:
        purge(tx, request);
        return PG_RAN;
    case IDEM__PG_PURGE_LIMITS:
        purge_limits(tx, request);
        return PG_RAN;
    case IDEM__PG_UPDATE:
        update(tx);
        return PG_RAN;
    case IDEM__PG_CLAIM:
        return unless_blocked(claim(tx));
    case IDEM__PG_THERE:
        there(tx);
        return PG_RAN;
    case IDEM__PG_LOOK:
        look(tx);
        return PG_RAN;
    case IDEM__PG_LIMIT_COUNT:
        if (!limit_count(tx, request)) {
            return PG_BLOCKED;
        }
        limit_look(tx, request);
        return PG_RAN;
    default:
        limit_look(tx, request);
        return PG_RAN;
    }
}

/* ---- Its end ---- */

static void let_go(struct pg_tx *tx, bool commit)
{
    struct pg_table *table = tx->table;
    size_t i;

    tx->over = true;
    for (i = 0; i < PG_ROWS_MAX; i++) {
        struct pg_row *row = &table->rows[i];

        if (row->used && row->holder == tx) {
            if (commit) {
                struct pg_version old = row->now;

                row->now = row->next;
                row->next = old;
            }
            row->holder = NULL;
        }
    }
    for (i = 0; i < PG_WINDOWS_MAX; i++) {
        struct pg_window *window = &table->windows[i];

        if (window->used && window->holder == tx) {
            window->now = commit ? window->next : window->now;
            window->holder = NULL;
        }
    }
    table->sharers -= tx->shares;
    tx->shares = false;
    if (table->waiter == tx) {
        table->waiter = NULL;
    }
    if (table->floor_holder == tx) {
        table->fence_floor = commit ? tx->floor_next : table->fence_floor;
        table->floor_holder = NULL;
    }
}

enum pg_went pg_step(struct pg_tx *tx)
{
    enum pg_went went;

    assert(!tx->over);
    find_next(tx);
    tx->sql = find_sql(tx, &tx->request);
    if (tx->sql == IDEM__PG_COMMIT) {
        let_go(tx, /* commit= */ true);
        return PG_COMMITTED;
    }
    went = run(tx);
    tx->at += went == PG_RAN;
    return went;
}

void pg_roll_back(struct pg_tx *tx)
{
    size_t i;

    for (i = 0; i < tx->requests_len; i++) {
        tx->requests[i]->applied = false;
    }
    let_go(tx, /* commit= */ false);
}

void pg_end(struct pg_tx *tx)
{
    size_t i;

    if (!tx->over) {
        pg_roll_back(tx);
    }
    for (i = 0; i < tx->steps_len; i++) {
        PQclear(tx->steps[i].result);
    }
    tx->steps_len = 0;
}

/* ---- Answers ---- */

static void give_row(struct idem__pg_request *request, const PGresult *result,
                     int row)
{
    request->row_code =
        idem__pg_row_read(result, row, &request->row, &request->error);
    request->row_code = request->row_code == 0 ? 1 : request->row_code;
}

static void give_rows(struct pg_tx *tx, enum idem__pg_ask ask,
                      const PGresult *result)
{
    int row;
    size_t i;

    for (row = 0; row < PQntuples(result); row++) {
        uint8_t id[IDEM_ID_LEN];

        (void)idem__pg_row_id(result, row, id);
        for (i = 0; i < tx->requests_len; i++) {
            if (is(tx, i, ask) && !tx->requests[i]->applied &&
                memcmp(tx->requests[i]->id, id, IDEM_ID_LEN) == 0) {
                give_row(tx->requests[i], result, row);
            }
        }
    }
}

void pg_answer(struct pg_tx *tx)
{
    size_t i;

    for (i = 0; i < tx->requests_len; i++) {
        struct idem__pg_request *request = tx->requests[i];

        request->said = IDEM__SAID_OK;
        request->sent = true;
        request->timed_out = false;
        request->row_code = 0;
        request->result = NULL;
        request->after = NULL;
        memset(&request->error, 0, sizeof(request->error));
    }
    for (i = 0; i < tx->steps_len; i++) {
        const struct pg_step *step = &tx->steps[i];

        if (step->request != NULL && step->request->result != NULL) {
            step->request->after = step->result;
        } else if (step->request != NULL) {
            step->request->result = step->result;
        } else {
            give_rows(tx,
                      step->sql == IDEM__PG_THERE ? IDEM__PG_ASK_CLAIM
                                                  : IDEM__PG_ASK_LOOK,
                      step->result);
        }
    }
}

/* ---- Copies ---- */

static uint8_t *take(uint8_t **at, struct idem_slice *slice)
{
    uint8_t *to = *at;

    if (slice->len > 0) {
        memcpy(to, slice->base, slice->len);
    }
    slice->base = to;
    *at += slice->len;
    return to;
}

struct idem__pg_request *pg_request_copy(const struct idem__pg_request *request)
{
    static const struct idem_record none;
    const struct idem__pg_write *write = &request->write;
    const struct idem_record *record =
        write->record != NULL ? write->record : &none;
    size_t victims = request->victims_len * sizeof(*request->victims);
    size_t len = sizeof(*request) + sizeof(*record) + victims +
                 write->head.len + request->found.len + record->scope.len +
                 record->key.len + record->result.bytes.len +
                 record->input.len + request->request_id.len +
                 request->name.len + request->subject.len;
    struct idem__pg_request *copy = malloc(len);
    struct idem_record *record_copy;
    uint8_t *at;

    assert(copy != NULL);
    *copy = *request;
    record_copy = (struct idem_record *)(copy + 1);
    *record_copy = *record;
    at = (uint8_t *)(record_copy + 1);
    if (victims > 0) {
        struct idem_slice bytes = idem_bytes(request->victims, victims);

        copy->victims = (const struct idem__pg_victim *)take(&at, &bytes);
    }
    copy->write.record = write->record != NULL ? record_copy : NULL;
    (void)take(&at, &copy->write.head);
    (void)take(&at, &copy->found);
    (void)take(&at, &record_copy->scope);
    (void)take(&at, &record_copy->key);
    (void)take(&at, &record_copy->result.bytes);
    (void)take(&at, &record_copy->input);
    (void)take(&at, &copy->request_id);
    (void)take(&at, &copy->name);
    (void)take(&at, &copy->subject);
    return copy;
}
