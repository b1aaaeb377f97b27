/* A batch: requests as the statements of one transaction, and results as their answers.
 * sql.h has the order. */
#include "base/list.h"
#include "core/decide.h"
#include "core/error.h"
#include "postgres/conn.h"
#include "postgres/error.h"

#include <idem/store_parts.h>
#include <stdlib.h>

enum {
    SINGLES_MAX = 24, /* Of the requests, that are a statement of their own. */
    BYTES_MAX = 4 << 20, /* Of what is written; one record may be more. */
    PREPARE_AFTER = 4,   /* Batches: a program may end after one. */
};

/* ---- Statements ---- */

static struct idem__pg_step *add_step(struct idem__pg_conn *conn, int kind,
                                      enum idem__pg_sql sql)
{
    struct idem__pg_step *step = &conn->steps[conn->steps_len++];

    memset(step, 0, sizeof(*step));
    step->kind = kind;
    step->sql = sql;
    return step;
}

/* Runs @sql with conn->params. */
static bool run(struct idem__pg_conn *conn, enum idem__pg_sql sql,
                struct idem__pg_request *request)
{
    const char *values[IDEM__PG_PARAMS_MAX];
    int lengths[IDEM__PG_PARAMS_MAX];
    int formats[IDEM__PG_PARAMS_MAX];
    int n = (int)conn->params.len;
    char text[IDEM__PG_SQL_MAX];
    int rc;

    if (!idem__pg_params_finish(&conn->params, values, lengths, formats)) {
        return false;
    }
    if (conn->prepared && conn->names[sql][0] != '\0') {
        rc = PQsendQueryPrepared(conn->pg, conn->names[sql], n, values, lengths,
                                 formats, /* resultFormat= */ 1);
    } else {
        idem__pg_sql_text(sql, conn->place->schema, text);
        rc = PQsendQueryParams(conn->pg, text, n, conn->params.types, values,
                               lengths, formats, /* resultFormat= */ 1);
    }
    add_step(conn, IDEM__PG_STEP_RUN, sql)->request = request;
    idem__pg_params_reset(&conn->params);
    return rc == 1;
}

static bool sync(struct idem__pg_conn *conn)
{
    (void)add_step(conn, IDEM__PG_STEP_SYNC, 0);
    return PQpipelineSync(conn->pg) == 1;
}

/* Those that a connection runs more than once, if it is ours alone. */
static bool is_named(enum idem__pg_sql sql)
{
    return sql != IDEM__PG_SETTINGS && sql != IDEM__PG_BARRIER &&
           sql != IDEM__PG_BEGIN && sql != IDEM__PG_SETUP_LOCAL &&
           sql != IDEM__PG_COMMIT && sql != IDEM__PG_ROLLBACK;
}

/* Names the statements, in the same flight as the batch that uses them first. */
static bool prepare_all(struct idem__pg_conn *conn)
{
    int sql;

    for (sql = 0; sql < IDEM__PG_SQLS; sql++) {
        char text[IDEM__PG_SQL_MAX];
        const Oid *types;
        size_t n = idem__pg_sql_types(sql, &types);

        conn->names[sql][0] = '\0';
        if (!is_named(sql)) {
            continue;
        }
        idem__pg_sql_text(sql, conn->place->schema, text);
        if (idem__pg_sql_name(sql, text, conn->names[sql]) != 0) {
            conn->params.failed = true;
            return false;
        }
        if (PQsendPrepare(conn->pg, conn->names[sql], text, (int)n, types) !=
            1) {
            return false;
        }
        (void)add_step(conn, IDEM__PG_STEP_PREPARE, sql);
    }
    conn->prepared = true;
    return sync(conn);
}

/* ---- Which requests ---- */

static bool is_single(const struct idem__pg_request *request)
{
    return request->ask != IDEM__PG_ASK_LOOK &&
           request->ask != IDEM__PG_ASK_CLAIM &&
           request->ask != IDEM__PG_ASK_UPDATE;
}

static size_t size_of(const struct idem__pg_request *request)
{
    const struct idem__pg_write *write = &request->write;

    if (request->ask != IDEM__PG_ASK_CLAIM &&
        request->ask != IDEM__PG_ASK_UPDATE) {
        return 0;
    }
    return write->head.len + request->found.len +
           (write->set_result ? write->record->result.bytes.len : 0) +
           (write->set_input ? write->record->input.len : 0);
}

static int compare(const void *a, const void *b)
{
    const struct idem__pg_request *left =
        *(const struct idem__pg_request *const *)a;
    const struct idem__pg_request *right =
        *(const struct idem__pg_request *const *)b;

    return memcmp(left->id, right->id, IDEM_ID_LEN);
}

