/* One connection to the file: opened, set up, with its statements. */
#ifndef IDEM_STORE_SQLITE_CONN_H
#define IDEM_STORE_SQLITE_CONN_H

#include "store/sqlite/api.h"

#include <idem.h>

enum idem__sql {
    IDEM__SQL_BEGIN,
    IDEM__SQL_READ,
    IDEM__SQL_COMMIT,
    IDEM__SQL_ROLLBACK,
    IDEM__SQL_LOAD,        /* id -> seq, status, deadline, scope, key, head,
                              and result and input where they are small */
    IDEM__SQL_LOAD_BODIES, /* likewise, of any size */
    IDEM__SQL_INSERT,
    IDEM__SQL_UPDATE_HEAD,
    IDEM__SQL_UPDATE_RESULT,
    IDEM__SQL_UPDATE_INPUT,
    IDEM__SQL_UPDATE_ALL,
    IDEM__SQL_DELETE,
    IDEM__SQL_WALK_ALL,   /* seq -> rows after it */
    IDEM__SQL_WALK_DOWN,  /* seq -> rows before it, backwards */
    IDEM__SQL_SCOPE,      /* from, to, scope -> rows after from, up to to */
    IDEM__SQL_SCOPE_END,  /* seq, n -> seq of the n-th row after it */
    IDEM__SQL_SCOPE_DOWN, /* from, to, scope -> rows before from, down to to */
    IDEM__SQL_SCOPE_DOWN_END, /* seq, n -> seq of the n-th row before it */
    IDEM__SQL_WALK_SAME,      /* status, deadline, seq -> rows after it */
    IDEM__SQL_WALK_LATER,     /* status, deadline, to -> rows after it */
    IDEM__SQL_WALK_FAILED,    /* seq -> rows after it that were noted so */
    IDEM__SQL_NOTE_FAILED,    /* seq */
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
    int prepare_rc;     /* Of the last statement that could not be prepared. */
    int wal_pages;      /* In the log after the last commit. */
    bool has_limits;    /* The tables of limit.c are there. */
    bool makes_tables;  /* The open transaction has made some. */
};

/* Opens @path, which exists, and changes nothing in it. The store's lock is
 * held. */
int idem__conn_open(const char *path, struct idem__conn **ret_conn,
                    struct idem_error *error);

/* Sets up the file and the connection for our use; the file is ours. */
int idem__conn_configure(struct idem__conn *conn, bool writer,
                         struct idem_error *error);

/* Sets up the connection to read the database of an application, which stays as it
 * is. */
int idem__conn_configure_guest(struct idem__conn *conn,
                               struct idem_error *error);

/* How long this connection waits for a program that knows nothing of our lock. */
void idem__conn_patience(struct idem__conn *conn, int64_t ms);

/* Lets the statements go; the database stays open. */
void idem__conn_finalize(struct idem__conn *conn);

/* NULL is allowed. */
void idem__conn_close(struct idem__conn *conn);

/* The statement, prepared at its first use, reset and without bindings. NULL if
 * it cannot be prepared: idem__conn_step() then says why. */
sqlite3_stmt *idem__conn_stmt(struct idem__conn *conn, enum idem__sql sql);

/* sqlite3_step() of a statement of this connection. */
int idem__conn_step(struct idem__conn *conn, sqlite3_stmt *stmt);

/* Resets a statement if it was ever prepared. */
void idem__conn_reset(struct idem__conn *conn, enum idem__sql sql);

/* Steps a statement that gives no rows and resets it. SQLITE_OK, or an extended
 * result code. */
int idem__conn_run(struct idem__conn *conn, enum idem__sql sql);

/* The path of the database, as messages name it; valid while it is open. */
const char *idem__conn_path(const struct idem__conn *conn);

/* Our code for an SQLite result, with its sentence, which names the file, and what
 * a person can do: @doing names what failed. */
int idem__conn_fail(const struct idem__conn *conn, int sqlite_rc,
                    const char *doing, struct idem_error *error);

/* True where it is not known what reached the disk. */
bool idem__sqlite_is_io(int sqlite_rc);

#endif
