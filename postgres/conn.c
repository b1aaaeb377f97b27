/* Makes a connection, watches it, exchanges batches over it, and loses it. */
#include "postgres/conn.h"

#include "base/host.h"
#include "base/list.h"
#include "base/wait.h"
#include "core/error.h"

#include <assert.h>
#include <unistd.h>

enum {
    LONGEST_MS = 60 * 1000, /* One wait at most. */
    /* So many waiting requests are sent before those of the last batch are reaped, so that
     * the server works meanwhile. Fewer wait for company: a batch takes mostly the time of
     * its flush, which does not depend on their number. */
    MANY = 16,
    FRESH_MS = 100, /* After an answer the server counts as alive this long. */
};

int idem__pg_conn_init(struct idem__pg_conn *conn, struct idem__pg_place *place,
                       const struct idem_host *host)
{
    conn->place = place;
    conn->host = *host;
    conn->watched = -1;
    conn->watch = idem__watch_open();
    conn->event = idem__event_open();
    if (conn->watch < 0 || conn->event < 0 ||
        idem__watch_add(conn->watch, conn->event, POLLIN) != 0) {
        return IDEM_EUNAVAILABLE;
    }
    return 0;
}

/* ---- Watching its socket ---- */

/* Watches the socket for @events. While it connects, libpq may close a socket and open
 * another one with the same number, so the watch is set anew then even if nothing seems to
 * have changed. */
static void watch(struct idem__pg_conn *conn, short events)
{
    int fd = conn->pg == NULL ? -1 : PQsocket(conn->pg);

    if (conn->watched >= 0 && conn->watched != fd) {
        (void)idem__watch_remove(conn->watch, conn->watched);
        conn->watched = -1;
    }
    if (fd < 0 || (fd == conn->watched && events == conn->watched_for &&
                   conn->state != IDEM__PG_CONNECTING)) {
        return;
    }
    if (idem__watch_change(conn->watch, fd, events) != 0) {
        (void)idem__watch_add(conn->watch, fd, events);
    }
    conn->watched = fd;
    conn->watched_for = events;
}

static void unwatch(struct idem__pg_conn *conn)
{
    if (conn->watched >= 0) {
        (void)idem__watch_remove(conn->watch, conn->watched);
        conn->watched = -1;
    }
}

/* ---- Lists ---- */

void idem__pg_conn_done(struct idem__pg_conn *conn,
                        struct idem__pg_requests *from,
                        struct idem__pg_request *request)
{
    IDEM__LIST_REMOVE(from, request);
    conn->waiting_len -= from == &conn->waiting;
    request->state = IDEM__PG_DONE;
    IDEM__LIST_APPEND(&conn->done, request);
}

void idem__pg_conn_fail(struct idem__pg_conn *conn,
                        struct idem__pg_batch *batch,
                        struct idem__pg_request *request, enum idem__said said,
                        const struct idem_error *error)
{
    request->said = said;
    request->error = *error;
    request->sent = batch != NULL;
    idem__pg_conn_done(conn, batch != NULL ? &batch->sent : &conn->waiting,
                       request);
}

static void fail_batch(struct idem__pg_batch *batch, enum idem__said said,
                       const struct idem_error *error)
{
    while (batch->sent.first != NULL) {
        idem__pg_conn_fail(batch->conn, batch, batch->sent.first, said, error);
    }
}

static void fail_waiting(struct idem__pg_conn *conn, enum idem__said said,
                         const struct idem_error *error)
{
    while (conn->waiting.first != NULL) {
        idem__pg_conn_fail(conn, /* batch= */ NULL, conn->waiting.first, said,
                           error);
    }
}

