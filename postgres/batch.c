/* A batch: chooses the requests that go together, and sends them as the statements of one
 * transaction. sql.h has the order. */
#include "postgres/batch.h"

#include "base/list.h"

#include <stdlib.h>

enum {
    SINGLES_MAX = 24, /* Of the requests, that are a statement of their own. */
    BYTES_MAX = 4 << 20, /* Of what is written; one record may be more. */
    PREPARE_AFTER = 4,   /* Batches: a program may end after one. */
};

/* ---- Which requests ---- */

const uint8_t *idem__pg_tag_of(const struct idem__pg_write *write)
{
    return (const uint8_t *)write->head.base + write->head.len -
           IDEM__PG_TAG_LEN;
}

/* True for a batch of one claim, update or look over a connection of our own. */
bool idem__pg_speaks_for_itself(const struct idem__pg_conn *conn)
{
    return conn->place->prepare && conn->sent.first == conn->sent.last &&
           !idem__pg_is_single(conn->sent.first);
}

bool idem__pg_is_about_attempts(const struct idem__pg_conn *conn)
{
    const struct idem__pg_request *request = conn->sent.first;

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
        singles += idem__pg_is_single(request);
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

/* ---- Sending ---- */

/* Makes the settings of a connection that is ours alone: once, before its first
 * transaction and in the same flight. */
static bool send_settings(struct idem__pg_conn *conn)
{
    if (conn->has_settings) {
        return true;
    }
    conn->has_settings = true;
    return idem__pg_run(conn, IDEM__PG_SETTINGS, NULL) && idem__pg_sync(conn);
}

static bool name_statements(struct idem__pg_conn *conn)
{
    return conn->prepared || conn->carried++ < PREPARE_AFTER ||
           idem__pg_prepare(conn);
}

static bool send_setup(struct idem__pg_conn *conn)
{
    if (!conn->place->prepare) {
        return idem__pg_run(conn, IDEM__PG_BEGIN, NULL) &&
               idem__pg_run(conn, IDEM__PG_SETUP_LOCAL, NULL);
    }
    return send_settings(conn) && name_statements(conn) &&
           ((conn->settled && idem__pg_speaks_for_itself(conn)) ||
            idem__pg_run(conn, IDEM__PG_SETUP, NULL));
}

/* For its replicas, see conn.h. */
static bool send_barrier(struct idem__pg_conn *conn)
{
    return conn->settled || !idem__pg_is_about_attempts(conn) ||
           idem__pg_run(conn, IDEM__PG_BARRIER, NULL);
}

static bool send_all(struct idem__pg_conn *conn)
{
    return send_setup(conn) && send_barrier(conn) &&
           idem__pg_send_singles(conn) && idem__pg_send_rows(conn) &&
           idem__pg_send_limits(conn) &&
           (conn->place->prepare ||
            idem__pg_run(conn, IDEM__PG_COMMIT, NULL)) &&
           idem__pg_sync(conn);
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
        good =
            idem__pg_run(conn, IDEM__PG_ROLLBACK, NULL) && idem__pg_sync(conn);
    } else {
        choose(conn);
        good = send_all(conn);
    }
    if (good) {
        return 0;
    }
    return conn->params.failed ? IDEM_ENOMEM : IDEM_EUNAVAILABLE;
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