/* Moves those that go together from waiting to sent. */
static void choose(struct idem__pg_conn *conn)
{
    struct idem__pg_request *request = conn->waiting.first;
    size_t singles = 0;
    size_t bytes = 0;
    size_t n = 0;

    while (request != NULL && n < IDEM__PG_REQUESTS_MAX) {
        struct idem__pg_request *next = request->next;

        bytes += size_of(request);
        singles += is_single(request);
        if (n > 0 &&
            (request->alone || bytes > BYTES_MAX || singles > SINGLES_MAX)) {
            break;
        }
        IDEM__LIST_REMOVE(&conn->waiting, request);
        request->state = IDEM__PG_SENT;
        IDEM__LIST_APPEND(&conn->sent, request);
        conn->by_id[n++] = request;
        if (request->alone) {
            break;
        }
        request = next;
    }
    conn->waiting_len -= n;
    idem__pg_count(&conn->counters.requests, n);
    conn->by_id_len = n;
    qsort(conn->by_id, n, sizeof(conn->by_id[0]), compare);
}

/* The place in by_id of the first request whose id is not below @id. */
static size_t find(const struct idem__pg_conn *conn,
                   const uint8_t id[IDEM_ID_LEN])
{
    size_t low = 0;
    size_t high = conn->by_id_len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (memcmp(conn->by_id[middle]->id, id, IDEM_ID_LEN) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The request at place @at, if it is about @id; or NULL. */
static struct idem__pg_request *with_id(const struct idem__pg_conn *conn,
                                        size_t at,
                                        const uint8_t id[IDEM_ID_LEN])
{
    return at < conn->by_id_len &&
                   memcmp(conn->by_id[at]->id, id, IDEM_ID_LEN) == 0
               ? conn->by_id[at]
               : NULL;
}

/* ---- Rows ---- */

enum {
    ROW_COLUMNS = 11
};

static void begin_rows(struct idem__pg_params *params)
{
    static const Oid types[ROW_COLUMNS] = {IDEM__PG_BYTEAS, IDEM__PG_BYTEAS,
                                           IDEM__PG_BYTEAS, IDEM__PG_BYTEAS,
                                           IDEM__PG_INT8S,  IDEM__PG_INT8S,
                                           IDEM__PG_INT8S,  IDEM__PG_BYTEAS,
                                           IDEM__PG_BYTEAS, IDEM__PG_BYTEAS,
                                           IDEM__PG_BYTEAS};
    size_t i;

    for (i = 0; i < ROW_COLUMNS; i++) {
        (void)idem__pg_params_array(params, types[i]);
    }
}

static const uint8_t *tag_of(const struct idem__pg_write *write)
{
    return (const uint8_t *)write->head.base + write->head.len -
           IDEM__PG_TAG_LEN;
}

static void add_body(struct idem__pg_params *params, size_t place, bool set,
                     struct idem_slice body)
{
    if (set && body.len > 0) {
        idem__pg_params_add_bytes(params, place, body);
    } else {
        idem__pg_params_add_null(params, place);
    }
}

static void add_one_body(struct idem__pg_params *params, bool set,
                         struct idem_slice body)
{
    if (set && body.len > 0) {
        (void)idem__pg_params_bytes(params, body);
    } else {
        (void)idem__pg_params_null(params, IDEM__PG_BYTEA);
    }
}

static void add_row(struct idem__pg_params *params,
                    const struct idem__pg_write *write)
{
    const struct idem_record *r = write->record;
    size_t i = 0;

    idem__pg_params_add_bytes(params, i++, idem_bytes(r->id, IDEM_ID_LEN));
    idem__pg_params_add_bytes(params, i++, r->scope);
    idem__pg_params_add_bytes(params, i++, r->key);
    idem__pg_params_add_bytes(params, i++,
                              idem_bytes(r->nonce, sizeof(r->nonce)));
    idem__pg_params_add_number(params, i++, (int64_t)r->fence);
    idem__pg_params_add_number(params, i++, (int64_t)r->status);
    idem__pg_params_add_number(params, i++, idem__deadline(r));
    idem__pg_params_add_bytes(params, i++,
                              idem_bytes(tag_of(write), IDEM__PG_TAG_LEN));
    idem__pg_params_add_bytes(params, i++, write->head);
    add_body(params, i++, write->set_result, r->result.bytes);
    add_body(params, i++, write->set_input, r->input);
}

/* The same as parameters that are no arrays, without scope, key and input. */
static void add_one(struct idem__pg_params *params,
                    const struct idem__pg_write *write)
{
    const struct idem_record *r = write->record;

    (void)idem__pg_params_bytes(params, idem_bytes(r->id, IDEM_ID_LEN));
    (void)idem__pg_params_bytes(params, idem_bytes(r->nonce, sizeof(r->nonce)));
    (void)idem__pg_params_number(params, (int64_t)r->fence);
    (void)idem__pg_params_number(params, (int64_t)r->status);
    (void)idem__pg_params_number(params, idem__deadline(r));
    (void)idem__pg_params_bytes(params,
                                idem_bytes(tag_of(write), IDEM__PG_TAG_LEN));
    (void)idem__pg_params_bytes(params, write->head);
    add_one_body(params, write->set_result, r->result.bytes);
}

/* True for a batch of one claim, update or look over a connection of our own. */
static bool speaks_for_itself(const struct idem__pg_conn *conn)
{
    return conn->place->prepare && conn->sent.first == conn->sent.last &&
           !is_single(conn->sent.first);
}

static bool has(const struct idem__pg_conn *conn, enum idem__pg_ask ask)
{
    const struct idem__pg_request *request = conn->sent.first;

    while (request != NULL && request->ask != ask) {
        request = request->next;
    }
    return request != NULL;
}

/* Says by 1 that the result is written, too, and by 2 the input. */
static int64_t sets_of(const struct idem__pg_write *write)
{
    return (write->set_result ? 1 : 0) | (write->set_input ? 2 : 0);
}

static bool send_update(struct idem__pg_conn *conn)
{
    struct idem__pg_params *params = &conn->params;
    const struct idem__pg_request *request = conn->sent.first;
    const struct idem__pg_write *write = &request->write;
    bool ends = write->set_result && !write->set_input;

    add_one(params, write);
    if (!ends) {
        add_one_body(params, write->set_input, write->record->input);
        (void)idem__pg_params_number(params, sets_of(write));
    }
    (void)idem__pg_params_bytes(params, request->found);
    return run(conn, ends ? IDEM__PG_END_ONE : IDEM__PG_UPDATE_ONE, NULL);
}

static bool send_updates(struct idem__pg_conn *conn)
{
    struct idem__pg_params *params = &conn->params;
    size_t found;
    size_t sets;
    size_t i;

    if (!has(conn, IDEM__PG_ASK_UPDATE)) {
        return true;
    }
    if (speaks_for_itself(conn)) {
        return send_update(conn);
    }
    begin_rows(params);
    found = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    sets = idem__pg_params_array(params, IDEM__PG_INT8S);
    for (i = 0; i < conn->by_id_len; i++) {
        const struct idem__pg_request *request = conn->by_id[i];

        if (request->ask == IDEM__PG_ASK_UPDATE) {
            add_row(params, &request->write);
            idem__pg_params_add_bytes(params, found, request->found);
            idem__pg_params_add_number(params, sets, sets_of(&request->write));
        }
    }
    return run(conn, IDEM__PG_UPDATE, NULL);
}

/* Ids and tags of the claims, for THERE. */
static void add_claims(struct idem__pg_conn *conn)
{
    struct idem__pg_params *params = &conn->params;
    size_t ids = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    size_t tags = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    size_t i;

    for (i = 0; i < conn->by_id_len; i++) {
        const struct idem__pg_request *request = conn->by_id[i];

        if (request->ask == IDEM__PG_ASK_CLAIM) {
            idem__pg_params_add_bytes(params, ids,
                                      idem_bytes(request->write.record->id,
                                                 IDEM_ID_LEN));
            idem__pg_params_add_bytes(params, tags,
                                      idem_bytes(tag_of(&request->write),
                                                 IDEM__PG_TAG_LEN));
        }
    }
}

/* The fence that is compared with those that were purged. */
static int64_t above_of(const struct idem__pg_write *write)
{
    return write->old_fence ? INT64_MAX : (int64_t)write->record->fence;
}

static bool send_claim(struct idem__pg_conn *conn)
{
    struct idem__pg_params *params = &conn->params;
    const struct idem__pg_write *write = &conn->sent.first->write;
    const struct idem_record *r = write->record;

    add_one(params, write);
    add_one_body(params, write->set_input, r->input);
    (void)idem__pg_params_bytes(params, r->scope);
    (void)idem__pg_params_bytes(params, r->key);
    (void)idem__pg_params_number(params, above_of(write));
    if (!run(conn, IDEM__PG_CLAIM_ONE, NULL)) {
        return false;
    }
    (void)idem__pg_params_bytes(params, idem_bytes(r->id, IDEM_ID_LEN));
    (void)idem__pg_params_bytes(params,
                                idem_bytes(tag_of(write), IDEM__PG_TAG_LEN));
    return run(conn, IDEM__PG_THERE_ONE, NULL);
}

static bool send_claims(struct idem__pg_conn *conn)
{
    struct idem__pg_params *params = &conn->params;
    size_t above;
    size_t i;

    if (!has(conn, IDEM__PG_ASK_CLAIM)) {
        return true;
    }
    if (speaks_for_itself(conn)) {
        return send_claim(conn);
    }
    begin_rows(params);
    above = idem__pg_params_array(params, IDEM__PG_INT8S);
    for (i = 0; i < conn->by_id_len; i++) {
        const struct idem__pg_request *request = conn->by_id[i];

        if (request->ask == IDEM__PG_ASK_CLAIM) {
            add_row(params, &request->write);
            idem__pg_params_add_number(params, above,
                                       above_of(&request->write));
        }
    }
    if (!run(conn, IDEM__PG_CLAIM, NULL)) {
        return false;
    }
    add_claims(conn);
    return run(conn, IDEM__PG_THERE, NULL);
}

static bool send_looks(struct idem__pg_conn *conn)
{
    size_t ids;
    size_t i;

    if (!has(conn, IDEM__PG_ASK_LOOK)) {
        return true;
    }
    if (speaks_for_itself(conn)) {
        (void)idem__pg_params_bytes(&conn->params,
                                    idem_bytes(conn->sent.first->id,
                                               IDEM_ID_LEN));
        return run(conn, IDEM__PG_LOOK_ONE, NULL);
    }
    ids = idem__pg_params_array(&conn->params, IDEM__PG_BYTEAS);
    for (i = 0; i < conn->by_id_len; i++) {
        const struct idem__pg_request *request = conn->by_id[i];

        if (request->ask == IDEM__PG_ASK_LOOK) {
            idem__pg_params_add_bytes(&conn->params, ids,
                                      idem_bytes(request->id, IDEM_ID_LEN));
        }
    }
    return run(conn, IDEM__PG_LOOK, NULL);
}

/* ---- Single statements ---- */

static void add_victims(struct idem__pg_params *params,
                        const struct idem__pg_request *request)
{
    size_t ids = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    size_t tags = idem__pg_params_array(params, IDEM__PG_BYTEAS);
    size_t i;

    for (i = 0; i < request->victims_len; i++) {
        idem__pg_params_add_bytes(params, ids,
                                  idem_bytes(request->victims[i].id,
                                             IDEM_ID_LEN));
        idem__pg_params_add_bytes(params, tags,
                                  idem_bytes(request->victims[i].tag,
                                             IDEM__PG_TAG_LEN));
    }
    (void)idem__pg_params_number(params, request->numbers[0]);
}

/* entry, used and refusals as found, expires, used, refusals; then at and max. */
static void add_count(struct idem__pg_params *params,
                      const struct idem__pg_request *request)
{
    size_t i;

    (void)idem__pg_params_bytes(params, request->request_id);
    for (i = 0; i < 6; i++) {
        (void)idem__pg_params_number(params, request->numbers[i]);
    }
    (void)idem__pg_params_bytes(params, request->name);
    (void)idem__pg_params_bytes(params, request->subject);
    (void)idem__pg_params_number(params, request->numbers[6]);
    (void)idem__pg_params_number(params, request->numbers[7]);
}

static bool send_single(struct idem__pg_conn *conn,
                        struct idem__pg_request *request)
{
    struct idem__pg_params *params = &conn->params;
    struct idem_slice id = idem_bytes(request->id, IDEM_ID_LEN);

    switch (request->ask) {
    case IDEM__PG_ASK_LOAD:
        (void)idem__pg_params_bytes(params, id);
        return run(conn, IDEM__PG_LOAD, request);
    case IDEM__PG_ASK_LIST:
    case IDEM__PG_ASK_LIST_STATUS:
        /* Before every id there is the empty one. */
        id.len = request->from_start ? 0 : id.len;
        (void)idem__pg_params_bytes(params, id);
        (void)idem__pg_params_number(params, request->limit);
        if (request->ask == IDEM__PG_ASK_LIST) {
            return run(conn, IDEM__PG_LIST_ALL, request);
        }
        (void)idem__pg_params_number(params, request->numbers[0]);
        (void)idem__pg_params_number(params, request->numbers[1]);
        (void)idem__pg_params_number(params, request->numbers[2]);
        return run(conn, IDEM__PG_LIST_STATUS, request);
    case IDEM__PG_ASK_PURGE:
        add_victims(params, request);
        return run(conn, IDEM__PG_PURGE, request);
    case IDEM__PG_ASK_PURGE_LIMITS:
        (void)idem__pg_params_number(params, request->numbers[0]);
        (void)idem__pg_params_number(params, request->limit);
        return run(conn, IDEM__PG_PURGE_LIMITS, request);
    case IDEM__PG_ASK_LIMIT_LOOK:
        (void)idem__pg_params_bytes(params, id);
        (void)idem__pg_params_bytes(params, request->request_id);
        return run(conn, IDEM__PG_LIMIT_LOOK, request);
    case IDEM__PG_ASK_LIMIT_COUNT:
        (void)idem__pg_params_bytes(params, id);
        add_count(params, request);
        if (!run(conn, IDEM__PG_LIMIT_COUNT, request)) {
            return false;
        }
        (void)idem__pg_params_bytes(params, id);
        (void)idem__pg_params_bytes(params, request->request_id);
        return run(conn, IDEM__PG_LIMIT_LOOK, request);
    case IDEM__PG_ASK_LOOK:
    case IDEM__PG_ASK_CLAIM:
    case IDEM__PG_ASK_UPDATE:
        break;
    }
    return true;
}

static bool is_of_limits(const struct idem__pg_request *request)
{
    return request->ask == IDEM__PG_ASK_LIMIT_LOOK ||
           request->ask == IDEM__PG_ASK_LIMIT_COUNT;
}

static bool send_singles(struct idem__pg_conn *conn)
{
    struct idem__pg_request *request = conn->sent.first;

    for (; request != NULL; request = request->next) {
        if (is_single(request) && !is_of_limits(request) &&
            !send_single(conn, request)) {
            return false;
        }
    }
    return true;
}

/* Windows in the order of their ids: see sql.h. */
static bool send_limits(struct idem__pg_conn *conn)
{
    size_t i;

    for (i = 0; i < conn->by_id_len; i++) {
        if (is_of_limits(conn->by_id[i]) &&
            !send_single(conn, conn->by_id[i])) {
            return false;
        }
    }
    return true;
}

/* ---- Sending ---- */

static bool is_about_attempts(const struct idem__pg_conn *conn)
{
    const struct idem__pg_request *request = conn->sent.first;

    while (request != NULL && request->shows) {
        request = request->next;
    }
    return request != NULL;
}

/* What a connection that is ours alone is given once, before its first transaction and
 * in the same flight. */
static bool send_settings(struct idem__pg_conn *conn)
{
    if (conn->has_settings) {
        return true;
    }
    conn->has_settings = true;
    return run(conn, IDEM__PG_SETTINGS, NULL) && sync(conn);
}

static bool name_statements(struct idem__pg_conn *conn)
{
    return conn->prepared || conn->carried++ < PREPARE_AFTER ||
           prepare_all(conn);
}

static bool send_setup(struct idem__pg_conn *conn)
{
    if (!conn->place->prepare) {
        return run(conn, IDEM__PG_BEGIN, NULL) &&
               run(conn, IDEM__PG_SETUP_LOCAL, NULL);
    }
    return send_settings(conn) && name_statements(conn) &&
           ((conn->settled && speaks_for_itself(conn)) ||
            run(conn, IDEM__PG_SETUP, NULL));
}

/* For its replicas, see conn.h. */
static bool send_barrier(struct idem__pg_conn *conn)
{
    return conn->settled || !is_about_attempts(conn) ||
           run(conn, IDEM__PG_BARRIER, NULL);
}

static bool send_all(struct idem__pg_conn *conn)
{
    return send_setup(conn) && send_barrier(conn) && send_singles(conn) &&
           send_updates(conn) && send_claims(conn) && send_looks(conn) &&
           send_limits(conn) &&
           (conn->place->prepare || run(conn, IDEM__PG_COMMIT, NULL)) &&
           sync(conn);
}

/* Of the last batch, until the next one is sent. */
static void keep_results(struct idem__pg_conn *conn)
{
    size_t i;

    idem__pg_batch_clear_kept(conn);
    for (i = 0; i < conn->steps_len; i++) {
        conn->kept[i] = conn->steps[i].result;
    }
    conn->kept_len = conn->steps_len;
    conn->steps_len = 0;
    conn->step = 0;
}

int idem__pg_batch_send(struct idem__pg_conn *conn)
{
    struct idem_clock_reading reading;
    bool good;

    keep_results(conn);
    conn->by_id_len = 0;
    if (conn->host.clock(conn->host.ctx, &reading) == 0) {
        conn->sent_boot_ms = reading.boot_ms;
    }
    idem__pg_count(&conn->counters.batches, 1);
    if (conn->undo) {
        good = run(conn, IDEM__PG_ROLLBACK, NULL) && sync(conn);
    } else {
        choose(conn);
        good = send_all(conn);
    }
    if (good) {
        return 0;
    }
    return conn->params.failed ? IDEM_ENOMEM : IDEM_EUNAVAILABLE;
}

/* ---- Results ---- */

/* The server has the clock that counts: this machine's wall clock, which may show 1970,
 * is no reason not to believe it. */
static void learn_time(struct idem__pg_conn *conn, const PGresult *result,
                       int column)
{
    struct idem_clock_reading reading;
    struct idem__learned_time time = {.sent_boot_ms = conn->sent_boot_ms,
                                      .late_ms = 1};

    if (idem__pg_time(result, 0, column, &time.told_ms) &&
        conn->host.clock(conn->host.ctx, &reading) == 0) {
        time.got_boot_ms = reading.boot_ms;
        (void)idem__learned_clock_learn(&conn->clock, &time,
                                        /* wall_ms= */ time.told_ms);
    }
    conn->answered = true;
}

/* The fences that are gone for good. */
static void learn_floor(struct idem__pg_conn *conn, const PGresult *result,
                        int column)
{
    int64_t floor;

    if (idem__pg_number(result, 0, column, &floor) && floor >= 0 &&
        (uint64_t)floor > conn->fence_floor) {
        conn->fence_floor = (uint64_t)floor;
    }
}

static void learn(struct idem__pg_conn *conn, enum idem__pg_sql sql,
                  const PGresult *result)
{
    switch (sql) {
    case IDEM__PG_SETUP:
    case IDEM__PG_SETUP_LOCAL:
        learn_time(conn, result, IDEM__PG_SETUP_TIME);
        learn_floor(conn, result, IDEM__PG_SETUP_FLOOR);
        break;
    case IDEM__PG_UPDATE_ONE:
    case IDEM__PG_END_ONE:
    case IDEM__PG_CLAIM_ONE:
        learn_time(conn, result, 0);
        break;
    case IDEM__PG_LIST_ALL:
    case IDEM__PG_LIST_STATUS:
    case IDEM__PG_THERE:
    case IDEM__PG_THERE_ONE:
    case IDEM__PG_LOOK:
    case IDEM__PG_LOOK_ONE:
        learn_time(conn, result, IDEM__PG_ROW_TIME);
        learn_floor(conn, result, IDEM__PG_ROW_FLOOR);
        break;
    default:
        break;
    }
}

/* The statements that say what forbids to go on. */
static bool has_checks(enum idem__pg_sql sql)
{
    return sql == IDEM__PG_SETUP || sql == IDEM__PG_SETUP_LOCAL ||
           sql == IDEM__PG_LOOK_ONE;
}

bool idem__pg_batch_take(struct idem__pg_conn *conn, PGresult *result)
{
    struct idem__pg_step *step = &conn->steps[conn->step];
    struct idem_error error;
    ExecStatusType status = PQresultStatus(result);
    bool is_sync = status == PGRES_PIPELINE_SYNC;

    if (status == PGRES_FATAL_ERROR &&
        idem__pg_error_read(result, conn->place, &error) == IDEM__PG_UNKNOWN) {
        return false;
    }
    if (step->kind == IDEM__PG_STEP_SYNC && status == PGRES_FATAL_ERROR) {
        /* The commit was refused. Versions of libpq differ in what they do next: the
         * connection is closed, and nothing more of it is waited for. */
        step->result = result;
        conn->step = conn->steps_len;
        return true;
    }
    if (is_sync != (step->kind == IDEM__PG_STEP_SYNC)) {
        return false;
    }
    step->result = result;
    conn->step++;
    if (step->kind == IDEM__PG_STEP_RUN && status == PGRES_TUPLES_OK) {
        learn(conn, step->sql, result);
    }
    return true;
}

/* Says for rows of id and tag that their writes were done. */
static void mark_applied(struct idem__pg_conn *conn, enum idem__pg_ask ask,
                         const PGresult *result)
{
    int row;

    for (row = 0; row < PQntuples(result); row++) {
        struct idem__pg_request *request;
        uint8_t id[IDEM_ID_LEN];
        struct idem_slice tag;
        size_t at;

        if (!idem__pg_row_id(result, row, id) ||
            !idem__pg_bytes(result, row, 1, &tag) ||
            tag.len != IDEM__PG_TAG_LEN) {
            continue;
        }
        for (at = find(conn, id); (request = with_id(conn, at, id)) != NULL;
             at++) {
            if (request->ask == ask &&
                memcmp(tag_of(&request->write), tag.base, tag.len) == 0) {
                request->applied = true;
            }
        }
    }
}

static void give_row(struct idem__pg_request *request, const PGresult *result,
                     int row)
{
    request->row_code =
        idem__pg_row_read(result, row, &request->row, &request->error);
    request->row_code = request->row_code == 0 ? 1 : request->row_code;
}

/* Gives each row to those that asked for its id. */
static void give_rows(struct idem__pg_conn *conn, enum idem__pg_ask ask,
                      const PGresult *result)
{
    int row;

    for (row = 0; row < PQntuples(result); row++) {
        struct idem__pg_request *request;
        uint8_t id[IDEM_ID_LEN];
        size_t at;

        if (!idem__pg_row_id(result, row, id)) {
            continue;
        }
        for (at = find(conn, id); (request = with_id(conn, at, id)) != NULL;
             at++) {
            if (request->ask == ask && !request->applied) {
                give_row(request, result, row);
            }
        }
    }
}

/* The same for a batch of one, whose statement gives a row if it wrote one. */
static void mark_one(struct idem__pg_conn *conn, const PGresult *result)
{
    conn->sent.first->applied = PQntuples(result) > 0;
}

static void distribute(struct idem__pg_conn *conn)
{
    size_t i;

    for (i = 0; i < conn->steps_len; i++) {
        const struct idem__pg_step *step = &conn->steps[i];

        if (step->kind != IDEM__PG_STEP_RUN) {
            continue;
        }
        if (step->request != NULL && step->request->result != NULL) {
            step->request->after = step->result;
            continue;
        }
        if (step->request != NULL) {
            step->request->result = step->result;
            continue;
        }
        switch (step->sql) {
        case IDEM__PG_UPDATE:
            mark_applied(conn, IDEM__PG_ASK_UPDATE, step->result);
            break;
        case IDEM__PG_CLAIM:
            mark_applied(conn, IDEM__PG_ASK_CLAIM, step->result);
            break;
        case IDEM__PG_UPDATE_ONE:
        case IDEM__PG_END_ONE:
        case IDEM__PG_CLAIM_ONE:
            mark_one(conn, step->result);
            break;
        case IDEM__PG_THERE:
        case IDEM__PG_THERE_ONE:
            give_rows(conn, IDEM__PG_ASK_CLAIM, step->result);
            break;
        case IDEM__PG_LOOK:
        case IDEM__PG_LOOK_ONE:
            give_rows(conn, IDEM__PG_ASK_LOOK, step->result);
            break;
        default:
            break;
        }
    }
}

static bool is_good(const struct idem__pg_step *step)
{
    ExecStatusType status = PQresultStatus(step->result);

    if (step->kind == IDEM__PG_STEP_PREPARE) {
        /* A failed preparation fails what uses it, unless a pooler's session has that
         * statement already. */
        return true;
    }
    if (step->kind == IDEM__PG_STEP_SYNC) {
        return status == PGRES_PIPELINE_SYNC;
    }
    if (step->sql == IDEM__PG_COMMIT) {
        return status == PGRES_COMMAND_OK &&
               strcmp(PQcmdStatus(step->result), "COMMIT") == 0;
    }
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* The preparation that failed, or NULL: those after it were not tried. One that is there
 * already is a pooler's. */
static const struct idem__pg_step *find_unprepared(
    const struct idem__pg_conn *conn)
{
    size_t i;

    for (i = 0; i < conn->steps_len; i++) {
        const struct idem__pg_step *step = &conn->steps[i];
        const char *state = PQresultErrorField(step->result, PG_DIAG_SQLSTATE);

        if (step->kind == IDEM__PG_STEP_PREPARE && state != NULL) {
            return strcmp(state, "42P05") == 0 ? NULL : step;
        }
    }
    return NULL;
}

/* The first statement that failed, or NULL. */
static const struct idem__pg_step *find_failed(const struct idem__pg_conn *conn)
{
    size_t i;

    for (i = 0; i < conn->steps_len; i++) {
        if (!is_good(&conn->steps[i])) {
            return &conn->steps[i];
        }
    }
    return NULL;
}

/* See CHECKS in sql.c. */
static enum idem__pg_said read_failure(const struct idem__pg_conn *conn,
                                       const struct idem__pg_step *failed,
                                       struct idem_error *error)
{
    const char *state = PQresultErrorField(failed->result, PG_DIAG_SQLSTATE);

    if (has_checks(failed->sql) && state != NULL &&
        strcmp(state, "22012") == 0) {
        (void)idem__error(error, IDEM_ECONFIG,
                          "the schema \"%s\" in PostgreSQL (%s) is of a newer "
                          "version of idem",
                          conn->place->schema, conn->place->endpoint);
        return IDEM__PG_NEVER;
    }
    if (has_checks(failed->sql) && state != NULL &&
        strcmp(state, "22003") == 0) {
        (void)idem__error(error, IDEM_ECONFIG,
                          "PostgreSQL (%s): the session has lost its settings; "
                          "a pooler in between needs prepare=no in the store "
                          "URL",
                          conn->place->endpoint);
        return IDEM__PG_NEVER;
    }
    if (has_checks(failed->sql) && state != NULL &&
        strcmp(state, "22P02") == 0) {
        (void)
            idem__error(error, IDEM_ECONFIG,
                        "the table %s.idem_store in PostgreSQL (%s) is empty: "
                        "run what idem store template prints",
                        conn->place->schema, conn->place->endpoint);
        return IDEM__PG_NEVER;
    }
    return idem__pg_error_read(failed->result, conn->place, error);
}

/* Has each request of the batch tried again by itself, before those that came later. */
static void divide(struct idem__pg_conn *conn)
{
    while (conn->sent.last != NULL) {
        struct idem__pg_request *request = conn->sent.last;

        IDEM__LIST_REMOVE(&conn->sent, request);
        request->state = IDEM__PG_WAITING;
        request->alone = true;
        IDEM__LIST_PREPEND(&conn->waiting, request);
        conn->waiting_len++;
    }
}

/* True for what stands before the statements of the requests. */
static bool is_before(enum idem__pg_sql sql)
{
    return sql == IDEM__PG_SETTINGS || sql == IDEM__PG_BEGIN ||
           sql == IDEM__PG_SETUP || sql == IDEM__PG_SETUP_LOCAL;
}

static void fail(struct idem__pg_conn *conn, const struct idem__pg_step *failed)
{
    struct idem_error error;
    enum idem__pg_said said = read_failure(conn, failed, &error);

    if (failed->kind != IDEM__PG_STEP_PREPARE &&
        !(failed->kind == IDEM__PG_STEP_RUN && is_before(failed->sql)) &&
        conn->sent.first != conn->sent.last) {
        divide(conn);
        return;
    }
    while (conn->sent.first != NULL) {
        idem__pg_conn_fail(conn, conn->sent.first, said, &error);
    }
}

/* True if the connection is of no use after @failed: it lacks statements or settings, its
 * ROLLBACK failed, or libpq may be out of step with it. */
static bool is_last(const struct idem__pg_conn *conn,
                    const struct idem__pg_step *failed)
{
    const char *state = PQresultErrorField(failed->result, PG_DIAG_SQLSTATE);

    return conn->undo || failed->kind != IDEM__PG_STEP_RUN ||
           failed->sql == IDEM__PG_SETTINGS ||
           (has_checks(failed->sql) && state != NULL &&
            strcmp(state, "22003") == 0);
}

void idem__pg_batch_end(struct idem__pg_conn *conn)
{
    const struct idem__pg_step *unprepared = find_unprepared(conn);
    const struct idem__pg_step *failed = find_failed(conn);

    /* A statement that was not prepared is not there, whatever was the reason. */
    failed = failed != NULL && unprepared != NULL ? unprepared : failed;
    conn->useless =
        unprepared != NULL || (failed != NULL && is_last(conn, failed));
    if (conn->undo) {
        conn->undo = false;
        return;
    }
    if (failed != NULL) {
        conn->undo = !conn->place->prepare;
        fail(conn, failed);
        return;
    }
    conn->settled = conn->settled || is_about_attempts(conn);
    distribute(conn);
    while (conn->sent.first != NULL) {
        struct idem__pg_request *request = conn->sent.first;

        request->said = IDEM__PG_OK;
        request->sent = true;
        idem__pg_conn_done(conn, &conn->sent, request);
    }
}

void idem__pg_batch_clear_kept(struct idem__pg_conn *conn)
{
    size_t i;

    for (i = 0; i < conn->kept_len; i++) {
        PQclear(conn->kept[i]);
    }
    conn->kept_len = 0;
}

void idem__pg_batch_clear(struct idem__pg_conn *conn)
{
    size_t i;

    for (i = 0; i < conn->steps_len; i++) {
        PQclear(conn->steps[i].result);
    }
    conn->steps_len = 0;
    conn->step = 0;
    idem__pg_params_reset(&conn->params);
}