void idem__pg_conn_send(struct idem__pg_conn *conn,
                        struct idem__pg_request *request)
{
    request->said = 0;
    request->sent = false;
    request->timed_out = false;
    request->applied = false;
    request->row_code = 0;
    request->result = NULL;
    request->after = NULL;
    /* A wait for a lock on a table holds up all that is in its transaction. */
    request->alone = request->ask == IDEM__PG_ASK_WAIT ||
                     request->ask == IDEM__PG_ASK_MARK_WAIT;
    memset(&request->error, 0, sizeof(request->error));
    request->state = IDEM__PG_WAITING;
    IDEM__LIST_APPEND(&conn->waiting, request);
    conn->waiting_len++;
}

struct idem__pg_request *idem__pg_conn_reap(struct idem__pg_conn *conn)
{
    struct idem__pg_request *request = conn->done.first;

    if (request != NULL) {
        IDEM__LIST_REMOVE(&conn->done, request);
        request->state = IDEM__PG_NOWHERE;
    } else {
        /* All have decided: the next batch may learn the time again. */
        conn->missed_time = false;
    }
    return request;
}

/* ---- Losing it ---- */

/* Closes the connection. The server may have done the batches in flight, or may still do
 * them, so their requests are answered UNKNOWN; those that wait go over the next
 * connection. */
static void lose(struct idem__pg_conn *conn, const struct idem_error *error)
{
    unwatch(conn);
    idem__pg_params_reset(&conn->params);
    while (conn->in_flight > 0) {
        struct idem__pg_batch *batch = idem__pg_batch_at(conn, 0);

        conn->first++;
        conn->in_flight--;
        idem__pg_batch_clear(batch);
        fail_batch(batch, IDEM__SAID_UNKNOWN, error);
    }
    PQfinish(conn->pg);
    conn->pg = NULL;
    conn->state = IDEM__PG_DOWN;
    conn->undo = false;
    conn->useless = false;
    conn->expected = 0;
}

static void lose_saying(struct idem__pg_conn *conn)
{
    struct idem_error error;

    (void)idem__error(&error, IDEM_EUNAVAILABLE,
                      conn->cancelled
                          ? "PostgreSQL (%s): the wait for a synchronous "
                            "replica was cancelled"
                          : "PostgreSQL (%s): the connection was lost",
                      conn->place->endpoint);
    lose(conn, &error);
}

void idem__pg_conn_finish(struct idem__pg_conn *conn)
{
    size_t i;

    for (i = 0; i < IDEM__PG_BATCHES; i++) {
        idem__pg_batch_clear(&conn->batches[i]);
    }
    PQfinish(conn->pg);
    if (conn->event >= 0) {
        (void)close(conn->event);
    }
    if (conn->watch >= 0) {
        (void)close(conn->watch);
    }
    idem__pg_params_free(&conn->params);
}

void idem__pg_conn_abort(struct idem__pg_conn *conn,
                         struct idem__pg_request *request)
{
    struct idem_error error;

    (void)idem__error(&error, IDEM_EUNAVAILABLE, "the store was closed");
    if (request->state == IDEM__PG_SENT) {
        /* A statement that was sent cannot be recalled: the connection goes with it. */
        lose(conn, &error);
    } else if (request->state == IDEM__PG_WAITING) {
        idem__pg_conn_fail(conn, /* batch= */ NULL, request,
                           IDEM__SAID_NOT_APPLIED, &error);
    }
}

/* ---- Making it ---- */

/* Takes the server's notices, which libpq would print to stderr. The server writes the
 * text of a warning in its own language, but names the function that raised it. */
static void hear(void *arg, const PGresult *result)
{
    struct idem__pg_conn *conn = arg;
    const char *from = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);

    if (from != NULL && strcmp(from, "SyncRepWaitForLSN") == 0) {
        conn->cancelled = true;
    }
}

static void refuse(struct idem__pg_conn *conn)
{
    struct idem_error error;
    enum idem__said said =
        idem__pg_error_connect(conn->pg, conn->place, &error);

    fail_waiting(conn, said, &error);
    unwatch(conn);
    PQfinish(conn->pg);
    conn->pg = NULL;
    conn->state = IDEM__PG_DOWN;
}

