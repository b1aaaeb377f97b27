/* One connection to the database, which carries batches of requests and learns the
 * server's time from their answers.
 *
 *                  a request waits                      statements, Sync
 *     DOWN -------------------------> CONNECTING -> IDLE ----------> BUSY
 *      ^                                  |          ^                |
 *      |   refused: waiting requests are  |          +----------------+
 *      +--- answered NOT_APPLIED, NEVER --+       all results are here|
 *      |                                                              |
 *      +--------------------------------------------------------------+
 *                     lost: requests in flight are answered UNKNOWN
 *
 * Two batches may be in flight: the server begins the second as soon as it has done the
 * first, and need not wait until we have taken the answers and sent the next. A few large
 * batches cost less than many small ones. So while a batch is in flight, the next one
 * waits for its requests: as many as were waiting when a batch was last answered, and as
 * many as that batch answered. If they do not come, it goes when nothing is in flight. No
 * batch follows one whose failure would make it fail, too: so the connection first names
 * its statements, and over a pooler, where a failed transaction has to be rolled back,
 * only one batch is in flight.
 *
 * A batch is one transaction. If one of its statements fails, the server has done nothing
 * of it, and each of its requests is tried again alone, so that it fails only for itself.
 *
 * Replicas. A commit that waits for a synchronous replica is already on the server's own
 * disk, where no other session sees it. If the server crashes then, or somebody cancels
 * the wait, every session sees it, and yet it is lost if this server is. The server
 * reports a cancelled wait by a warning: we treat the connection as lost. After a crash
 * all connections are new: on each, the first batch that is about attempts waits for the
 * replicas, even if it only reads (BARRIER), so that no caller gets an answer that may
 * still be lost. */
#ifndef IDEM_POSTGRES_CONN_H
#define IDEM_POSTGRES_CONN_H

#include "base/learned_clock.h"
#include "postgres/params.h"
#include "postgres/place.h"
#include "postgres/task_request.h"
#include "postgres/sql.h"

enum idem__pg_state {
    IDEM__PG_DOWN = 0,
    IDEM__PG_CONNECTING,
    IDEM__PG_IDLE,
    IDEM__PG_BUSY,
};

struct idem__pg_requests {
    struct idem__pg_request *first;
    struct idem__pg_request *last;
};

enum {
    IDEM__PG_STEPS_MAX = 96,     /* Results of one batch, with those of Sync. */
    IDEM__PG_REQUESTS_MAX = 128, /* In one batch. */
    IDEM__PG_IN_FLIGHT_MAX = 2,
    /* At most one is sent before the requests of the batch just answered are reaped,
     * which still point to its results. */
    IDEM__PG_BATCHES = IDEM__PG_IN_FLIGHT_MAX + 1,
};

/* A result that the server owes us. */
struct idem__pg_step {
    enum idem__pg_sql sql;
    enum {
        IDEM__PG_STEP_SYNC = 1,
        IDEM__PG_STEP_PREPARE,
        IDEM__PG_STEP_RUN,
    } kind;
    struct idem__pg_request
        *request; /* The one that this statement is for; NULL: several. */
    PGresult *result;
};

/* Atomic: the leader counts, and any thread may read them (idem_postgres_inspect()). */
struct idem__pg_counters {
    uint64_t connections;
    uint64_t batches;  /* Round trips, once there is a connection. */
    uint64_t requests; /* In them. */
};

