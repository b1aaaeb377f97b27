/* The SQLite store as its own files see it. */
#ifndef IDEM_STORE_SQLITE_STORE_H
#define IDEM_STORE_SQLITE_STORE_H

#include "core/finding.h"
#include "store/shared/group.h"
#include "store/shared/replays.h"
#include "store/shared/tally.h"
#include "store/sqlite/conn.h"
#include "store/sqlite/place.h"

#include <idem/sqlite.h>
#include <sys/stat.h>

/* lock_notes.c: the notes in the lock file about the store beside it: which one was made
 * here, and how new it has been. */

/* ---- Which store was made here ------------------------------------------- */

/* The lock file's knowledge of the store beside it. */
enum idem__made {
    IDEM__MADE_NONE,    /* Nothing: it is new, or was emptied. */
    IDEM__MADE_PENDING, /* A store is being made; the maker may have died. */
    IDEM__MADE_DONE,    /* It was made. */
    IDEM__MADE_DAMAGED, /* That it was made is written, but torn; the id is that
                           of the pending store, if that can be read. */
};

struct idem__identity {
    enum idem__made made;
    uint8_t id[IDEM__STORE_ID_LEN];
};

/* Reads the lock file's note. */
void idem__identity_read(const struct idem__lock *lock,
                         struct idem__identity *ret_identity);

/* Writes the note, flushed. 0 or a code. */
int idem__identity_write(const struct idem__lock *lock, enum idem__made made,
                         const uint8_t id[IDEM__STORE_ID_LEN],
                         struct idem_error *error);

/* Returns IDEM_ECONFIG, with the remedy for a store that is gone. */
int idem__identity_gone(const char *path, struct idem_error *error);

/* ---- How new the store has been ------------------------------------------ */

/* A time that is durable in the store; the lock is held. */
void idem__seen_note(const struct idem__lock *lock, int64_t ms);

/* The same, whatever the note was before; it is flushed with the identity, which
 * is written after it: 0, or -1. */
int idem__seen_set(const struct idem__lock *lock, int64_t ms);

/* A new store is made here: what was noted was of another one. */
void idem__seen_forget(const struct idem__lock *lock);

/* The time in the note; 0: nothing that can be read. */
int64_t idem__seen_ms(const struct idem__lock *lock);

/* ---- Counters: counters.c ---- */

/* Counters in the file, so that processes which live for a moment are counted.
 *
 * Answers are counted in memory, and go into the file with a write transaction
 * that happens anyway: with each of the first few of a process, then with one a
 * second, because a save is one more page in the commit. The rest, when the
 * store is closed, is written without a flush. So a power cut, or a process
 * that is killed, can take back the counts of the last moments, and nothing
 * else. */

struct idem__counters {
    struct idem__tally pending; /* Answered, and not in the file; atomic. */
    struct idem__tally saved;   /* By the transaction that is open. */
    int64_t paid_ms; /* CLOCK_MONOTONIC: saves are paid for up to here. */
};

/* Counts @op, which was answered without a transaction; from any thread. */
void idem__counters_note(struct idem__counters *counters,
                         const struct idem_op *op);

/* Saves what is pending and what @batch comes to in the open transaction, if it
 * is time. An SQLite result. */
int idem__counters_save(struct idem__counters *counters,
                        struct idem__conn *conn, const struct idem_op *batch);

/* The transaction of @batch was begun, or was committed. */
void idem__counters_begun(struct idem__counters *counters);
void idem__counters_committed(struct idem__counters *counters,
                              const struct idem_op *batch);

/* Writes what is left, in a transaction without a flush. The lock is held. */
void idem__counters_flush(struct idem__counters *counters,
                          struct idem__conn *conn);
bool idem__counters_left(const struct idem__counters *counters);

/* Answers an IDEM_OP_COUNT from the file and what is pending. */
void idem__counters_answer(const struct idem__counters *counters,
                           struct idem__conn *conn, struct idem_op *op);

/* Readers, each with a connection of its own, at the same time at most. */
enum {
    IDEM__READERS_MAX = 16
};

/* After this many new claims, the next ones are expected to be new too. */
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
    bool is_local; /* Their file system is known to be a local disk. */
    bool is_known;
    bool is_linked; /* The database has a second name. */
    bool is_quiet;  /* The directory answers for the names in it. */
    int fd;         /* Refers to the database; -1: none. */
    struct stat file;
    struct stat log;
    struct stat root;      /* Of this process, when they were noted. */
    struct stat directory; /* When all names in it were last looked at. */
    time_t noted_s;        /* When that was last noted, or not quiet. */
    int64_t found_ns;      /* When all were last found in their place. */
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
    int64_t deleted;  /* The last row that was deleted. */
    int64_t held_ms;  /* Up to it all that is open is held; of these rows. */
    size_t rows;      /* Of the next slice beside writers. */
    bool beside;      /* Others wrote since the slice before the last. */
};