static void connect_first(struct idem__pg_conn *conn)
{
    conn->pg = PQconnectStartParams((const char *const *)conn->place->names,
                                    (const char *const *)conn->place->values,
                                    /* expand_dbname= */ 0);
    if (conn->pg == NULL || PQstatus(conn->pg) == CONNECTION_BAD) {
        refuse(conn);
        return;
    }
    (void)PQsetErrorVerbosity(conn->pg, PQERRORS_VERBOSE); /* See error.c. */
    conn->state = IDEM__PG_CONNECTING;
    conn->connect_until_ms =
        idem__time_add(idem__mono_ms(), conn->place->connect_ms);
    conn->polling = PGRES_POLLING_WRITING;
    conn->prepared = false;
    conn->carried = 0;
    conn->has_settings = false;
    conn->settled = false;
    conn->cancelled = false;
    conn->new_claims = 0;
    idem__pg_count(&conn->counters.connections, 1);
}

/* True if the socket is ready: libpq forbids to call PQconnectPoll() before that. */
static bool is_ready(const struct idem__pg_conn *conn)
{
    struct pollfd fd = {
        .fd = PQsocket(conn->pg),
        .events = conn->polling == PGRES_POLLING_READING ? POLLIN : POLLOUT,
    };

    return poll(&fd, 1, 0) != 0;
}

static void connect_further(struct idem__pg_conn *conn)
{
    while (conn->state == IDEM__PG_CONNECTING && is_ready(conn)) {
        conn->polling = PQconnectPoll(conn->pg);
        if (conn->polling == PGRES_POLLING_FAILED) {
            refuse(conn);
            return;
        }
        if (conn->polling == PGRES_POLLING_OK) {
            (void)PQsetNoticeReceiver(conn->pg, hear, conn);
            if (PQsetnonblocking(conn->pg, 1) != 0 ||
                PQenterPipelineMode(conn->pg) != 1) {
                refuse(conn);
                return;
            }
            conn->state = IDEM__PG_IDLE;
            watch(conn, POLLIN);
            return;
        }
    }
    if (conn->state == IDEM__PG_CONNECTING) {
        watch(conn, conn->polling == PGRES_POLLING_READING ? POLLIN : POLLOUT);
    }
}

static void make_connection(struct idem__pg_conn *conn)
{
    locale_t before = idem__pg_place_plain(conn->place);

    if (conn->state == IDEM__PG_DOWN) {
        connect_first(conn);
    }
    if (conn->state == IDEM__PG_CONNECTING) {
        connect_further(conn);
    }
    (void)uselocale(before);
}

/* ---- Using it ---- */

/* Takes the results of @batch that have come. False: the connection was lost. */
static bool take_results(struct idem__pg_conn *conn,
                         struct idem__pg_batch *batch)
{
    unsigned nothing = 0; /* NULLs in a row; one follows each result. */

    while (batch->step < batch->steps_len) {
        PGresult *result;

        if (PQisBusy(conn->pg)) {
            return true;
        }
        result = PQgetResult(conn->pg);
        if (result != NULL && !idem__pg_batch_take(batch, result)) {
            struct idem_error error;

            (void)idem__pg_error_read(result, conn->place, &error);
            PQclear(result);
            lose(conn, &error);
            return false;
        }
        nothing = result == NULL ? nothing + 1 : 0;
        if (PQstatus(conn->pg) == CONNECTION_BAD || nothing > 2) {
            lose_saying(conn);
            return false;
        }
    }
    return true;
}

/* Takes the results of the batches in flight, in their order: so a warning that comes
 * before the end of a batch is about that batch. */
