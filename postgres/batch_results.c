/* Turns the results of a batch into the answers of its requests, and learns the server's
 * time, the fence floor and the mark from them. */
#include "base/list.h"
#include "core/error.h"
#include "core/move.h"
#include "postgres/conn.h"

#include <limits.h>

/* Columns of UPDATE and CLAIM. */
enum {
    WRITTEN_ID,
    WRITTEN_TAG,
    WRITTEN_TIME,
};

_Static_assert(WRITTEN_ID == 0, "idem__pg_row_id() reads the first");

/* Returns the place in by_id of the first request whose id is @id or greater. */
static size_t find(const struct idem__pg_batch *batch,
                   const uint8_t id[IDEM_ID_LEN])
{
    size_t low = 0;
    size_t high = batch->by_id_len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (memcmp(batch->by_id[middle]->id, id, IDEM_ID_LEN) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Returns the request at place @at if it is about @id, else NULL. */
static struct idem__pg_request *with_id(const struct idem__pg_batch *batch,
                                        size_t at,
                                        const uint8_t id[IDEM_ID_LEN])
{
    return at < batch->by_id_len &&
                   memcmp(batch->by_id[at]->id, id, IDEM_ID_LEN) == 0
               ? batch->by_id[at]
               : NULL;
}

/* Learns the server's time. Its clock is the one that counts, so this machine's wall
 * clock, which may show 1970, never refutes it. If this machine's clock did not answer, or
 * the machine slept since it sent the batch, the time cannot be learned, and what we knew
 * of it may be wrong by now: missed_time keeps all flights of this batch from deciding by
 * it. */
static void learn_time(struct idem__pg_batch *batch, const PGresult *result,
                       int column)
{
    struct idem__pg_conn *conn = batch->conn;
    struct idem_clock_reading reading;
    struct idem__learned_time time = {.sent_boot_ms = batch->sent_boot_ms,
                                      .late_ms = 1};

    conn->answered = true;
    if (!idem__pg_time(result, 0, column, &time.told_ms)) {
        return;
    }
    if (batch->sent_boot_ms < 0 ||
        conn->host.clock(conn->host.ctx, &reading) != 0 ||
        reading.boot_ms - batch->sent_boot_ms > IDEM__LEARNED_TRIP_MAX_MS) {
        batch->missed_time = true;
        return;
    }
    time.got_boot_ms = reading.boot_ms;
    (void)idem__learned_clock_learn(&conn->clock, &time,
                                    /* wall_ms= */ time.told_ms);
}

/* Learns up to which number fences are gone. The floor never falls. */
static void learn_floor(struct idem__pg_batch *batch, const PGresult *result,
                        int column)
{
    int64_t floor;

    if (idem__pg_number(result, 0, column, &floor) && floor >= 0 &&
        (uint64_t)floor > batch->conn->fence_floor) {
        batch->conn->fence_floor = (uint64_t)floor;
    }
}

/* Learns whether the store was moved. */
static void learn_mark(struct idem__pg_batch *batch, const PGresult *result,
                       int column)
{
    struct idem_slice mark;

    if (idem__pg_text(result, 0, column, &mark)) {
        idem__move_load(mark, batch->conn->mark);
    }
}

static void learn(struct idem__pg_batch *batch, enum idem__pg_sql sql,
                  const PGresult *result)
{
    switch (sql) {
    case IDEM__PG_SETUP:
    case IDEM__PG_SETUP_LOCAL:
        learn_time(batch, result, IDEM__PG_SETUP_TIME);
        learn_floor(batch, result, IDEM__PG_SETUP_FLOOR);
        learn_mark(batch, result, IDEM__PG_SETUP_MARK);
        break;
    case IDEM__PG_UPDATE_ONE:
    case IDEM__PG_END_ONE:
    case IDEM__PG_CLAIM_ONE:
        learn_time(batch, result, 0);
        break;
    case IDEM__PG_UPDATE:
    case IDEM__PG_CLAIM:
        learn_time(batch, result, WRITTEN_TIME);
        break;
    case IDEM__PG_LIST_ALL:
    case IDEM__PG_LIST_STATUS:
    case IDEM__PG_THERE:
    case IDEM__PG_THERE_ONE:
    case IDEM__PG_LOOK:
    case IDEM__PG_LOOK_ONE:
        learn_time(batch, result, IDEM__PG_ROW_TIME);
        learn_floor(batch, result, IDEM__PG_ROW_FLOOR);
        learn_mark(batch, result, IDEM__PG_ROW_MARK);
        break;
    default:
        break;
    }
}

/* True for the statements that fail on purpose where we may not go on. */
static bool has_checks(enum idem__pg_sql sql)
{
    return sql == IDEM__PG_SETUP || sql == IDEM__PG_SETUP_LOCAL ||
           sql == IDEM__PG_LOOK_ONE;
}

bool idem__pg_batch_take(struct idem__pg_batch *batch, PGresult *result)
{
    struct idem__pg_step *step = &batch->steps[batch->step];
    struct idem_error error;
    ExecStatusType status = PQresultStatus(result);
    bool is_sync = status == PGRES_PIPELINE_SYNC;

    if (status == PGRES_FATAL_ERROR &&
        idem__pg_error_read(result, batch->conn->place, &error) ==
            IDEM__SAID_UNKNOWN) {
        return false;
    }
    if (step->kind == IDEM__PG_STEP_SYNC && status == PGRES_FATAL_ERROR) {
        /* The server refused the commit. Versions of libpq differ in what they do next, so
         * stop waiting for results: is_last() has the connection closed. */
        step->result = result;
        batch->step = batch->steps_len;
        return true;
    }
    if (is_sync != (step->kind == IDEM__PG_STEP_SYNC)) {
        return false;
    }
    step->result = result;
    batch->step++;
    if (step->kind == IDEM__PG_STEP_RUN && status == PGRES_TUPLES_OK) {
        learn(batch, step->sql, result);
    }
    return true;
}

/* Marks the writes whose id and tag are in @result as applied. The server returns only
 * rows that it wrote, and the tag tells two writes of one record apart. */
static void mark_applied(struct idem__pg_batch *batch, enum idem__pg_ask ask,
                         const PGresult *result)
{
    int row;

    for (row = 0; row < PQntuples(result); row++) {
        struct idem__pg_request *request;
        uint8_t id[IDEM_ID_LEN];
        struct idem_slice tag;
        size_t at;

        if (!idem__pg_row_id(result, row, id) ||
            !idem__pg_bytes(result, row, WRITTEN_TAG, &tag) ||
            tag.len != IDEM__PG_TAG_LEN) {
            continue;
        }
        for (at = find(batch, id); (request = with_id(batch, at, id)) != NULL;
             at++) {
            if (request->ask == ask && memcmp(idem__pg_tag_of(&request->write),
                                              tag.base, tag.len) == 0) {
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

/* Gives each row to the requests that asked for its id. */
static void give_rows(struct idem__pg_batch *batch, enum idem__pg_ask ask,
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
        for (at = find(batch, id); (request = with_id(batch, at, id)) != NULL;
             at++) {
            if (request->ask == ask && !request->applied) {
                give_row(request, result, row);
            }
        }
    }
}

/* Marks the only request of a batch as applied if its statement returned a row: it returns
 * the row that it wrote. */
static void mark_one(struct idem__pg_batch *batch, const PGresult *result)
{
    batch->sent.first->applied = PQntuples(result) > 0;
}

static void distribute(struct idem__pg_batch *batch)
{
    size_t i;

    for (i = 0; i < batch->steps_len; i++) {
        const struct idem__pg_step *step = &batch->steps[i];

        if (step->kind != IDEM__PG_STEP_RUN) {
            continue;
        }
        if (step->request != NULL && step->request->result != NULL) {
            /* The second statement of a LIMIT_COUNT: its window. */
            step->request->after = step->result;
            continue;
        }
        if (step->request != NULL) {
            step->request->result = step->result;
            continue;
        }
        switch (step->sql) {
        case IDEM__PG_UPDATE:
            mark_applied(batch, IDEM__PG_ASK_UPDATE, step->result);
            break;
        case IDEM__PG_CLAIM:
            mark_applied(batch, IDEM__PG_ASK_CLAIM, step->result);
            break;
        case IDEM__PG_UPDATE_ONE:
        case IDEM__PG_END_ONE:
        case IDEM__PG_CLAIM_ONE:
            mark_one(batch, step->result);
            break;
        case IDEM__PG_THERE:
        case IDEM__PG_THERE_ONE:
            give_rows(batch, IDEM__PG_ASK_CLAIM, step->result);
            break;
        case IDEM__PG_LOOK:
        case IDEM__PG_LOOK_ONE:
            give_rows(batch, IDEM__PG_ASK_LOOK, step->result);
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
        /* If a preparation failed, so does the statement that uses it, unless the session
         * had a statement of that name already, as a pooler's may. */
        return true;
    }
    if (step->kind == IDEM__PG_STEP_SYNC) {
        return status == PGRES_PIPELINE_SYNC;
    }
    if (step->sql == IDEM__PG_COMMIT) {
        /* In a failed transaction COMMIT succeeds, too, but answers ROLLBACK. */
        return status == PGRES_COMMAND_OK &&
               strcmp(PQcmdStatus(step->result), "COMMIT") == 0;
    }
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Returns the preparation that failed, or NULL. The server does not try those after it. A
 * failure with 42P05 (duplicate name) does not count: a pooler's session has the statement
 * already. */
static const struct idem__pg_step *find_unprepared(
    const struct idem__pg_batch *batch)
{
    size_t i;

    for (i = 0; i < batch->steps_len; i++) {
        const struct idem__pg_step *step = &batch->steps[i];
        const char *state = PQresultErrorField(step->result, PG_DIAG_SQLSTATE);

        if (step->kind == IDEM__PG_STEP_PREPARE && state != NULL) {
            return strcmp(state, "42P05") == 0 ? NULL : step;
        }
    }
    return NULL;
}

/* Returns the first statement that failed, or NULL. */
static const struct idem__pg_step *find_failed(
    const struct idem__pg_batch *batch)
{
    size_t i;

    for (i = 0; i < batch->steps_len; i++) {
        if (!is_good(&batch->steps[i])) {
            return &batch->steps[i];
        }
    }
    return NULL;
}

static bool failed_by(const struct idem__pg_step *failed, const char *state)
{
    const char *found = PQresultErrorField(failed->result, PG_DIAG_SQLSTATE);

    return found != NULL && strcmp(found, state) == 0;
}

/* Reads why @failed failed. See CHECKS in sql.c for the three errors made on purpose. */
static enum idem__said read_failure(const struct idem__pg_batch *batch,
                                    const struct idem__pg_step *failed,
                                    struct idem_error *error)
{
    bool checks = has_checks(failed->sql);

    if (checks && failed_by(failed, "22012")) {
        (void)idem__error(error, IDEM_ECONFIG,
                          "the schema \"%s\" in PostgreSQL (%s) needs a newer "
                          "version of idem",
                          batch->conn->place->schema,
                          batch->conn->place->endpoint);
        return IDEM__SAID_NEVER;
    }
    if (checks && failed_by(failed, "22003")) {
        (void)idem__error(
            error, IDEM_ECONFIG,
            "PostgreSQL (%s): the session has lost its settings; a connection "
            "pooler needs prepare=no in the store URL",
            batch->conn->place->endpoint);
        return IDEM__SAID_NEVER;
    }
    if (checks && failed_by(failed, "22P02")) {
        (void)idem__error(
            error, IDEM_ECONFIG,
            "the table %s.idem_store in PostgreSQL (%s) is empty: "
            "run what idem store template prints",
            batch->conn->place->schema, batch->conn->place->endpoint);
        return IDEM__SAID_NEVER;
    }
    return idem__pg_error_read(failed->result, batch->conn->place, error);
}

/* Has each request of the batch tried again alone, before requests that came later. */
static void divide(struct idem__pg_batch *batch)
{
    while (batch->sent.last != NULL) {
        struct idem__pg_request *request = batch->sent.last;

        IDEM__LIST_REMOVE(&batch->sent, request);
        request->state = IDEM__PG_WAITING;
        request->alone = true;
        IDEM__LIST_PREPEND(&batch->conn->waiting, request);
        batch->conn->waiting_len++;
    }
}

/* Counts new claims in a row. Refused claims come in crowds, so after one the next batches
 * read the records that refuse (THERE). */
static void count_claims(struct idem__pg_batch *batch)
{
    unsigned *n = &batch->conn->new_claims;
    size_t i;

    for (i = 0; i < batch->by_id_len; i++) {
        if (batch->by_id[i]->ask == IDEM__PG_ASK_CLAIM) {
            *n = !batch->by_id[i]->applied ? 0 : *n == UINT_MAX ? *n : *n + 1;
        }
    }
}

/* Answers the requests: their transaction is committed. */
static void finish(struct idem__pg_batch *batch)
{
    while (batch->sent.first != NULL) {
        struct idem__pg_request *request = batch->sent.first;

        request->said = IDEM__SAID_OK;
        request->sent = true;
        idem__pg_conn_done(batch->conn, &batch->sent, request);
    }
}

/* True for the statements that come before those of the requests. */
static bool is_before(enum idem__pg_sql sql)
{
    return sql == IDEM__PG_SETTINGS || sql == IDEM__PG_BEGIN ||
           sql == IDEM__PG_SETUP || sql == IDEM__PG_SETUP_LOCAL;
}

static void fail(struct idem__pg_batch *batch,
                 const struct idem__pg_step *failed)
{
    struct idem_error error;
    enum idem__said said = read_failure(batch, failed, &error);

    /* One bad request must not fail the others. A failure that is not a request's would
     * meet each of them again, so all of them get it. */
    if (failed->kind != IDEM__PG_STEP_PREPARE &&
        !(failed->kind == IDEM__PG_STEP_RUN && is_before(failed->sql)) &&
        batch->sent.first != batch->sent.last) {
        divide(batch);
        return;
    }
    while (batch->sent.first != NULL) {
        idem__pg_conn_fail(batch->conn, batch, batch->sent.first, said, &error);
    }
}

/* True if the connection cannot be used after @failed: it lacks statements or settings,
 * its ROLLBACK failed, or libpq may have lost step with the server. */
static bool is_last(const struct idem__pg_batch *batch,
                    const struct idem__pg_step *failed)
{
    return batch->conn->undo || failed->kind != IDEM__PG_STEP_RUN ||
           failed->sql == IDEM__PG_SETTINGS ||
           (has_checks(failed->sql) && failed_by(failed, "22003"));
}

void idem__pg_batch_end(struct idem__pg_batch *batch)
{
    const struct idem__pg_step *unprepared = find_unprepared(batch);
    const struct idem__pg_step *failed = find_failed(batch);

    /* If a preparation failed, report that: the statement that needed it only says that it
     * does not exist. */
    failed = failed != NULL && unprepared != NULL ? unprepared : failed;
    batch->conn->missed_time = batch->conn->missed_time || batch->missed_time;
    batch->conn->useless =
        unprepared != NULL || (failed != NULL && is_last(batch, failed));
    if (batch->conn->undo) {
        batch->conn->undo = false;
        return;
    }
    if (failed != NULL) {
        batch->conn->undo = !batch->conn->place->prepare;
        fail(batch, failed);
        return;
    }
    batch->conn->settled =
        batch->conn->settled || idem__pg_is_about_attempts(batch);
    distribute(batch);
    count_claims(batch);
    finish(batch);
}
