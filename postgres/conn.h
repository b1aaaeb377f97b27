/* One connection to the database, which carries batches of requests; and the time, as the
 * server's answers tell it.
 *
 *                  a request waits                      statements, Sync
 *     DOWN -------------------------> CONNECTING -> IDLE ----------> BUSY
 *      ^                                  |          ^                |
 *      |   refused: those that wait are   |          +----------------+
 *      +------- answered NOT_APPLIED -----+       all have come back  |
 *      |                                                              |
 *      +--------------------------------------------------------------+
 *                     lost: those in flight are answered UNKNOWN
 *
 * Two batches may be in flight: the server begins the second one as soon as the first is
 * done, and does not wait for us to take the answers and send the next. Few large batches
 * cost less than many small ones. So while one is in flight the next goes once nobody
 * else is expected: those have come that waited when a batch was last answered, and as
 * many as it answered. If they do not come, it goes when nothing is in flight. And none
 * follows one whose failure would be its own: statements get their names first, and over
 * a pooler's connection a failed transaction has to be rolled back.
 *
 * A batch is one transaction. If one of its statements fails, nothing of it was done:
 * each of its requests is tried again alone, so that it fails for itself only.
 *
 * Replicas. A commit that waits for a synchronous replica is on the server's own disk
 * already, and nobody sees it. If the server crashes then, or somebody cancels the wait,
 * everybody does, and it is lost with this server all the same. A cancelled wait is told
 * by a warning: the connection is taken for lost. And after a crash all connections are
 * new ones: the first batch of each that is about attempts waits for the replicas, even
 * if it only reads (BARRIER), so that nobody is answered with what may be lost. */
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
    IDEM__PG_STEPS_MAX = 96, /* Results of one batch, those of Sync included. */
    IDEM__PG_REQUESTS_MAX = 128, /* In one batch. */
    IDEM__PG_IN_FLIGHT_MAX = 2,
    /* No more than one is sent before those are reaped that were just answered. */
    IDEM__PG_BATCHES = IDEM__PG_IN_FLIGHT_MAX + 1,
};

/* A result that is to come. */
struct idem__pg_step {
    enum idem__pg_sql sql;
    enum {
        IDEM__PG_STEP_SYNC = 1,
        IDEM__PG_STEP_PREPARE,
        IDEM__PG_STEP_RUN,
    } kind;
    struct idem__pg_request
        *request; /* Of a statement that is one request's. */
    PGresult *result;
};

/* Atomic: the leader counts, and any thread may look (idem_postgres_inspect()). */
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
    size_t step; /* Its result comes next. */
    int64_t sent_boot_ms;
    bool missed_time; /* It was told, and could not be taken in. */
};

struct idem__pg_conn {
    struct idem__pg_place *place;
    struct idem_host host;
    PGconn *pg;
    enum idem__pg_state state;
    int64_t connect_until_ms;          /* CONNECTING. */
    PostgresPollingStatusType polling; /* CONNECTING: what is waited for. */
    bool has_settings; /* Or they are sent with what comes first. */
    bool prepared;
    char names[IDEM__PG_SQLS][IDEM__PG_NAME_MAX]; /* Of what is prepared. */
    unsigned carried; /* Batches, over this connection. */
    bool undo;        /* The transaction failed: ROLLBACK comes next. */
    bool useless; /* ROLLBACK failed, or a preparation: it is closed next. */
    bool settled; /* The replicas have what it saw at first. */
    unsigned new_claims; /* In a row, without one that was refused. */
    bool cancelled;      /* The wait for them was, in this batch. */

    int watch;     /* Of the next two: base/wait.h. */
    int event;     /* Of wake(). */
    bool is_quiet; /* The event was not set when it was last waited for. */
    int watched;   /* Its socket; -1: none. */
    short watched_for;
    int64_t heard_ms; /* CLOCK_MONOTONIC, when it last answered a batch. */

    struct idem__pg_requests waiting;
    size_t waiting_len;
    struct idem__pg_requests done;

