/* Declares what the files of the SQLite store share. */
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

/* lock_notes.c keeps notes in the lock file about the store beside it: which store was
 * made here, and the newest time that it had. */

/* ---- Which store was made here ------------------------------------------- */

/* The note in the lock file about the store beside it. */
enum idem__made {
    IDEM__MADE_NONE,    /* No note: the lock file is new, or was emptied. */
    IDEM__MADE_PENDING, /* A store is being made; the maker may have died. */
    IDEM__MADE_DONE,    /* A store was made. */
    /* The note that a store was made is torn. The id is the one of the pending note, if
     * that can be read. */
    IDEM__MADE_DAMAGED,
};

struct idem__identity {
    enum idem__made made;
    uint8_t id[IDEM__STORE_ID_LEN];
};

/* Reads the lock file's note. */
void idem__identity_read(const struct idem__lock *lock,
                         struct idem__identity *ret_identity);

/* Writes the note and flushes it. 0 or a code. */
int idem__identity_write(const struct idem__lock *lock, enum idem__made made,
                         const uint8_t id[IDEM__STORE_ID_LEN],
                         struct idem_error *error);

/* Returns IDEM_ECONFIG, with the remedy for a missing store. */
int idem__identity_gone(const char *path, struct idem_error *error);

/* ---- How new the store has been ------------------------------------------ */

/* Notes a time that is durable in the store. The caller holds the lock. */
void idem__seen_note(const struct idem__lock *lock, int64_t ms);

/* Notes a time and reports a failure: 0, or -1. The caller writes the identity after it,
 * which flushes both. */
int idem__seen_set(const struct idem__lock *lock, int64_t ms);

/* Clears the note, which is about an earlier store, because a new one is made here. */
void idem__seen_forget(const struct idem__lock *lock);

/* The time in the note; 0: there is none, or it cannot be read. */
int64_t idem__seen_ms(const struct idem__lock *lock);

/* ---- Counters: counters.c ---- */

/* Counters are in the file, so that processes which live for a moment are counted, too.
 *
 * Answers are counted in memory, and saved with a write transaction that happens anyway:
 * with each of the first few of a process, then with one a second, because a save adds a
 * page to the commit. The rest is written without a flush when the store is closed. So a
 * power cut, or a kill of the process, loses the counts of the last moments at most. */

struct idem__counters {
    struct idem__tally pending; /* Counted, and not in the file yet; atomic. */
    struct idem__tally saved;   /* Saved by the open transaction. */
    /* CLOCK_MONOTONIC: saves are paid for up to here (may_save()). */
    int64_t paid_ms;
};

/* Counts @op, which was answered without a transaction; from any thread. */
void idem__counters_note(struct idem__counters *counters,
                         const struct idem_op *op);

/* Saves the pending counts and those of @batch in the open transaction, if a save is due.
 * An SQLite result. */
int idem__counters_save(struct idem__counters *counters,
                        struct idem__conn *conn, const struct idem_op *batch);

/* Called when the transaction of @batch has begun, and when it is committed. */
void idem__counters_begun(struct idem__counters *counters);
void idem__counters_committed(struct idem__counters *counters,
                              const struct idem_op *batch);

/* Writes the pending counts, in a transaction without a flush. The caller holds the
 * lock. */
void idem__counters_flush(struct idem__counters *counters,
                          struct idem__conn *conn);
bool idem__counters_left(const struct idem__counters *counters);

/* Answers an IDEM_OP_COUNT from the file and the pending counts. */
void idem__counters_answer(const struct idem__counters *counters,
                           struct idem__conn *conn, struct idem_op *op);

/* The most readers at the same time, each with a connection of its own. */
enum {
    IDEM__READERS_MAX = 16
};

/* After this many new claims in a row, the next ones are expected to be new, too, and are
 * not read first. */
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
    bool is_quiet;  /* The directory answers for its names. */
    int fd;         /* Refers to the database; -1: none. */
    struct stat file;
    struct stat log;
    struct stat root; /* The root of this process when they were noted. */
    /* The directory when all names in it were last checked. */
    struct stat directory;
    time_t noted_s; /* When the directory was last noted, or found not quiet. */
    int64_t found_ns; /* When all files were last found in place. */
};

