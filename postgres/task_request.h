/* The requests of a task to the database, and their answers. */
#ifndef IDEM_POSTGRES_TASK_REQUEST_H
#define IDEM_POSTGRES_TASK_REQUEST_H
#include "base/bytes.h"
#include "contract/store.h"
#include "postgres/place.h"
#include "store/remote/machine.h"

#include <libpq-fe.h>

/* ---- A record as a row of the table, which nobody is trusted with ---- */

enum {
    IDEM__PG_TAG_LEN = 16,
};

/* Columns after those of a row: the time, and in LOOK_ONE what SETUP says. */
enum {
    IDEM__PG_ROW_TIME = 11,
    IDEM__PG_ROW_FLOOR,
    IDEM__PG_ROW_MARK,
};

struct idem__pg_row {
    struct idem_record record; /* Without bodies. */
    struct idem_slice head;
    uint8_t tag[IDEM__PG_TAG_LEN]; /* Its last bytes. */
    bool has_bodies;               /* They came with it: */
    struct idem_slice result;
    struct idem_slice input;
};

/* One field of @result as bytes, as text, or as a number of eight; false: it is something
 * else, or NULL. */
bool idem__pg_bytes(const PGresult *result, int row, int column,
                    struct idem_slice *ret_bytes);
bool idem__pg_text(const PGresult *result, int row, int column,
                   struct idem_slice *ret_text);
bool idem__pg_number(const PGresult *result, int row, int column,
                     int64_t *ret_number);

/* Likewise a time, in ms since 1970. */
bool idem__pg_time(const PGresult *result, int row, int column,
                   int64_t *ret_ms);

/* The id of row @row, in whose first column it is. False: it is none. */
bool idem__pg_row_id(const PGresult *result, int row,
                     uint8_t ret_id[IDEM_ID_LEN]);

/* Its deadline, as the column says. */
bool idem__pg_row_deadline(const PGresult *result, int row,
                           int64_t *ret_deadline_ms);

/* Reads row @row, which has the columns of LOOK or LIST. Slices point into @result.
 *
 * IDEM_ECORRUPT  It cannot be trusted; scope, key and id are set where they can be.
 * IDEM_ENOMEM
 */
int idem__pg_row_read(const PGresult *result, int row,
                      struct idem__pg_row *ret_row,
                      struct idem_error *ret_error);

/* Copies what @row points to into @memory, which is emptied first; @row points there
 * then. 0 or IDEM_ENOMEM. */
int idem__pg_row_keep(struct idem__pg_row *row, struct idem__buffer *memory);

/* ---- Requests ---- */

enum idem__pg_ask {
    IDEM__PG_ASK_LOOK = 1, /* Row of id. */
    IDEM__PG_ASK_CLAIM,    /* Adds write; or the row that is there. */
    IDEM__PG_ASK_UPDATE,   /* Writes write over what has the head found. */
    IDEM__PG_ASK_LOAD,     /* Bodies of id, in result. */
    IDEM__PG_ASK_LIST,     /* Rows after id, in result. */
    IDEM__PG_ASK_LIST_STATUS,
    IDEM__PG_ASK_RAISE, /* Counts fences up to a number as gone. */
    IDEM__PG_ASK_WAIT,  /* Until claims have ended that may not know of that. */
    IDEM__PG_ASK_PURGE, /* Deletes victims; result has their number. */
    IDEM__PG_ASK_PURGE_LIMITS,
    IDEM__PG_ASK_LIMIT_LOOK,
    IDEM__PG_ASK_LIMIT_COUNT,
    IDEM__PG_ASK_MARK,      /* Replaces the mark: name by subject. */
    IDEM__PG_ASK_MARK_WAIT, /* Until claims have ended that may not know it. */
    IDEM__PG_ASK_MARK_READ,
};

/* Which of the connection's lists a request is in. */
enum idem__pg_where {
    IDEM__PG_NOWHERE = 0,
    IDEM__PG_WAITING,
    IDEM__PG_SENT,
    IDEM__PG_DONE,
};

/* A record as it is to be written. */
struct idem__pg_write {
    const struct idem_record *record; /* With bodies where they are written. */
    struct idem_slice head;
    bool set_result;
    bool set_input;
    bool old_fence; /* It may be below those that were purged. */
    bool begins;    /* Not where the store was moved. */
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
    bool from_start; /* LIST: there is no id to go on from. */
    bool shows;      /* It is to be looked at, and no attempt depends on it. */
    const struct idem__pg_victim *victims;
    size_t victims_len;
    struct idem_slice request_id; /* Of LIMIT_LOOK and LIMIT_COUNT ... */
    struct idem_slice name;       /* ... and of the second. */
    struct idem_slice subject;
    int64_t deadline_ms; /* CLOCK_MONOTONIC. */

    /* The answer. */
    enum idem__said
        said; /* OK: it was committed. UNKNOWN: the connection was lost
                             with it. */
    struct idem_error error; /* Unless OK. */
    bool sent;               /* To a server that may have done it. */
    bool timed_out;
    bool applied; /* CLAIM, UPDATE: it was written. */
    int row_code; /* LOOK, CLAIM: 1 a row, 0 none, or negative with error. */
    struct idem__pg_row row;
    const PGresult *result; /* Until the second batch after this one is sent. */
    const PGresult *after;  /* LIMIT_COUNT: how the window is now. */

    /* The connection's own. */
    struct idem__pg_request *next;
    struct idem__pg_request *prev;
    bool alone; /* In its batch: it failed together with others, say. */
    enum idem__pg_where state;
    void *user;
};

/* ---- What an error of libpq's or of the server's means ---- */

/* Reads the error of @result, which ended a transaction, and so nothing of it was
 * done. UNKNOWN: it ended the connection. */
enum idem__said idem__pg_error_read(const PGresult *result,
                                    const struct idem__pg_place *place,
                                    struct idem_error *ret_error);

/* Reads why there is no connection. */
enum idem__said idem__pg_error_connect(PGconn *conn,
                                       const struct idem__pg_place *place,
                                       struct idem_error *ret_error);

#endif
