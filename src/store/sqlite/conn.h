/* Opens a connection to the file and prepares its statements; and gives access to the
 * tables, records and clock in the file. */
#ifndef IDEM_STORE_SQLITE_CONN_H
#define IDEM_STORE_SQLITE_CONN_H

#include "contract/parts.h"
#include "store/sqlite/api.h"

#include <idem.h>
#include <pthread.h>

enum idem__sql {
    IDEM__SQL_BEGIN,
    IDEM__SQL_READ,
    IDEM__SQL_COMMIT,
    IDEM__SQL_ROLLBACK,
    IDEM__SQL_LOAD,        /* id -> seq, status, deadline, scope, key, head,
                              and result and input where they are small */
    IDEM__SQL_LOAD_BODIES, /* the same, with bodies of any size */
    IDEM__SQL_INSERT,
    IDEM__SQL_UPDATE_HEAD,
    IDEM__SQL_UPDATE_RESULT,
    IDEM__SQL_UPDATE_INPUT,
    IDEM__SQL_UPDATE_ALL,
    IDEM__SQL_DELETE,
    IDEM__SQL_ENTER, /* from, to: claims after from, up to to */
    IDEM__SQL_ENTER_ALL,
    IDEM__SQL_WALK_ALL,   /* seq -> rows after it */
    IDEM__SQL_WALK_DOWN,  /* seq -> rows before it, backwards */
    IDEM__SQL_SCOPE,      /* from, to, scope -> rows after from, up to to */
    IDEM__SQL_SCOPE_END,  /* seq, n -> seq of the n-th row after it */
    IDEM__SQL_SCOPE_DOWN, /* from, to, scope -> rows before from, down to to */
    IDEM__SQL_SCOPE_DOWN_END, /* seq, n -> seq of the n-th row before it */
    IDEM__SQL_GREATEST,       /* -> seq */
    IDEM__SQL_WALK_LAST,   /* from, to, deadline -> attempts in progress after
                             from, up to to, that are due by deadline */
    IDEM__SQL_WALK_SAME,   /* status, deadline, seq, n, last seq -> rows after
                             it */
    IDEM__SQL_WALK_LATER,  /* status, deadline, to, n, last seq -> rows after
                             it */
    IDEM__SQL_WALK_FAILED, /* seq -> rows after it that are noted as failed */
    IDEM__SQL_NOTE_FAILED, /* seq */
    IDEM__SQL_PURGE_SAME,  /* status, deadline, seq -> seq, deadline after it */
    IDEM__SQL_PURGE_LATER, /* status, deadline, to -> seq, deadline after it */
    IDEM__SQL_PURGE_ROW,   /* seq -> the row */
    IDEM__SQL_HELD_LOAD,   /* -> to, looked */
    IDEM__SQL_HELD_SAVE,
    IDEM__SQL_HELD_FORGET,
    IDEM__SQL_CLOCK_LOAD,
    IDEM__SQL_CLOCK_SAVE,
    IDEM__SQL_MARK_LOAD,   /* -> mark */
    IDEM__SQL_MARK_SAVE,   /* mark */
    IDEM__SQL_COUNTER_ADD, /* name, value */
    IDEM__SQL_COUNTERS_LOAD,
    IDEM__SQL_LIMIT_WINDOW, /* id -> seq, expires, used, refusals */
    IDEM__SQL_LIMIT_ENTRY,  /* seq, request -> entry */
    IDEM__SQL_LIMIT_INSERT,
    IDEM__SQL_LIMIT_UPDATE,
    IDEM__SQL_LIMIT_ADD,
    IDEM__SQL_LIMIT_OLDEST, /* -> seq, expires */
    IDEM__SQL_LIMIT_FORGET, /* seq, how many: of its requests */
    IDEM__SQL_LIMIT_DELETE,
    IDEM__SQL_COUNT,
};

struct idem__conn {
    struct idem__conn *next; /* In the readers' pool. */
    sqlite3 *db;
    sqlite3_stmt *stmts[IDEM__SQL_COUNT];
    bool full_is_clean; /* A commit that ran out of space had no effect. */
    int io_errno;       /* Why the last statement failed on the disk. */
    /* Result of the last statement that could not be prepared. */
    int prepare_rc;
    int wal_pages;     /* Frames in the log after the last commit. */
    bool has_limits;   /* The tables of limit.c exist. */
    bool makes_tables; /* The open transaction has made some. */
    /* The next two are set: the mark that idem__clock_mark() read last, ... */
    bool has_mark;
    unsigned mark_version; /* ... and the data version of the file then. */
    char mark[IDEM_MARK_MAX];
};

/* Opens @path, which exists, and changes nothing in it. @vfs: the name of SQLite's VFS
 * for it; NULL: the usual one. */