/* When checkpoint.c may next make all writers wait for readers of the log. */
struct idem__restart {
    int64_t next_ms;  /* CLOCK_MONOTONIC. */
    int64_t pause_ms; /* 0: no log was long yet. */
    int copied;       /* Frames copied when the last wait ended. */
};

/* How far a long log is copied into the file beside the writers: checkpoint.c. */
enum idem__copy {
    IDEM__COPY_NONE,
    IDEM__COPY_OFFERED, /* Offered to a leader that hands the lead on. */
    IDEM__COPY_RUNNING,
    IDEM__COPY_DONE, /* Done, but for what was written meanwhile. */
};

/* The state that the purges of this process share; see purge.c. */
struct idem__purge {
    /* A window of rows that are due, in the order of the table; NULL while no purge
     * runs. */
    int64_t *seqs;
    size_t len;
    size_t next;      /* The first of them that was not checked yet. */
    uint64_t from[3]; /* Cursors: where the window begins, ... */
    uint64_t to[3];   /* ... and where the next one does. */
    int64_t deleted;  /* The last row that was deleted. */
    int64_t held_ms;  /* Of these rows, all open ones due by then are held. */
    size_t rows;      /* Rows of the next slice beside writers. */
    bool beside;      /* Others had the lock beside the last slice. */
};

struct idem__sqlite_store {
    struct idem_store base;
    /* Absolute. Symbolic links are as given: one on the way may lead elsewhere by now. */
    char path[IDEM__PATH_MAX + 1];
    char url[IDEM_STORE_URL_MAX + 1];
    /* Owner and mode of files that this process makes. */
    struct idem__share share;
    struct idem__lock *lock; /* NULL: the database is an application's. */
    bool of_application;     /* idem only reads it. */
    int64_t found_ms; /* The newest time in the file when it was opened. */
    bool is_copy;     /* An older copy, or another store, is accepted. */
    bool may_lose;    /* A missing store is accepted, too. */
    bool no_create;   /* A missing store is not created. */
    uint8_t id[IDEM__STORE_ID_LEN];
    struct idem__group group;
    struct idem__sqlite_readers readers;
    struct idem__replays *replays; /* NULL: no record is kept in memory. */
    struct stat opened;            /* The file that the replays are from. */