static inline void idem__pg_count(uint64_t *counter, uint64_t n)
{
    (void)__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* The requests of one transaction, and its results. */
struct idem__pg_batch {
    struct idem__pg_conn *conn;
    struct idem__pg_requests sent; /* Not answered yet. */
    struct idem__pg_request *by_id[IDEM__PG_REQUESTS_MAX]; /* All, sorted. */
    size_t by_id_len;
    struct idem__pg_step steps[IDEM__PG_STEPS_MAX];
    size_t steps_len;
    size_t step; /* The one whose result comes next. */
    int64_t sent_boot_ms;
    bool missed_time; /* The server told the time, and we could not use it. */
};

struct idem__pg_conn {
    struct idem__pg_place *place;
    struct idem_host host;
    PGconn *pg;
    enum idem__pg_state state;
    int64_t connect_until_ms;          /* CONNECTING. */
    PostgresPollingStatusType polling; /* CONNECTING: what libpq waits for. */
    bool has_settings; /* Sent; else they go before the next batch. */
    bool prepared;
    char names[IDEM__PG_SQLS][IDEM__PG_NAME_MAX]; /* Of prepared statements. */
    unsigned carried; /* Batches, over this connection. */
    bool undo;        /* The transaction failed: ROLLBACK comes next. */
    bool useless;     /* ROLLBACK or a preparation failed: it is closed next. */
    bool settled;     /* The replicas have all that its first batch saw. */
    unsigned new_claims; /* In a row, without one that was refused. */
    bool cancelled;      /* Somebody cancelled the wait for a replica. */

    int watch;     /* Watches event and the socket: base/wait.h. */
    int event;     /* Set by wake(). */
    bool is_quiet; /* The event was not set when we last waited. */
    int watched;   /* The socket; -1: none. */
    short watched_for;
    int64_t heard_ms; /* CLOCK_MONOTONIC, when it last answered a batch. */

    struct idem__pg_requests waiting;
    size_t waiting_len;
    struct idem__pg_requests done;

    /* A ring: the batches in flight, from @first on, in the order in which they were sent.
     * The others keep their results until they are used again, because their requests
     * may not have been reaped. */
    struct idem__pg_batch batches[IDEM__PG_BATCHES];
    size_t first;
    size_t in_flight;
    size_t expected;               /* Requests that the next batch waits for. */
    struct idem__pg_params params; /* Of the statement being sent. */

    struct idem__learned_clock clock;
    uint64_t fence_floor;
    char mark[IDEM_MARK_MAX]; /* The store's, as last read. */
    bool answered;            /* The server has answered at least once. */
    bool missed_time; /* By a batch whose requests are not all reaped yet. */
    struct idem__pg_counters counters;
};

/* Keeps @place, and changes the order of its hosts. IDEM_EUNAVAILABLE: descriptors ran
 * out. */
int idem__pg_conn_init(struct idem__pg_conn *conn, struct idem__pg_place *place,
                       const struct idem_host *host);
void idem__pg_conn_finish(struct idem__pg_conn *conn);

/* See the functions of struct idem__remote_ops. */
void idem__pg_conn_send(struct idem__pg_conn *conn,
                        struct idem__pg_request *request);
void idem__pg_conn_abort(struct idem__pg_conn *conn,
                         struct idem__pg_request *request);
void idem__pg_conn_work(struct idem__pg_conn *conn);
struct idem__pg_request *idem__pg_conn_reap(struct idem__pg_conn *conn);
void idem__pg_conn_push(struct idem__pg_conn *conn);
void idem__pg_conn_wait(struct idem__pg_conn *conn, int64_t deadline_ms);
void idem__pg_conn_wake(struct idem__pg_conn *conn);
int64_t idem__pg_conn_due_ms(struct idem__pg_conn *conn);
size_t idem__pg_conn_wanted(const struct idem__pg_conn *conn);

/* ---- batch.c ---- */

/* Sends as many waiting requests as fit, as one batch, which is in flight from then on.
 * IDEM_EUNAVAILABLE: the connection failed. IDEM_ENOMEM: the server will do nothing of the
 * part that was sent, because the Sync that commits it was not. */
int idem__pg_batch_send(struct idem__pg_conn *conn);

/* Takes one result of the batch. False: the connection cannot be used after it. */
bool idem__pg_batch_take(struct idem__pg_batch *batch, PGresult *result);

/* Called when all results are here. Answers its requests, or has each of them tried again
 * alone. */
void idem__pg_batch_end(struct idem__pg_batch *batch);

/* Frees its results. */
void idem__pg_batch_clear(struct idem__pg_batch *batch);

/* ---- For both ---- */

/* Returns the @n-th batch in flight, from 0 on. */
static inline struct idem__pg_batch *idem__pg_batch_at(
    struct idem__pg_conn *conn, size_t n)
{
    return &conn->batches[(conn->first + n) % IDEM__PG_BATCHES];
}

/* Ends @request, which is in @batch or (NULL) still waits, with an error. */
void idem__pg_conn_fail(struct idem__pg_conn *conn,
                        struct idem__pg_batch *batch,
                        struct idem__pg_request *request, enum idem__said said,
                        const struct idem_error *error);

/* Moves @request from @from to the end of conn->done. */
void idem__pg_conn_done(struct idem__pg_conn *conn,
                        struct idem__pg_requests *from,
                        struct idem__pg_request *request);

/* ---- The files of a batch ----
 *
 * batch.c chooses its requests and sends it. batch_rows.c makes one statement of many
 * claims, updates or looks; batch_statement.c sends a statement, and makes one of each
 * other request; batch_results.c reads the results. */

/* True for a request that has a statement of its own. */
bool idem__pg_is_single(const struct idem__pg_request *request);

/* True for a batch of one claim, update or look, over a connection that is ours alone. */
bool idem__pg_speaks_for_itself(const struct idem__pg_batch *batch);

/* True if the batch also reads the records that refuse its claims. */
bool idem__pg_shows(const struct idem__pg_batch *batch);

/* False for a batch whose answers only inform: no attempt depends on them. */
bool idem__pg_is_about_attempts(const struct idem__pg_batch *batch);

/* Returns the tag of the record to be written: the last bytes of its head. */
const uint8_t *idem__pg_tag_of(const struct idem__pg_write *write);

/* ---- Sending. False: the connection failed, or (params.failed) memory ran out ---- */

/* Runs @sql with the params of the connection, and empties them. @request: the one that
 * the statement is for, or NULL. */
bool idem__pg_run(struct idem__pg_batch *batch, enum idem__pg_sql sql,
                  struct idem__pg_request *request);
bool idem__pg_sync(struct idem__pg_batch *batch);

/* Prepares the statements, on the same trip as the first batch that uses them. */
bool idem__pg_prepare(struct idem__pg_batch *batch);

/* Sends the requests of the batch; limits in the order of their windows: see sql.h. */
bool idem__pg_send_rows(struct idem__pg_batch *batch);
bool idem__pg_send_singles(struct idem__pg_batch *batch);
bool idem__pg_send_limits(struct idem__pg_batch *batch);

#endif
