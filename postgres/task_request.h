/* The requests of a task to the database, and their answers. */
#ifndef IDEM_POSTGRES_TASK_REQUEST_H
#define IDEM_POSTGRES_TASK_REQUEST_H
#include "base/bytes.h"
#include "contract/store.h"
#include "postgres/place.h"
#include "store/remote/machine.h"

#include <libpq-fe.h>

/* ---- A record as a row of the table, which is read without trust in the server ---- */

enum {
    IDEM__PG_TAG_LEN = 16,
};

/* Columns after those of a row: the time, and in LOOK_ONE the rest of SETUP. */
enum {
    IDEM__PG_ROW_TIME = 9,
    IDEM__PG_ROW_FLOOR,
    IDEM__PG_ROW_MARK,
};

struct idem__pg_row {
    struct idem_record record; /* Without bodies. */
    struct idem_slice head;
    uint8_t tag[IDEM__PG_TAG_LEN]; /* The last bytes of head. */
    bool has_bodies;               /* These came with the row: */
    struct idem_slice result;
    struct idem_slice input;
};

/* Read one field of @result as bytes, as text, or as a number of eight bytes. False: it is
 * missing, NULL, or of another type. */
bool idem__pg_bytes(const PGresult *result, int row, int column,
                    struct idem_slice *ret_bytes);
bool idem__pg_text(const PGresult *result, int row, int column,
                   struct idem_slice *ret_text);
bool idem__pg_number(const PGresult *result, int row, int column,
                     int64_t *ret_number);

/* Reads a time, in ms since 1970. False as above. */
bool idem__pg_time(const PGresult *result, int row, int column,
                   int64_t *ret_ms);

/* Reads the id of row @row from its first column. False: that is not an id. */
bool idem__pg_row_id(const PGresult *result, int row,
                     uint8_t ret_id[IDEM_ID_LEN]);

/* Reads the deadline of row @row from its column. */
bool idem__pg_row_deadline(const PGresult *result, int row,
                           int64_t *ret_deadline_ms);

/* Reads row @row, which has the columns of LOOK or LIST. Slices point into @result.
 *
 * IDEM_ECORRUPT  The row cannot be trusted; scope, key and id are set if they are
 * readable. IDEM_ENOMEM / */
int idem__pg_row_read(const PGresult *result, int row,
                      struct idem__pg_row *ret_row,
                      struct idem_error *ret_error);

/* Empties @memory, copies there all that @row points to, and points @row at the copies.
 * 0 or IDEM_ENOMEM. */
int idem__pg_row_keep(struct idem__pg_row *row, struct idem__buffer *memory);

/* ---- Requests ---- */

enum idem__pg_ask {
    IDEM__PG_ASK_LOOK = 1, /* Reads the row of id. */
    IDEM__PG_ASK_CLAIM,    /* Adds write, or reads the row that is there. */
    IDEM__PG_ASK_UPDATE,   /* Writes write, if the row has the head found. */
    IDEM__PG_ASK_LOAD,     /* Reads the bodies of id into result. */
    IDEM__PG_ASK_LIST,     /* Reads the rows after id into result. */
    IDEM__PG_ASK_LIST_STATUS,
    IDEM__PG_ASK_RAISE, /* Raises the fence floor. */
    IDEM__PG_ASK_WAIT,  /* Waits for claims that may not know the floor. */
    IDEM__PG_ASK_PURGE, /* Deletes victims; result has their number. */
    IDEM__PG_ASK_PURGE_LIMITS,
    IDEM__PG_ASK_LIMIT_LOOK,
    IDEM__PG_ASK_LIMIT_COUNT,
    IDEM__PG_ASK_MARK,      /* Replaces the mark name by subject. */
    IDEM__PG_ASK_MARK_WAIT, /* Waits for claims that may not know the mark. */
    IDEM__PG_ASK_MARK_READ,
};

/* Which of the connection's lists a request is in. */
enum idem__pg_where {
    IDEM__PG_NOWHERE = 0,
    IDEM__PG_WAITING,
    IDEM__PG_SENT,
    IDEM__PG_DONE,
};

/* A record to be written. */
struct idem__pg_write {
    const struct idem_record *record; /* With the bodies to be written. */
    struct idem_slice head;
    bool set_result;
    bool set_input;
    bool old_fence; /* An import: its fence may be below the floor. */
    bool begins;    /* Something begins: refused in a moved store. */
};

struct idem__pg_victim {
    uint8_t id[IDEM_ID_LEN];
    uint8_t tag[IDEM__PG_TAG_LEN];
};

struct idem__pg_request {
    enum idem__pg_ask ask;
    uint8_t id[IDEM_ID_LEN];
    struct idem__pg_write write;
    struct idem_slice found;
    /* LIST_STATUS: status, from and to which deadline. RAISE, PURGE: the highest fence.
     * PURGE_LIMITS: to when. LIMIT_COUNT: see LIMIT_COUNT in sql.c. MARK: whether it
     * closes the store, and a floor of fences. */
    int64_t numbers[8];
    int64_t limit;   /* Rows. */
    bool from_start; /* LIST: before the first id. */
    bool shows;      /* It only informs: no attempt depends on it. */
    const struct idem__pg_victim *victims;
    size_t victims_len;
    struct idem_slice request_id; /* LIMIT_LOOK, LIMIT_COUNT. */
    struct idem_slice name;       /* LIMIT_COUNT, MARK. */
    struct idem_slice subject;
    int64_t deadline_ms; /* CLOCK_MONOTONIC. */

    /* The answer. */
    enum idem__said
        said; /* OK: it was committed. UNKNOWN: the connection was lost
                             while it was in flight. */
    struct idem_error error; /* Unless OK. */
    bool sent;               /* To a server that may have done it. */
    bool timed_out;
    bool applied; /* CLAIM, UPDATE: it was written. */
    int row_code; /* LOOK, CLAIM: 1 a row, 0 none, or negative with error. */
    struct idem__pg_row row;
    const PGresult *result; /* Valid until its batch is used again. */
    const PGresult *after;  /* LIMIT_COUNT: the window after it. */

    /* The connection's own. */
    struct idem__pg_request *next;
    struct idem__pg_request *prev;
    bool alone; /* In its batch, because it failed with others, say. */
    enum idem__pg_where state;
    void *user;
};

/* ---- The meaning of an error of libpq or of the server ---- */

/* Reads the error of @result. It ended a transaction, so the server has done nothing of
 * that, except after UNKNOWN: then the connection ended, and a commit may have gone before
 * it. */
enum idem__said idem__pg_error_read(const PGresult *result,
                                    const struct idem__pg_place *place,
                                    struct idem_error *ret_error);

/* Reads why @conn could not connect. Returns NOT_APPLIED or NEVER. */
enum idem__said idem__pg_error_connect(PGconn *conn,
                                       const struct idem__pg_place *place,
                                       struct idem_error *ret_error);

#endif