    /* Only the holder of the lock uses these. */
    struct idem__files files;
    struct idem__sqlite_table table; /* table.conn is the writer. */
    uint8_t head[IDEM_HEAD_MAX];     /* Memory for table.head. */
    bool broken;  /* A write failed on the disk: settle before the next. */
    bool too_big; /* The last transaction failed at RLIMIT_FSIZE. */
    /* Completed records change: the generation stays odd until the batch ends. */
    bool changes;
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

/* Opens @path even if it is an older copy of the store, or another store; with @may_lose
 * also if the store is missing. */
int idem__sqlite_open_copy(const char *path,
                           const struct idem_open_options *options,
                           bool may_lose, struct idem__sqlite_store **ret_store,
                           struct idem_error *error);

/* ---- log_vfs.c ---- */

/* Registers a VFS with SQLite that writes each commit to the log by one call, and returns
 * its name; NULL: memory ran out. A connection with it is opened between begin and end,
 * by one thread at a time. SQLite does not keep it for longer, because a host may unload
 * this library. */
const char *idem__log_vfs_begin(void);
void idem__log_vfs_end(void);

/* ---- connect.c ---- */

/* Opens a connection, checks it and sets it up. The caller holds the lock. */
int idem__sqlite_connect(struct idem__sqlite_store *store, bool writer,
                         struct idem__conn **ret_conn,
                         struct idem_error *error);

/* Opens a reader beside the writer, which has checked the file under the same hold of the
 * lock. */
int idem__sqlite_connect_beside(struct idem__sqlite_store *store,
                                struct idem__conn **ret_conn,
                                struct idem_error *error);

/* True if the file @path is the database of an application that keeps records in
 * it. Needs no lock: nothing is made or changed. */
bool idem__sqlite_is_of_application(const char *path);

/* Takes the lock, within the timeout of the store's options. */
int idem__sqlite_lock(struct idem__sqlite_store *store,
                      struct idem_error *error);

/* ---- files.c ---- */

/* Notes the files as they are now: from now on the file that the writer has open is the
 * store. */
void idem__files_note(struct idem__sqlite_store *store);
void idem__files_close(struct idem__files *files);

/* Reports that the lock file was deleted or renamed. Returns IDEM_ECONFIG. */
int idem__files_lost_lock(const struct idem__sqlite_store *store,
                          struct idem_error *error);

/* The generation of the completed records (store/shared/replays.h), for any thread. 0:
 * store->opened is not in its place, or the lock file, in which all processes count their
 * changes, is not in its own; or none is known. */
uint64_t idem__files_generation(const struct idem__sqlite_store *store);

/* Checks that the files are still in their place, under their names. @committed: the
 * check after a commit, which includes the log and the name of the lock file.
 * IDEM_ECONFIG has what happened to them. The caller holds the lock. */
int idem__files_check(struct idem__sqlite_store *store, bool committed,
                      struct idem_error *error);

/* True if the last check found them in place, a moment ago. */
bool idem__files_were_there(const struct idem__sqlite_store *store);

/* ---- connect.c: the pool of readers ---- */

void idem__readers_init(struct idem__sqlite_readers *readers);
void idem__readers_finish(struct idem__sqlite_readers *readers);

/* A connection for reading. NULL: none could be opened (@error) or, without @wait, none
 * is free. */
struct idem__conn *idem__readers_take(struct idem__sqlite_store *store,
                                      bool wait, struct idem_error *error);
/* Does the same for a caller of the library, whose @store may not be an SQLite store. 0
 * or a code. */
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
/* Closes the connections that are not in use; the next reader opens a new one. */
void idem__readers_drop_idle(struct idem__sqlite_readers *readers);

/* ---- info.c ---- */

struct idem_sqlite_info;

/* Implements idem_sqlite_inspect(). Counts the records only with @count, because that
 * reads an index from end to end. */
int idem__sqlite_inspect(struct idem_store *store, bool count,
                         struct idem_sqlite_info *ret_info,
                         struct idem_error *ret_error);

/* ---- walk.c ---- */

void idem__sqlite_list(struct idem__conn *conn, struct idem_op *op,
                       const struct idem_now *now);

/* A pass over all records that may change each of them, in transactions of bounded size,
 * so that memory and log stay small. The caller holds the lock all the time. If a pass
 * dies, another one finishes it: @decide changes no record twice. */

enum {
    IDEM__PASS_ROWS = 500
};

struct idem__pass {
    struct idem__sqlite_store *store;
    struct idem_error *error;
    const char *doing; /* Names it in messages. */

    /* Decides how @record changes: first outside a transaction, where NULL is a record
     * that cannot be trusted, then with @writes inside one. 0 or a code. */
    int (*decide)(struct idem__pass *pass, const struct idem_record *record,
                  bool writes, struct idem_decision *ret_decision);
    void (*progress)(void *ctx, uint64_t rows); /* May be NULL. */
    void *ctx;