static void take_batches(struct idem__pg_conn *conn)
{
    while (conn->in_flight > 0 && !conn->useless) {
        struct idem__pg_batch *batch = idem__pg_batch_at(conn, 0);

        if (!take_results(conn, batch)) {
            return;
        }
        if (conn->cancelled) {
            /* Its commit may be on this server alone: see conn.h. Losing the connection
             * makes it UNKNOWN, and the next connection waits for the replicas. */
            lose_saying(conn);
            return;
        }
        if (batch->step < batch->steps_len) {
            return;
        }
        conn->first++;
        conn->in_flight--;
        conn->heard_ms = idem__mono_ms();
        conn->expected = conn->waiting_len + batch->by_id_len;
        idem__pg_batch_end(batch);
    }
    if (conn->in_flight == 0) {
        conn->state = IDEM__PG_IDLE;
    }
}

/* Sends the rest of a batch. False: the connection was lost. */
static bool send_on(struct idem__pg_conn *conn)
{
    int left = PQflush(conn->pg);

    if (left < 0) {
        lose_saying(conn);
        return false;
    }
    watch(conn, left > 0 ? POLLIN | POLLOUT : POLLIN);
    return true;
}

static void exchange(struct idem__pg_conn *conn)
{
    if (!send_on(conn)) {
        return;
    }
    /* Results that came before the connection broke say nothing without that of Sync,
     * which commits. */
    if (PQconsumeInput(conn->pg) != 1) {
        lose_saying(conn);
        return;
    }
    take_batches(conn);
}

/* ---- Time ---- */

static void time_out(struct idem__pg_conn *conn)
{
    int64_t now_ms = idem__mono_ms();
    struct idem__pg_request *request = conn->waiting.first;
    struct idem_error error;
    bool stuck = false;
    size_t i;

    (void)idem__error(&error, IDEM_EUNAVAILABLE,
                      "PostgreSQL (%s) did not answer in time",
                      conn->place->endpoint);
    while (request != NULL) {
        struct idem__pg_request *next = request->next;

        if (now_ms >= request->deadline_ms) {
            /* A batch without requests is a ROLLBACK, which has no deadline of its own. */
            stuck = stuck || (conn->in_flight > 0 &&
                              idem__pg_batch_at(conn, 0)->sent.first == NULL);
            request->timed_out = true;
            idem__pg_conn_fail(conn, /* batch= */ NULL, request,
                               IDEM__SAID_NOT_APPLIED, &error);
        }
        request = next;
    }
    for (i = 0; i < conn->in_flight; i++) {
        request = idem__pg_batch_at(conn, i)->sent.first;
        for (; request != NULL; request = request->next) {
            request->timed_out = now_ms >= request->deadline_ms;
            stuck = stuck || request->timed_out;
        }
    }
    stuck = stuck ||
            (conn->state == IDEM__PG_CONNECTING &&
             (conn->waiting.first == NULL || now_ms >= conn->connect_until_ms));
    if (stuck) {
        /* libpq does not leave a silent host by itself: try the next one first. */
        idem__pg_place_turn(conn->place);
        lose(conn, &error);
    }
}

static int64_t earliest(const struct idem__pg_requests *requests)
{
    const struct idem__pg_request *request = requests->first;
    int64_t due_ms = IDEM_NEVER;

    for (; request != NULL; request = request->next) {
        due_ms = request->deadline_ms < due_ms ? request->deadline_ms : due_ms;
    }
    return due_ms;
}

int64_t idem__pg_conn_due_ms(struct idem__pg_conn *conn)
{
    int64_t due_ms = earliest(&conn->waiting);
    size_t i;

    if (conn->done.first != NULL ||
        (conn->waiting.first != NULL &&
         (conn->state == IDEM__PG_IDLE || conn->state == IDEM__PG_DOWN))) {
        return 0;
    }
    if (conn->state == IDEM__PG_CONNECTING && conn->connect_until_ms < due_ms) {
        due_ms = conn->connect_until_ms;
    }
    for (i = 0; i < conn->in_flight; i++) {
        int64_t sent_ms = earliest(&idem__pg_batch_at(conn, i)->sent);

        due_ms = sent_ms < due_ms ? sent_ms : due_ms;
    }
    return due_ms;
}

/* Finds out whether the server has ended the idle connection, so that no request fails for
 * that. Requests that wait are sent at once if the server has just answered. */