struct idem__sqlite_store {
    struct idem_store base;
    char path[IDEM__PATH_MAX +
              1]; /* Absolute; symbolic links as given: one on the
                                      way may lead elsewhere by now. */
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
    struct idem__replays *replays; /* NULL: none is kept in memory. */
    struct stat opened;            /* The file, whose replays these are. */

    /* For whoever holds the lock. */
    struct idem__files files;
    struct idem__sqlite_table table; /* table.conn is the writer. */
    uint8_t head[IDEM_HEAD_MAX];     /* Of the table. */
    bool broken;  /* A write failed on the disk: settle before the next. */
    bool too_big; /* The last transaction failed at RLIMIT_FSIZE. */
    bool changes; /* Completed records: the generation is odd until the end. */
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

/* ---- log_vfs.c ---- */

/* The name of a file system of SQLite that writes each commit to the log by one
 * call; NULL: memory ran out. Its connections are to be opened between begin and end,
 * alone: SQLite does not know it for longer, because a host may unload us. */
const char *idem__log_vfs_begin(void);
void idem__log_vfs_end(void);

/* ---- connect.c ---- */

/* A connection, checked and ready. The lock is held. */
int idem__sqlite_connect(struct idem__sqlite_store *store, bool writer,
                         struct idem__conn **ret_conn,
                         struct idem_error *error);

/* A reader beside the writer, which has checked the file under the same lock. */
int idem__sqlite_connect_beside(struct idem__sqlite_store *store,
                                struct idem__conn **ret_conn,
                                struct idem_error *error);

/* True if the file @path is the database of an application that keeps records in
 * it. Needs no lock: nothing is made or changed. */
bool idem__sqlite_is_of_application(const char *path);

/* Takes the lock, within the time that the store's options give. */
int idem__sqlite_lock(struct idem__sqlite_store *store,
                      struct idem_error *error);

/* ---- files.c ---- */

/* The file that the writer has open is the store from now on. */
void idem__files_note(struct idem__sqlite_store *store);
void idem__files_close(struct idem__files *files);

/* The lock file was deleted or renamed. IDEM_ECONFIG. */
int idem__files_lost_lock(const struct idem__sqlite_store *store,
                          struct idem_error *error);

/* True if the file of the store->opened still lies in its place, and the lock file, in which
 * others count their changes; from any thread. */
bool idem__files_is_opened(const struct idem__sqlite_store *store);

/* Checks that the files still lie in their place, under their names. @committed
 * includes the log, but not the deletion of the lock file, which releasing the lock
 * detects. IDEM_ECONFIG has what happened to them. For the holder of the lock. */
int idem__files_check(struct idem__sqlite_store *store, bool committed,
                      struct idem_error *error);

/* True if they were there a moment ago. */
bool idem__files_were_there(const struct idem__sqlite_store *store);

/* ---- connect.c: the pool of readers ---- */

void idem__readers_init(struct idem__sqlite_readers *readers);
void idem__readers_finish(struct idem__sqlite_readers *readers);

/* A connection for reading. NULL: none could be opened (@error) or, without @wait, none
 * is free. */
struct idem__conn *idem__readers_take(struct idem__sqlite_store *store,
                                      bool wait, struct idem_error *error);
/* The same for a caller of the library, whose @store may be of another kind. 0 or a
 * code. */
int idem__sqlite_reader(struct idem_store *store, struct idem__conn **ret_conn,
                        struct idem_error *ret_error);
/* Waits, without the lock of the store, until another thread gives a connection back.
 * NULL: there are none. */
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

/* A change that may concern every record, in transactions of bounded size so that memory
 * and log stay small. The lock is held all the time. A run that died is finished by
 * another: @decide changes no record twice. */

enum {
    IDEM__PASS_ROWS = 500
};

struct idem__pass {
    struct idem__sqlite_store *store;
    struct idem_error *error;
    const char *doing; /* Names it in messages. */

    /* Decides the change of @record: first by reading alone, where NULL is a record
     * that cannot be trusted, then with @writes inside the transaction. 0 or a code. */
    int (*decide)(struct idem__pass *pass, const struct idem_record *record,
                  bool writes, struct idem_decision *ret_decision);
    void (*progress)(void *ctx, uint64_t rows); /* May be NULL. */
    void *ctx;