    /* The pass's own. */
    int64_t seq; /* The row that was read last. */
    uint64_t rows;
    size_t len; /* How many records of this page must change. */
    uint8_t ids[IDEM__PASS_ROWS][IDEM_ID_LEN];
};

/* Passes over all records. 0 or a code. */
int idem__pass_run(struct idem__pass *pass);

/* Runs @work in a transaction of its own. 0 or a code. */
int idem__pass_commit(struct idem__pass *pass,
                      int (*work)(struct idem__pass *pass));
int idem__pass_fail(const struct idem__pass *pass, int sqlite_rc);

/* ---- peek.c ---- */

/* True if the handle was opened read-only. */
bool idem__sqlite_reads_only(const struct idem__sqlite_store *store);

/* Answers each of the *@n @ops for which a read is enough, and leaves the others in
 * @ops. */
void idem__sqlite_peek(struct idem__sqlite_store *store, struct idem_op **ops,
                       size_t *n);

/* Sets the answer of @op if a read is enough, but does not return the op to its caller.
 * True if it did. */
bool idem__sqlite_answer_alone(struct idem__sqlite_store *store,
                               struct idem_op *op);

/* ---- purge.c ---- */

/* One slice of a purge, inside a write transaction. True if it wrote. */
bool idem__sqlite_purge(struct idem__sqlite_store *store, struct idem_op *op,
                        const struct idem_now *now);

/* Plans the next slice of a purge, and the rest before it, if @batch had a slice. The
 * batch held the lock for @commit_ns until its commit, and for @lock_ns with the
 * checkpoint after it, which copies what all processes have written. */
void idem__sqlite_purge_ran(struct idem__sqlite_store *store,
                            struct idem_op *batch, int64_t commit_ns,
                            int64_t lock_ns);

/* Frees the memory that purges keep between slices. */
void idem__sqlite_purge_finish(struct idem__purge *purge);

/* True if the row that was deleted last is gone: the transaction was applied although its
 * commit failed. An SQLite error counts as false. */
bool idem__sqlite_purge_was_applied(struct idem__sqlite_store *store);

/* Empties the window. Called also after a rollback, which restores the deleted rows. */
void idem__sqlite_purge_undone(struct idem__sqlite_store *store);

/* Forgets up to when all records are held, because the time was set back. SQLITE_OK or a
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

/* Runs one slice of a purge. True if it deleted rows. */
bool idem__sqlite_limit_purge(struct idem__sqlite_store *store,
                              struct idem_op *op, const struct idem_now *now,
                              int64_t until_ms, bool *ret_done);

/* ---- info.c: the mark of a store that is moved ---- */

/* Reads or sets the store's mark, inside a write transaction. True if it wrote. */
bool idem__sqlite_move(struct idem__sqlite_store *store, struct idem_op *op,
                       const struct idem_now *now);

/* ---- batch.c ---- */

/* Implements the group's run(): called with the lock held, and releases it before it
 * returns. */
void idem__sqlite_run(struct idem_store *base, struct idem_op *batch);

/* ---- settle.c ---- */

/* Begins a change of completed records: no process replays from memory until the batch
 * has ended and a broken store has settled. */
void idem__sqlite_begin_change(struct idem__sqlite_store *store);

/* Opens the writing connection again, by the store's path, after a check that the path
 * still names the store. Returns 0 or a code. */
int idem__sqlite_reconnect(struct idem__sqlite_store *store,
                           struct idem_error *error);

/* Settles the store: 0, and the store works again; or a code, and it stays broken. */
int idem__sqlite_settle(struct idem__sqlite_store *store,
                        struct idem_error *error);

/* ---- checkpoint.c ---- */

/* Copies the log into the file if it has become long and no copy was refused lately. The
 * caller holds the lock. */
void idem__sqlite_checkpoint(struct idem__sqlite_store *store);

/* The group's chore: copies the log into the file while other threads go on writing. */
bool idem__sqlite_take_copy(struct idem_store *base);
void idem__sqlite_copy(struct idem_store *base);

/* The number of frames in the log. Called after a read of @conn has begun. */
uint32_t idem__sqlite_log_frames(const struct idem__conn *conn);

/* Called before each read transaction: waits for 40 ms at most while a checkpoint wants
 * readers out of the log. */
void idem__sqlite_before_read(const struct idem__sqlite_store *store);

/* Called before the store is closed: writes the counts, and copies a long log into the
 * file, because the next process that opens the store would have to read all of it. Does
 * neither if another process keeps the lock. */
void idem__sqlite_tidy(struct idem__sqlite_store *store);

/* ---- Making a store, and recognising it later; see lock_notes.c ---- */

/* Checks that the database of @conn may be used as the store in this place. If it is
 * @empty, notes in the lock file that a store is being made. The caller holds the lock.
 *
 * IDEM_ECONFIG    It is not the store that was made here.
 * IDEM_ENOTFOUND  The store is missing, and the options do not allow making it.
 */
int idem__making_begin(struct idem__sqlite_store *store,
                       struct idem__conn *conn, bool empty,
                       struct idem_error *error);

/* Creates the tables and the id if the database is @empty, and then notes that the store
 * was made. */
int idem__making_end(struct idem__sqlite_store *store, struct idem__conn *conn,
                     bool empty, struct idem_error *error);

/* Notes this store as the one of this place, whichever store was here before. */
int idem__making_accept(struct idem__sqlite_store *store,
                        struct idem_error *error);

/* Returns IDEM_ECONFIG if a store was made here and its file is missing, else 0. */
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

/* Copies the database of @store to a temporary file, checks the records and pages there,
 * and reports the findings. @info is about @store. */
void idem__check_contents(const struct idem__findings *to,
                          const struct idem_check_options *options,
                          struct idem__sqlite_store *store,
                          const struct idem_sqlite_info *info);

#endif