static void look_at_idle(struct idem__pg_conn *conn)
{
    if (conn->waiting.first != NULL &&
        idem__mono_ms() - conn->heard_ms < FRESH_MS) {
        return;
    }
    if (PQconsumeInput(conn->pg) != 1 || PQstatus(conn->pg) == CONNECTION_BAD) {
        lose_saying(conn);
    }
}

static void begin_batch(struct idem__pg_conn *conn)
{
    struct idem_error error;

    conn->state = IDEM__PG_BUSY;
    conn->params.failed = false;
    switch (idem__pg_batch_send(conn)) {
    case 0:
        (void)send_on(conn); /* There is nothing to read yet. */
        return;
    case IDEM_ENOMEM:
        (void)idem__error_plain(&error, IDEM_ENOMEM);
        fail_batch(idem__pg_batch_at(conn, conn->in_flight - 1),
                   IDEM__SAID_NEVER, &error);
        break;
    default:
        break;
    }
    lose_saying(conn);
}

/* True if another batch may be sent before those in flight are answered: its statements
 * are prepared and the replicas settled, so it does not fail because an earlier one
 * does. */
static bool may_follow(const struct idem__pg_conn *conn)
{
    return conn->state == IDEM__PG_BUSY &&
           conn->in_flight < IDEM__PG_IN_FLIGHT_MAX && conn->prepared &&
           conn->settled && !conn->useless;
}

size_t idem__pg_conn_wanted(const struct idem__pg_conn *conn)
{
    if (conn->state != IDEM__PG_BUSY) {
        return 1;
    }
    if (!may_follow(conn)) {
        return SIZE_MAX;
    }
    return conn->waiting_len < conn->expected
               ? conn->expected - conn->waiting_len
               : 1;
}

void idem__pg_conn_push(struct idem__pg_conn *conn)
{
    bool idle = conn->state == IDEM__PG_IDLE && !conn->useless;

    if ((idle && (conn->waiting.first != NULL || conn->undo)) ||
        (may_follow(conn) && conn->waiting.first != NULL &&
         conn->waiting_len >= conn->expected)) {
        begin_batch(conn);
    }
}

void idem__pg_conn_work(struct idem__pg_conn *conn)
{
    if (!conn->is_quiet) {
        idem__event_clear(conn->event);
    }
    conn->is_quiet = false;
    time_out(conn);
    if (conn->state == IDEM__PG_BUSY) {
        exchange(conn);
    } else if (conn->state == IDEM__PG_IDLE) {
        look_at_idle(conn);
    }
    /* Only once the requests of its last batch are reaped: they point to its results. */
    if (conn->useless && conn->done.first == NULL) {
        lose_saying(conn);
    }
    if (conn->state == IDEM__PG_CONNECTING ||
        (conn->state == IDEM__PG_DOWN && conn->waiting.first != NULL)) {
        make_connection(conn);
    }
    if (conn->undo || (conn->in_flight == 0 && conn->waiting_len >= MANY)) {
        idem__pg_conn_push(conn);
    }
}

void idem__pg_conn_wait(struct idem__pg_conn *conn, int64_t deadline_ms)
{
    struct pollfd ready[2];
    int64_t due_ms = idem__pg_conn_due_ms(conn);
    int64_t left_ms;
    int n;

    due_ms = due_ms < deadline_ms ? due_ms : deadline_ms;
    left_ms = due_ms == 0 ? 0 : due_ms - idem__mono_ms();
    left_ms = left_ms < 0 ? 0 : left_ms;
    n = idem__watch_wait(conn->watch, ready, 2,
                         left_ms > LONGEST_MS ? LONGEST_MS : (int)left_ms);
    conn->is_quiet = true;
    while (n-- > 0) {
        conn->is_quiet = conn->is_quiet && ready[n].fd != conn->event;
    }
}

void idem__pg_conn_wake(struct idem__pg_conn *conn)
{
    idem__event_set(conn->event);
}