    /* Its own. */
    int64_t seq; /* Of the row that was looked at last. */
    uint64_t rows;
    size_t len; /* Records of this page that must change. */
    uint8_t ids[IDEM__PASS_ROWS][IDEM_ID_LEN];
};

/* Passes over all records. 0 or a code. */
int idem__pass_run(struct idem__pass *pass);

/* Runs @work in a transaction of its own. 0 or a code. */
int idem__pass_commit(struct idem__pass *pass,
                      int (*work)(struct idem__pass *pass));
int idem__pass_fail(const struct idem__pass *pass, int sqlite_rc);

/* ---- peek.c ---- */

/* True if the handle was opened for reading. */
bool idem__sqlite_reads_only(const struct idem__sqlite_store *store);

/* Answers those of the *@n @ops that reading alone can answer, and leaves the others
 * in @ops. */
void idem__sqlite_peek(struct idem__sqlite_store *store, struct idem_op **ops,
                       size_t *n);

/* Sets the answer of @op if a read is enough, without returning the op. */
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

/* True if the row that was deleted last is gone: a transaction whose commit failed was
 * applied after all. An SQLite error counts as no. */
bool idem__sqlite_purge_was_applied(struct idem__sqlite_store *store);

/* The rows that were deleted are there again. */
void idem__sqlite_purge_undone(struct idem__sqlite_store *store);

/* The time went back: what is held may have to be looked at again. SQLITE_OK or a
 * result code. */
int idem__sqlite_purge_forget(struct idem__conn *conn);

/* ---- limit.c ---- */

/* Counts a request, inside a write transaction. True if something was written. */
bool idem__sqlite_limit(struct idem__sqlite_store *store, struct idem_op *op,
                        const struct idem_now *now);

/* Answers @op if a read is enough: a retry, or a refusal that need not be
 * remembered. */
bool idem__sqlite_limit_peek(struct idem__conn *conn, struct idem_op *op,
                             const struct idem_now *now);

/* One slice of a purge. True if rows went. */
bool idem__sqlite_limit_purge(struct idem__sqlite_store *store,
                              struct idem_op *op, const struct idem_now *now,
                              int64_t until_ms, bool *ret_done);

/* ---- info.c: the mark of a store that is moved ---- */

/* Reads or sets the store's mark, inside a write transaction. True if it wrote. */
bool idem__sqlite_move(struct idem__sqlite_store *store, struct idem_op *op,
                       const struct idem_now *now);

/* ---- batch.c ---- */

/* The group's run(): the lock is held, and released before it returns. */
void idem__sqlite_run(struct idem_store *base, struct idem_op *batch);

/* ---- settle.c ---- */

/* Begins a change: nothing is replayed from memory until the batch has ended and a
 * broken store has settled. */
void idem__sqlite_begin_change(struct idem__sqlite_store *store);

/* Opens the writing connection again, by its path, which may name another file by now.
 * Returns 0 or a code. */
int idem__sqlite_reconnect(struct idem__sqlite_store *store,
                           struct idem_error *error);

/* Settles the store: 0, and the store works again; or a code, and it stays broken. */
int idem__sqlite_settle(struct idem__sqlite_store *store,
                        struct idem_error *error);

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

/* Before the store is closed: writes the counts, and copies a long log into the file,
 * because the next process that opens the store would have to read all of it. Does both
 * only if nobody is in the way. */
void idem__sqlite_tidy(struct idem__sqlite_store *store);

/* ---- Making a store, and knowing one that was made; see lock_notes.c ---- */

/* Checks that the database of @conn, which is @empty or not, may be used as the store
 * in this place. Notes in the lock file that a store is being made. The lock is held.
 *
 * IDEM_ECONFIG    It is not the store that was made here.
 * IDEM_ENOTFOUND  There is none, and the options allow none to be made.
 */
int idem__making_begin(struct idem__sqlite_store *store,
                       struct idem__conn *conn, bool empty,
                       struct idem_error *error);

/* Creates the tables and the id, if they are missing, and then writes the note. */
int idem__making_end(struct idem__sqlite_store *store, struct idem__conn *conn,
                     bool empty, struct idem_error *error);

/* Makes this store the one of this place, whichever was here before. */
int idem__making_accept(struct idem__sqlite_store *store,
                        struct idem_error *error);

/* IDEM_ECONFIG if a store was made here whose file is not there any more. */
int idem__making_missing(const struct idem__sqlite_store *store,
                         struct idem_error *error);

/* Writes the notes in the lock file again: another process truncated it while this store
 * was open. */
void idem__making_renew(const struct idem__sqlite_store *store);

/* ---- check_contents.c: the records, indexes and pages inside a file ---- */

#define IDEM__CHECK_PUT_BACK                                                   \
    "Stop all users and restore a copy; see idem-store(7), Back-up."

/* Free space that a check leaves on the disk of the copy. */
#define IDEM__CHECK_ROOM_LOW (UINT64_C(64) << 20)

/* The space that this user may still write in @directory; UINT64_MAX: unknown. */
uint64_t idem__check_room(const char *directory);

/* Copies the database that @store has open to a temporary file, and tells of the
 * records and the pages there. @info: of the store. */
void idem__check_contents(const struct idem__findings *to,
                          const struct idem_check_options *options,
                          struct idem__sqlite_store *store,
                          const struct idem_sqlite_info *info);

#endif