int idem__conn_open(const char *path, const char *vfs,
                    struct idem__conn **ret_conn, struct idem_error *error);

/* Sets up the file and the connection of a store. */
int idem__conn_configure(struct idem__conn *conn, bool writer,
                         struct idem_error *error);

/* Sets up a reader beside a connection that has set up the file; reads nothing. */
int idem__conn_configure_beside(struct idem__conn *conn,
                                struct idem_error *error);

/* Sets up the connection to read the database of an application, which stays as it
 * is. */
int idem__conn_configure_guest(struct idem__conn *conn,
                               struct idem_error *error);

/* Sets how long this connection waits for a program that does not use our lock. */
void idem__conn_patience(struct idem__conn *conn, int64_t ms);

/* Finalizes the statements; the database stays open. */
void idem__conn_finalize(struct idem__conn *conn);

/* NULL is allowed. */
void idem__conn_close(struct idem__conn *conn);

/* The statement, prepared at its first use, reset and without bindings. NULL if it cannot
 * be prepared: idem__conn_step() then returns the reason. */
sqlite3_stmt *idem__conn_stmt(struct idem__conn *conn, enum idem__sql sql);

/* The same with @numbers bound to its first parameters. */
sqlite3_stmt *idem__conn_bind(struct idem__conn *conn, enum idem__sql sql,
                              size_t len, const int64_t *numbers);
#define IDEM__CONN_BIND(conn, sql, ...)                                        \
    idem__conn_bind((conn), (sql),                                             \
                    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),        \
                    (const int64_t[]){__VA_ARGS__})

/* idem__conn_run() with numbers bound to the first parameters. */
#define IDEM__CONN_RUN(conn, sql, ...)                                         \
    ((void)IDEM__CONN_BIND(conn, sql, __VA_ARGS__), idem__conn_run(conn, sql))

/* Reads the single number that @sql returns. SQLITE_OK, SQLITE_DONE without a row, or a
 * result code. */
int idem__conn_number(struct idem__conn *conn, const char *sql,
                      int64_t *ret_number);

/* sqlite3_step() of a statement of this connection. */
int idem__conn_step(struct idem__conn *conn, sqlite3_stmt *stmt);

/* Resets a statement if it was ever prepared. */
void idem__conn_reset(struct idem__conn *conn, enum idem__sql sql);

/* Steps a statement that returns no rows, and resets it. SQLITE_OK, or an extended result
 * code. */
int idem__conn_run(struct idem__conn *conn, enum idem__sql sql);

/* The path of the database, as messages name it; valid while it is open. */
const char *idem__conn_path(const struct idem__conn *conn);

/* Sets @error for an SQLite result, and returns our code for it. The sentence names the
 * file, what failed (@doing), the reason, and the remedy. */
int idem__conn_fail(const struct idem__conn *conn, int sqlite_rc,
                    const char *doing, struct idem_error *error);

/* True for an I/O error, after which it is unknown what reached the disk. */
bool idem__sqlite_is_io(int sqlite_rc);

/* ---- The tables of the file, and the version of them: schema.c ---- */

#define IDEM__STORE_ID_LEN 16

enum idem__holder {
    IDEM__HOLDER_NONE, /* The file has no tables. */
    IDEM__HOLDER_STORE,
    /* An application keeps its records in it: in.c. */
    IDEM__HOLDER_APPLICATION,
};

/* Finds out whose file it is. Changes nothing.
 *
 * IDEM_ECONFIG  It is another program's file, or of a newer version.
 */
int idem__schema_check(struct idem__conn *conn, enum idem__holder *ret_holder,
                       struct idem_error *error);

/* Creates the tables of the store @id in an empty file. The caller holds the store's
 * lock. */
int idem__schema_create(struct idem__conn *conn,
                        const uint8_t id[IDEM__STORE_ID_LEN],
                        struct idem_error *error);

/* Creates the tables in an application's database, inside the open transaction, unless
 * they exist.
 *
 * IDEM_ECONFIG  They are of another version.
 */
int idem__schema_create_in(struct idem__conn *conn, struct idem_error *error);

/* Creates the table of purges, within the caller's transaction. SQLITE_OK or a result
 * code. */
int idem__schema_add_purge(struct idem__conn *conn);

/* Loads the id of the database; false in *@ret_has: it has none. 0 or a code. */
int idem__schema_load_id(struct idem__conn *conn, bool *ret_has,
                         uint8_t ret_id[IDEM__STORE_ID_LEN],
                         struct idem_error *error);

/* Gives a database its id, in a transaction of its own or the one that is open.
 * An SQLite result. */
int idem__schema_save_id(struct idem__conn *conn,
                         const uint8_t id[IDEM__STORE_ID_LEN]);

/* ---- Records in the table, which the engine loads and saves: table.c ---- */