    /* A ring: those in flight, in the order in which they were sent, from @first on. The
     * others keep their results until their turn comes again, for their requests may not
     * have been reaped. */
    struct idem__pg_batch batches[IDEM__PG_BATCHES];
    size_t first;
    size_t in_flight;
    size_t expected; /* How many wait, once all have come who may. */
    struct idem__pg_params params; /* Of the statement that is being sent. */

    struct idem__learned_clock clock;
    uint64_t fence_floor;
    char mark[IDEM_MARK_MAX]; /* The store's, as it was last read. */
    bool answered;            /* At all. */
    bool missed_time; /* By a batch whose requests have not all been reaped. */
    struct idem__pg_counters counters;
};

/* @place is kept, and its hosts change places. IDEM_EUNAVAILABLE: no descriptor. */
int idem__pg_conn_init(struct idem__pg_conn *conn, struct idem__pg_place *place,
                       const struct idem_host *host);
void idem__pg_conn_finish(struct idem__pg_conn *conn);

/* As the functions of struct idem__remote_ops. */
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

/* Sends those that wait, as many as fit, as one batch, which is in flight from then on.
 * IDEM_EUNAVAILABLE: the connection failed. IDEM_ENOMEM: nothing will be done of what was
 * sent, for its end was not. */
int idem__pg_batch_send(struct idem__pg_conn *conn);

/* Takes one result of the batch. False: it says that the connection is of no use. */
bool idem__pg_batch_take(struct idem__pg_batch *batch, PGresult *result);

/* All results are there: answers its requests, or has them tried again alone. */
void idem__pg_batch_end(struct idem__pg_batch *batch);

/* Frees its results. */
void idem__pg_batch_clear(struct idem__pg_batch *batch);

/* ---- For both ---- */

/* The @n-th batch in flight, from 0 on. */
static inline struct idem__pg_batch *idem__pg_batch_at(
    struct idem__pg_conn *conn, size_t n)
{
    return &conn->batches[(conn->first + n) % IDEM__PG_BATCHES];
}

/* Ends @request with an error: one of @batch, or, where that is NULL, one that waits. */
void idem__pg_conn_fail(struct idem__pg_conn *conn,
                        struct idem__pg_batch *batch,
                        struct idem__pg_request *request, enum idem__said said,
                        const struct idem_error *error);

/* Moves @request, which is in @from, to the end of done. */
void idem__pg_conn_done(struct idem__pg_conn *conn,
                        struct idem__pg_requests *from,
                        struct idem__pg_request *request);

/* ---- The files of a batch ----
 *
 * batch.c chooses its requests and sends it, what goes together as rows is in batch_rows.c,
 * one statement on its way, and what is a statement of its own, in batch_statement.c, and
 * what its results mean in batch_results.c. */

/* True for a request that is a statement of its own. */
bool idem__pg_is_single(const struct idem__pg_request *request);

/* True for a batch of one claim, update or look over a connection of our own. */
bool idem__pg_speaks_for_itself(const struct idem__pg_batch *batch);

/* True for a batch whose refused claims are shown the record that is there. */
bool idem__pg_shows(const struct idem__pg_batch *batch);

/* False for a batch that is only to be looked at. */
bool idem__pg_is_about_attempts(const struct idem__pg_batch *batch);

/* The last bytes of its head. */
const uint8_t *idem__pg_tag_of(const struct idem__pg_write *write);

/* ---- Sending: false if the connection failed, or with params.failed for memory ---- */

/* Runs @sql with the params of the connection, which are empty then. @request: whose it is, or NULL. */
bool idem__pg_run(struct idem__pg_batch *batch, enum idem__pg_sql sql,
                  struct idem__pg_request *request);
bool idem__pg_sync(struct idem__pg_batch *batch);

/* Names the statements, in the same flight as the batch that uses them first. */
bool idem__pg_prepare(struct idem__pg_batch *batch);

/* Those of the batch; limits in the order of their windows: see sql.h. */
bool idem__pg_send_rows(struct idem__pg_batch *batch);
bool idem__pg_send_singles(struct idem__pg_batch *batch);
bool idem__pg_send_limits(struct idem__pg_batch *batch);

#endif
