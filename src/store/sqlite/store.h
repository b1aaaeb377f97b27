/* The SQLite store as its own files see it. */
#ifndef IDEM_STORE_SQLITE_STORE_H
#define IDEM_STORE_SQLITE_STORE_H

#include "store/local/group.h"
#include "store/sqlite/clock.h"
#include "store/sqlite/counters.h"
#include "store/sqlite/identity.h"
#include "store/sqlite/lock.h"
#include "store/sqlite/place.h"
#include "store/sqlite/reserve.h"
#include "store/sqlite/table.h"

#include <sys/stat.h>

/* Readers, each with a connection of its own, at the same time at most. */
enum {
    IDEM__READERS_MAX = 16
};

/* After so many new claims the next ones are taken for new too. */
enum {
    IDEM__NEW_IN_A_ROW = 64
};

struct idem__sqlite_readers {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    struct idem__conn *idle;
    unsigned open;
};

/* The files that a store has open. */
struct idem__files {
    bool is_known;
    bool is_linked; /* The database has a second name. */
    int fd;         /* Refers to the database; -1: none. */
    struct stat file;
    struct stat log;
    struct stat root; /* Of this process, when they were noted. */
};

/* When checkpoint.c may next keep all writers waiting for readers of the log. */
struct idem__restart {
    int64_t next_ms;  /* CLOCK_MONOTONIC. */
    int64_t pause_ms; /* 0: no log was long yet. */
    int copied;       /* Frames of the log, when the last wait was over. */
};

/* A long log that is copied into the file beside the writers: checkpoint.c. */
enum idem__copy {
    IDEM__COPY_NONE,
    IDEM__COPY_OFFERED, /* To a leader that hands over. */
    IDEM__COPY_RUNNING,
    IDEM__COPY_DONE, /* But for what was written meanwhile. */
};

/* The knowledge that the purges of this process share; see purge.c. */
struct idem__purge {
    int64_t *seqs; /* The rows that are due, in the order of the table; NULL
                      while none goes on. */
    size_t len;
    size_t next;      /* The first of them that was not looked at yet. */
    uint64_t from[3]; /* Cursors: where they were found, */
    uint64_t to[3];   /* and where to go on afterwards. */
    int64_t held_ms;  /* Up to it all that is open is held; of these rows. */
    size_t rows;      /* Of the next slice beside writers. */
    bool beside;      /* Others wrote since the slice before the last. */
};

struct idem__sqlite_store {
    struct idem_store base;
    char path[IDEM__PATH_MAX + 1];
    char url[IDEM_STORE_URL_MAX + 1];
    struct idem__share share; /* Of the files that this process makes. */
    struct idem__lock *lock;  /* NULL: the database is an application's. */
    bool of_application;      /* It is only read. */
    int64_t found_ms;         /* The newest time in it then. */
    bool is_copy;             /* It may be older than what was here before. */
    bool may_lose;            /* Nor need there be anything of it any more. */
    bool no_create;           /* A store is there, or nothing is opened. */
    uint8_t id[IDEM__STORE_ID_LEN];
    struct idem__group group;
    struct idem__sqlite_readers readers;

    /* For whoever holds the lock. */
    struct idem__files files;
    struct idem__sqlite_table table; /* table.conn is the writer. */
    uint8_t head[IDEM_HEAD_MAX];     /* Of the table. */
    bool broken;      /* A write failed on the disk: settle before the next. */
    bool too_big;     /* The last transaction failed at RLIMIT_FSIZE. */
    int64_t saved_ms; /* The time that the open transaction saves; 0: none. */
    struct idem__reserve reserve;
    struct idem__restart restart;
    struct idem__purge purge;

    int copy;              /* An idem__copy; atomic. */
    unsigned new_in_a_row; /* Claims, up to IDEM__NEW_IN_A_ROW; atomic. */

    struct idem__sqlite_clock clock;
    struct idem__counters counters;
};

/* ---- sqlite.c ---- */

/* Opens the file @path even if it is an older copy of what was here before, or
 * another store; with @may_lose also if nothing is there any more. */
int idem__sqlite_open_copy(const char *path,
                           const struct idem_open_options *options,
                           bool may_lose, struct idem__sqlite_store **ret_store,
                           struct idem_error *error);

/* ---- connect.c ---- */

/* A connection, checked and ready. The lock is held. */
int idem__sqlite_connect(struct idem__sqlite_store *store, bool writer,
                         struct idem__conn **ret_conn,
                         struct idem_error *error);

/* True if the file @path is the database of an application that keeps records in
 * it. Needs no lock: nothing is made or changed. */
bool idem__sqlite_is_of_application(const char *path);

/* A connection to read with; takes the lock, until @deadline_ms at most. */
int idem__sqlite_connect_reader(struct idem__sqlite_store *store,
                                int64_t deadline_ms,
                                struct idem__conn **ret_conn,
                                struct idem_error *error);

/* ---- files.c ---- */

/* The file that the writer has open is the store from now on. */
void idem__files_note(struct idem__sqlite_store *store);
void idem__files_close(struct idem__files *files);

