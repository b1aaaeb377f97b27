/* The tables of the PostgreSQL store, in memory: they answer a batch of requests as a server
 * would, one statement after the other.
 *
 *     begin ---> step ---> step ... ---> COMMIT   all of it is there, for everybody
 *       |          |
 *       |          +--- blocked: another transaction has to end first
 *       +--- fail, or roll back: nothing of it is there
 *
 * The statements are those of postgres/sql.c. Each sees everything that was committed before
 * it began, and the changes of its own transaction. Locks are those of PostgreSQL: updates
 * and purges skip a row that another transaction has written, deleted or locked, and a claim
 * waits for another one that is not committed. Claims and RAISE share the lock on
 * idem_store, and WAIT has it alone. Neither time nor a lock_timeout passes by itself: the
 * caller moves both.
 *
 * tests/postgres/table.c plays the same requests against a real server. */
#ifndef TEST_PG_TABLE_H
#define TEST_PG_TABLE_H

#include "postgres/task_request.h"
#include "postgres/sql.h"

enum {
    PG_ROWS_MAX = 16,
    PG_WINDOWS_MAX = 4,
    PG_COUNTED_MAX = 64, /* Requests that a window remembers. */
    PG_STEPS_MAX = 64,
    PG_TOLD_MAX = 64,
};

/* Bytes of a column, whose memory serves the next ones. */
struct pg_bytes {
    uint8_t *base;
    size_t len;
    size_t cap;
    bool is_null;
};

struct pg_version {
    bool exists;
    uint8_t nonce[16];
    uint8_t tag[IDEM__PG_TAG_LEN];
    int64_t fence;
    int64_t status;
    int64_t deadline;
    struct pg_bytes scope;
    struct pg_bytes key;
    struct pg_bytes head;
    struct pg_bytes result;
    struct pg_bytes input;
};

struct pg_tx;

struct pg_row {
    bool used;
    uint8_t id[IDEM_ID_LEN];
    struct pg_version now;  /* Committed. */
    struct pg_version next; /* As @holder will leave it. */
    struct pg_tx *holder;   /* NULL: nobody. */
};

struct pg_counted {
    uint8_t request[16];
    int64_t entry;
};

struct pg_count {
    bool exists;
    int64_t expires;
    int64_t used;
    int64_t refusals;
    size_t requests_len;
    struct pg_counted requests[PG_COUNTED_MAX];
};

struct pg_window {
    bool used;
    uint8_t id[IDEM_ID_LEN];
    struct pg_count now;
    struct pg_count next;
    struct pg_tx *holder;
};

struct pg_table {
    struct pg_row rows[PG_ROWS_MAX];
    struct pg_window windows[PG_WINDOWS_MAX];
    int64_t fence_floor;
    struct pg_tx *floor_holder; /* Has raised it, and not committed. */
    unsigned sharers;           /* Of the lock on idem_store ... */
    struct pg_tx *waiter;       /* ... or the one that has it alone. */
    int64_t transactions;       /* Those of purges. */

    /* The caller's. */
    int64_t now_ms;       /* The time on the server's clock. */
    size_t result_inline; /* Bodies of at most so many bytes come with a row. */
    size_t input_inline;
    /* If two requests of one statement write one row, a server may take either. Returns
     * whether it takes @later. NULL: never. */
    bool (*takes)(void *ctx, const struct idem__pg_request *later);
    void *ctx;
};

enum pg_went {
    PG_RAN = 1,   /* A statement was run. */
    PG_BLOCKED,   /* It waits for another transaction. */
    PG_COMMITTED, /* The batch is over. */
};

struct pg_step {
    enum idem__pg_sql sql;
    struct idem__pg_request
        *request; /* Of a statement that is one request's. */
    PGresult *result;
};

/* A transaction in flight: a batch. */
struct pg_tx {
    struct pg_table *table;
    struct idem__pg_request **requests; /* The caller's. */
    size_t requests_len;

    /* What the answer tells: times, in their order, and the floor. */
    int64_t told_ms[PG_TOLD_MAX];
    size_t told_len;
    int64_t fence_floor;
    bool tells_floor;

    enum idem__pg_sql sql; /* Of the last statement that was begun ... */
    struct idem__pg_request
        *request; /* ... and whose it was, if it was one's. */
    bool over;    /* COMMIT or ROLLBACK was done. */

    /* This file's. */
    bool shows; /* It has THERE. */
    bool has_setup;
    bool shares;          /* The lock on idem_store. */
    size_t at;            /* Which statement comes next, */
    size_t part;          /* and where one that was blocked goes on. */
    int64_t claims_floor; /* CLAIM: what it saw when it began. */
    uint64_t seen; /* The same: a bit for each request whose row was there. */
    int64_t floor_next;
    struct pg_step steps[PG_STEPS_MAX];
    size_t steps_len;
};

void pg_table_init(struct pg_table *table);
/* Empties the table, and keeps its memory. */
void pg_table_clear(struct pg_table *table);
void pg_table_finish(struct pg_table *table);

/* The committed row of @id, or NULL. */
struct pg_version *pg_table_row(struct pg_table *table,
                                const uint8_t id[IDEM_ID_LEN]);

/* True if a transaction in flight has written, deleted or locked it. */
bool pg_table_holds(struct pg_table *table, const uint8_t id[IDEM_ID_LEN]);

/* The begin of a batch, with SETUP or without; without it, if its connection is @settled,
 * for claims and updates, or one look. @shows: with THERE. @requests stay where they are
 * until pg_end(). */
void pg_begin(struct pg_tx *tx, struct pg_table *table,
              struct idem__pg_request **requests, size_t n, bool settled,
              bool shows);

/* Runs the next statement, at table->now_ms. Then tx->sql is this statement, and the
 * requests that it wrote have request->applied set, provisionally. */
enum pg_went pg_step(struct pg_tx *tx);

/* Begins the next statement, CLAIM: it takes its snapshot now, and pg_step() runs it later.
 * False: another transaction has idem_store alone. */
bool pg_begin_claim(struct pg_tx *tx);

/* Returns the next statement, such as LOOK or COMMIT. */
enum idem__pg_sql pg_next(const struct pg_tx *tx);

/* True if @tx sees a row of @id, which it may have written itself. */
bool pg_sees(const struct pg_tx *tx, const uint8_t id[IDEM_ID_LEN]);

/* Undoes all of the transaction. */
void pg_roll_back(struct pg_tx *tx);

/* Answers the requests of a committed batch from the results in @tx. */
void pg_answer(struct pg_tx *tx);

/* Frees the results, and rolls back a transaction that is not over. */
void pg_end(struct pg_tx *tx);

/* Locks the row of @id, as SELECT ... FOR UPDATE of another program would. False: there is
 * no such row, or it is locked. */
bool pg_lock(struct pg_tx *tx, const uint8_t id[IDEM_ID_LEN]);

/* The meaning of a SQLSTATE for a request, as postgres/error.c defines it. */
struct pg_failure {
    const char *state;
    enum idem__said said;
    int code;
};
extern const struct pg_failure pg_failures[];
extern const size_t pg_failures_len;
const struct pg_failure *pg_failure(const char *state);

/* Returns a copy of the arguments of @request, in memory of its own: free(). */
struct idem__pg_request *pg_request_copy(
    const struct idem__pg_request *request);

#endif
