/* One connection to the database, which carries batches of requests, one batch at a
 * time; and the time, as the server's answers tell it.
 *
 *                  a request waits                      statements, Sync
 *     DOWN -------------------------> CONNECTING -> IDLE ----------> BUSY
 *      ^                                  |          ^                |
 *      |   refused: those that wait are   |          +----------------+
 *      +------- answered NOT_APPLIED -----+          Sync came back   |
 *      |                                                              |
 *      +--------------------------------------------------------------+
 *                     lost: those of the batch are answered UNKNOWN
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
#include "postgres/request.h"
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
    bool useless;   /* ROLLBACK failed, or a preparation: it is closed next. */
    bool settled;   /* The replicas have what it saw at first. */
    bool cancelled; /* The wait for them was, in this batch. */

    int watch;     /* Of the next two: base/watch.h. */
    int event;     /* Of wake(). */
    bool is_quiet; /* The event was not set when it was last waited for. */
    int watched;   /* Its socket; -1: none. */
    short watched_for;
    int64_t heard_ms; /* CLOCK_MONOTONIC, when it last answered a batch. */

    struct idem__pg_requests waiting;
    size_t waiting_len;
    struct idem__pg_requests sent; /* The batch. */
    struct idem__pg_request
        *by_id[IDEM__PG_REQUESTS_MAX]; /* The same, sorted. */
    size_t by_id_len;
    struct idem__pg_requests done;

    struct idem__pg_params params;
    struct idem__pg_step steps[IDEM__PG_STEPS_MAX];
    size_t steps_len;
    size_t step; /* Whose result comes next. */
    /* Results of the batch before: its requests are answered, and may not have been
     * reaped when the next batch is sent. */
    PGresult *kept[IDEM__PG_STEPS_MAX];
    size_t kept_len;
    int64_t sent_boot_ms;

    struct idem__learned_clock clock;
    uint64_t fence_floor;
    bool answered; /* At all. */
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
int64_t idem__pg_conn_due_ms(const struct idem__pg_conn *conn);

/* ---- batch.c ---- */

/* Sends those that wait, as many as fit, as one batch. IDEM_EUNAVAILABLE: the connection
 * failed. IDEM_ENOMEM: nothing will be done of what was sent, for its end was not. */
int idem__pg_batch_send(struct idem__pg_conn *conn);

/* Takes one result of the batch. False: it says that the connection is of no use. */
bool idem__pg_batch_take(struct idem__pg_conn *conn, PGresult *result);

/* All results are there: answers its requests, or has them tried again alone. */
void idem__pg_batch_end(struct idem__pg_conn *conn);

/* Frees its results; and those of the batch before. */
void idem__pg_batch_clear(struct idem__pg_conn *conn);
void idem__pg_batch_clear_kept(struct idem__pg_conn *conn);

/* ---- For both ---- */

/* Ends @request with an error. */
void idem__pg_conn_fail(struct idem__pg_conn *conn,
                        struct idem__pg_request *request,
                        enum idem__pg_said said,
                        const struct idem_error *error);

/* Moves @request, which is in @from, to the end of done. */
void idem__pg_conn_done(struct idem__pg_conn *conn,
                        struct idem__pg_requests *from,
                        struct idem__pg_request *request);

#endif