/* Do the files still lie in their place, under their names? With @committed the
 * log is looked at, too. IDEM_ECONFIG says what became of them. For the holder of
 * the lock. */
int idem__files_check(struct idem__sqlite_store *store, bool committed,
                      struct idem_error *error);

/* ---- readers.c ---- */

void idem__readers_init(struct idem__sqlite_readers *readers);
void idem__readers_finish(struct idem__sqlite_readers *readers);

/* A connection to read with, or NULL: none could be opened (@error), or, unless
 * @wait, none is to be had without waiting. */
struct idem__conn *idem__readers_take(struct idem__sqlite_store *store,
                                      bool wait, struct idem_error *error);
/* One that others give back, without the lock of the store; NULL: there are none. */
struct idem__conn *idem__readers_await(struct idem__sqlite_store *store);
/* Adds a new connection to the pool. */
void idem__readers_add(struct idem__sqlite_store *store,
                       struct idem__conn *conn);
void idem__readers_give(struct idem__sqlite_store *store,
                        struct idem__conn *conn);
/* Closes those that nobody uses; the next reader opens one anew. */
void idem__readers_drop_idle(struct idem__sqlite_readers *readers);

/* ---- info.c ---- */

struct idem_sqlite_info;

/* idem_sqlite_inspect(); without @count no record is counted, which would read an
 * index from end to end. */
int idem__sqlite_inspect(struct idem_store *store, bool count,
                         struct idem_sqlite_info *ret_info,
                         struct idem_error *ret_error);

/* ---- walk.c ---- */

void idem__sqlite_list(struct idem__conn *conn, struct idem_op *op,
                       const struct idem_now *now);

/* ---- peek.c ---- */

/* True if the handle was opened for reading. */
bool idem__sqlite_reads_only(const struct idem__sqlite_store *store);

/* Answers those of the *@n @ops that reading alone can answer, and leaves the others
 * in @ops. */
void idem__sqlite_peek(struct idem__sqlite_store *store, struct idem_op **ops,
                       size_t *n);

/* Sets the answer of @op if reading alone can; but does not give it back. */
bool idem__sqlite_answer_alone(struct idem__sqlite_store *store,
                               struct idem_op *op);

/* ---- purge.c ---- */

/* One slice of a purge, inside a write transaction. True if it wrote. */
bool idem__sqlite_purge(struct idem__sqlite_store *store, struct idem_op *op,
                        const struct idem_now *now);

/* The batch took @commit_ns of the lock until it was committed, and @lock_ns with the
 * checkpoint after it, which copies what all have written: plans the next slice, and
 * the rest before it, if there was a slice of a purge in the batch. */
void idem__sqlite_purge_ran(struct idem__sqlite_store *store,
                            struct idem_op *batch, int64_t commit_ns,
                            int64_t lock_ns);

/* Frees what is only kept between slices. */
void idem__sqlite_purge_finish(struct idem__purge *purge);

/* The rows that were deleted are there again. */
void idem__sqlite_purge_undone(struct idem__sqlite_store *store);

/* The time went back: what is held may have to be looked at again. SQLITE_OK or a
 * result code. */
int idem__sqlite_purge_forget(struct idem__conn *conn);

/* ---- limit.c ---- */

/* Counts a request, inside a write transaction. True if something was written. */
bool idem__sqlite_limit(struct idem__sqlite_store *store, struct idem_op *op,
                        const struct idem_now *now);

/* Answers @op if reading alone can: a retry, or a refusal that nothing is to be
 * remembered of. */
bool idem__sqlite_limit_peek(struct idem__conn *conn, struct idem_op *op,
                             const struct idem_now *now);

/* One slice of a purge. True if rows went. */
bool idem__sqlite_limit_purge(struct idem__sqlite_store *store,
                              struct idem_op *op, const struct idem_now *now,
                              int64_t until_ms, bool *ret_done);

/* ---- move.c ---- */

/* Reads or sets the store's mark, inside a write transaction. True if it wrote. */
bool idem__sqlite_move(struct idem__sqlite_store *store, struct idem_op *op,
                       const struct idem_now *now);

/* ---- batch.c ---- */

/* The group's run(): the lock is held, and released before it returns. */
void idem__sqlite_run(struct idem_store *base, struct idem_op *batch);

/* ---- checkpoint.c ---- */

/* Carries the log over into the file if it has become long, and was not refused
 * lately; the lock is held. */
void idem__sqlite_checkpoint(struct idem__sqlite_store *store);

/* The group's chore: copies the log into the file while others write on. */
bool idem__sqlite_take_copy(struct idem_store *base);
void idem__sqlite_copy(struct idem_store *base);

/* How many frames the log has; after a read of @conn has begun. */
uint32_t idem__sqlite_log_frames(const struct idem__conn *conn);

/* To be called before each read transaction: waits for 40 ms at most
 * while a checkpoint wants readers to be out of the log. */
void idem__sqlite_before_read(const struct idem__sqlite_store *store);

/* Before the store is closed: what was counted is written, and a long log is
 * carried over, because the next process that opens it has to read all of it.
 * Both only if nobody is in the way. */
void idem__sqlite_tidy(struct idem__sqlite_store *store);

#endif
