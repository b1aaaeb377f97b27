/* Chooses the requests of a batch, and sends them as the statements of one transaction, in
 * the order of sql.h. */
#include "postgres/conn.h"

#include "base/list.h"

#include <stdlib.h>

enum {
    SINGLES_MAX = 24,    /* Requests with a statement of their own. */
    BYTES_MAX = 4 << 20, /* To be written; a single record may have more. */
    PREPARE_AFTER = 4,   /* Batches: a program may end after one. */
    NEW_MANY = 64, /* New claims in a row: the next is probably new, too. */
};

/* ---- Which requests ---- */

const uint8_t *idem__pg_tag_of(const struct idem__pg_write *write)
{
    return (const uint8_t *)write->head.base + write->head.len -
           IDEM__PG_TAG_LEN;
}

bool idem__pg_speaks_for_itself(const struct idem__pg_batch *batch)
{
    return batch->conn->place->prepare &&
           batch->sent.first == batch->sent.last &&
           !idem__pg_is_single(batch->sent.first);
}

bool idem__pg_shows(const struct idem__pg_batch *batch)
{
    return batch->conn->new_claims < NEW_MANY;
}

/* True if the statements of the batch tell the time, and check themselves whether they may
 * go on. */
static bool needs_no_setup(const struct idem__pg_batch *batch)
{
    const struct idem__pg_request *request = batch->sent.first;

    if (!batch->conn->settled) {
        return false;
    }
    if (idem__pg_speaks_for_itself(batch)) {
        return true;
    }
    while (request != NULL && (request->ask == IDEM__PG_ASK_CLAIM ||
                               request->ask == IDEM__PG_ASK_UPDATE)) {
        request = request->next;
    }
    return request == NULL;
}

bool idem__pg_is_about_attempts(const struct idem__pg_batch *batch)
{
    const struct idem__pg_request *request = batch->sent.first;

    while (request != NULL && request->shows) {
        request = request->next;
    }
    return request != NULL;
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

/* Moves the requests of this batch from waiting to sent. */
static void choose(struct idem__pg_batch *batch)
{
    struct idem__pg_conn *conn = batch->conn;
    struct idem__pg_request *request = conn->waiting.first;
    size_t singles = 0;
    size_t bytes = 0;
    size_t n = 0;

    while (request != NULL && n < IDEM__PG_REQUESTS_MAX) {
        struct idem__pg_request *next = request->next;

        bytes += size_of(request);
        singles += idem__pg_is_single(request);
        if (n > 0 &&
            (request->alone || bytes > BYTES_MAX || singles > SINGLES_MAX)) {
            break;
        }
        IDEM__LIST_REMOVE(&conn->waiting, request);
        request->state = IDEM__PG_SENT;
        IDEM__LIST_APPEND(&batch->sent, request);
        batch->by_id[n++] = request;
        if (request->alone) {
            break;
        }
        request = next;
    }
    conn->waiting_len -= n;
    conn->expected -= n < conn->expected ? n : conn->expected;
    idem__pg_count(&conn->counters.requests, n);
    batch->by_id_len = n;
    qsort(batch->by_id, n, sizeof(batch->by_id[0]), compare);
}

/* ---- Sending ---- */

/* Sends the settings of a connection that is ours alone, once: before its first
 * transaction, and on the same trip. */
static bool send_settings(struct idem__pg_batch *batch)
{
    struct idem__pg_conn *conn = batch->conn;

    if (conn->has_settings) {
        return true;
    }
    conn->has_settings = true;
    return idem__pg_run(batch, IDEM__PG_SETTINGS, NULL) && idem__pg_sync(batch);
}

static bool name_statements(struct idem__pg_batch *batch)
{
    struct idem__pg_conn *conn = batch->conn;

    return conn->prepared || conn->carried++ < PREPARE_AFTER ||
           idem__pg_prepare(batch);
}

static bool send_setup(struct idem__pg_batch *batch)
{
    if (!batch->conn->place->prepare) {
        return idem__pg_run(batch, IDEM__PG_BEGIN, NULL) &&
               idem__pg_run(batch, IDEM__PG_SETUP_LOCAL, NULL);
    }
    return send_settings(batch) && name_statements(batch) &&
           (needs_no_setup(batch) || idem__pg_run(batch, IDEM__PG_SETUP, NULL));
}

/* Has the first batch wait for the replicas: see conn.h. */
static bool send_barrier(struct idem__pg_batch *batch)
{
    return batch->conn->settled || !idem__pg_is_about_attempts(batch) ||
           idem__pg_run(batch, IDEM__PG_BARRIER, NULL);
}

static bool send_all(struct idem__pg_batch *batch)
{
    return send_setup(batch) && send_barrier(batch) &&
           idem__pg_send_singles(batch) && idem__pg_send_rows(batch) &&
           idem__pg_send_limits(batch) &&
           (batch->conn->place->prepare ||
            idem__pg_run(batch, IDEM__PG_COMMIT, NULL)) &&
           idem__pg_sync(batch);
}

int idem__pg_batch_send(struct idem__pg_conn *conn)
{
    struct idem__pg_batch *batch = idem__pg_batch_at(conn, conn->in_flight++);
    struct idem_clock_reading reading;
    bool good;

    idem__pg_batch_clear(batch);
    batch->conn = conn;
    batch->sent_boot_ms = conn->host.clock(conn->host.ctx, &reading) == 0
                              ? reading.boot_ms
                              : -1; /* Learn no time from its answer. */
    idem__pg_count(&conn->counters.batches, 1);
    if (conn->undo) {
        good = idem__pg_run(batch, IDEM__PG_ROLLBACK, NULL) &&
               idem__pg_sync(batch);
    } else {
        choose(batch);
        good = send_all(batch);
    }
    if (good) {
        return 0;
    }
    return conn->params.failed ? IDEM_ENOMEM : IDEM_EUNAVAILABLE;
}

void idem__pg_batch_clear(struct idem__pg_batch *batch)
{
    size_t i;

    for (i = 0; i < batch->steps_len; i++) {
        PQclear(batch->steps[i].result);
    }
    batch->steps_len = 0;
    batch->step = 0;
    batch->by_id_len = 0;
    batch->missed_time = false;
}