/* A claim enters the index on status and deadline late: nearly all claims are completed
 * before that, and so never write a page of the index. Until then the status of the row
 * is IDEM__CLAIMED in place of IDEM_STATUS_IN_PROGRESS.
 *
 * An insert whose seq is a multiple of IDEM__ENTER_ROWS moves the claims into the index
 * that are at least as many numbers older. So only the last 2 * IDEM__ENTER_ROWS numbers
 * can have IDEM__CLAIMED, and lists look for it only there. This also holds when the last
 * rows were deleted and their numbers are assigned again. */
enum {
    IDEM__CLAIMED = 0,
    IDEM__ENTER_ROWS = 64,
};

/* The claims that are not in the index, in SQL. */
#define IDEM__NOT_IN_INDEX                                                     \
    "status = 0 AND seq > (SELECT max(seq) FROM idem_record) - 128"

struct idem__sqlite_table {
    struct idem__conn *conn;
    int64_t seq; /* The row that was loaded last. */
    /* The statement on that row, if it was loaded without bodies. */
    sqlite3_stmt *row;
    struct idem_record record; /* The record as it was loaded. */
    /* Result of the first write that failed; SQLITE_OK: none did. */
    int sqlite_rc;
    bool ends_replays; /* A change makes records in memory invalid. */
    uint8_t *head; /* IDEM_HEAD_MAX bytes to write with; NULL: it only reads. */
    /* Records that complete with a failure are noted (schema.c). */
    bool notes_failed;
};

/* The engine's view of @table. */
struct idem_table idem__sqlite_table_of(struct idem__sqlite_table *table);

/* Notes @sqlite_rc of a write that failed, and answers @op with it. Returns false. */
bool idem__sqlite_write_failed(struct idem__sqlite_table *table,
                               struct idem_op *op, int sqlite_rc,
                               const char *doing);

/* Releases the record that was loaded last: its unfinished statement would keep a
 * snapshot alive. */
void idem__sqlite_table_reset(struct idem__sqlite_table *table);

/* Verifies and decodes a row of ROW_COLUMNS that is stored under @id. Sets scope, key and
 * id even if it fails. 0 or a code. */
int idem__row_decode(sqlite3_stmt *stmt, const uint8_t *id,
                     struct idem_record *ret_record, struct idem_error *error);

/* Adds result and input, the columns after ROW_COLUMNS, to a record that was read from
 * the row, and verifies them. 0 or a code. */
int idem__row_bodies(sqlite3_stmt *stmt, struct idem_record *record,
                     struct idem_error *error);

/* ---- Store time, anchored in the file, and the fence floor: clock.c ---- */

/* The part of the store's time that is certain. A saved value of it never goes back. */
static inline int64_t idem__clock_sure_ms(const struct idem_now *now)
{
    return now->store_ms - now->doubt_ms;
}

/* The clock row as this process last saw it. Writers know it exactly: they load
 * it in each transaction. */
struct idem__sqlite_clock {
    pthread_mutex_t mutex; /* Guards the next two, which readers need. */
    struct idem_anchor anchor;
    int64_t last_ms;          /* The newest certain time in the file. */
    uint64_t fence_floor;     /* For writers. */
    char mark[IDEM_MARK_MAX]; /* For writers; see idem__clock_mark(). */
};

void idem__clock_init(struct idem__sqlite_clock *clock);
void idem__clock_finish(struct idem__sqlite_clock *clock);

/* Loads the row; a reader leaves the fence floor alone. An SQLite result. */
int idem__clock_load(struct idem__sqlite_clock *clock, struct idem__conn *conn,
                     bool writer);

/* Store time for a write. *@ret_save: the row must be saved with this
 * transaction. 0 or IDEM_EUNAVAILABLE. */
int idem__clock_now(struct idem__sqlite_clock *clock,
                    const struct idem_host *host, struct idem_now *ret_now,
                    bool *ret_save, struct idem_error *error);

/* Store time for a read. *@ret_moved: the anchor has moved (another boot, or its doubt
 * has ended), which only a writer may save. 0 or IDEM_EUNAVAILABLE. */
int idem__clock_peek(struct idem__sqlite_clock *clock,
                     const struct idem_host *host, struct idem_now *ret_now,
                     bool *ret_moved);

/* Sets the store's time to @store_ms at the moment of @reading, whatever it was. */
void idem__clock_set(struct idem__sqlite_clock *clock,
                     const struct idem_clock_reading *reading,
                     int64_t store_ms);

/* Sets conn->mark to the store's mark (core/move.h), in the read that @conn has in
 * progress if there is one. An SQLite result. */
int idem__clock_mark(struct idem__conn *conn);

/* Writes the row. An SQLite result. */
int idem__clock_save(struct idem__sqlite_clock *clock, struct idem__conn *conn,
                     const struct idem_now *now);

#endif
