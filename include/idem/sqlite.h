/* idem/sqlite.h: the embedded store, one SQLite file. */
#ifndef IDEM_SQLITE_H
#define IDEM_SQLITE_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Opens the store in the file @path. The same as idem_open("sqlite:PATH", ...),
 * whose errors it has; its options may follow the path here too.
 *
 * Beside the file are PATH-wal and PATH-shm (SQLite's) and PATH-lock (ours),
 * and PATH-reserve, 4 MiB of disk for ending what was begun when it is full.
 * All of them are the store: copy, move or delete them together, and only while
 * nobody uses them.
 */
int idem_sqlite_open(const char *path, const struct idem_open_options *options,
                     struct idem_store **ret_store,
                     struct idem_error *ret_error);

/* Makes the store in the file @path, also where its options say create=no, and
 * tells in *@ret_created whether there was none. One that is there is left as it
 * is. Its errors are those of idem_open().
 */
int idem_sqlite_create(const char *path, bool *ret_created,
                       struct idem_error *ret_error);

/* SQLite counts the bytes that it takes, for sqlite3_memory_used() and its limits,
 * under one mutex for the whole process; a replay takes and gives back seven
 * blocks. Of a process that wants neither, this switches the counting off
 * (https://sqlite.org/c3ref/c_config_covering_index_scan.html, MEMSTATUS). To be
 * called before anything in the process uses SQLite, and while it has one thread.
 *
 * IDEM_EINVALID  SQLite is in use already: it goes on counting.
 */
int idem_sqlite_disable_memory_count(void);

/* ---- The file itself ---- */

struct idem_sqlite_info {
    size_t size;        /* sizeof, set by IDEM_SQLITE_INFO_INIT. */
    const char *path;   /* Until the store is closed. */
    unsigned schema;    /* The version of the tables. */
    uint64_t file_len;  /* Bytes of the database ... */
    uint64_t wal_len;   /* ... and of its log. */
    uint64_t page_size; /* Bytes. */
    uint64_t pages;
    uint64_t pages_free;
    uint64_t records[6]; /* By enum idem_status, expired ones too. */
    int64_t known_ms; /* The newest time in the file, at most a second late. */
    bool is_copy; /* It is older than what was here before: put back, and not
                     marked. False where that cannot be known. */
    uint64_t restores;   /* How often it was marked as restored ... */
    int64_t restored_ms; /* ... and when last; 0: never. */
    uint8_t id[16]; /* Of the store; random. Zeros: an application's database,
                       which has none. */
    bool
        is_other; /* PATH-lock knows another store, or none: nothing can be begun
                      or ended in it. */
    bool
        of_application; /* The database of an application, whose records change in
                            its own transactions (idem_sqlite_begin_in()): the
                           store has no lock file, and the file has no id. */
};
#define IDEM_SQLITE_INFO_INIT                                                  \
    {                                                                          \
        sizeof(struct idem_sqlite_info), NULL, 0, 0, 0, 0, 0, 0, {0}, 0,       \
            false, 0, 0, {0}, false, false                                     \
    }

/* The state of @store's file. Start *@ret_info from IDEM_SQLITE_INFO_INIT.
 *
 * IDEM_EINVALID  The store is no SQLite store, or the size is not set.
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_inspect(struct idem_store *store,
                        struct idem_sqlite_info *ret_info,
                        struct idem_error *ret_error);

struct idem_sqlite_log_info {
    size_t size; /* sizeof, set by IDEM_SQLITE_LOG_INFO_INIT. */
    uint64_t
        len;     /* Bytes of the log that are in use: its file may be longer. */
    int64_t pid; /* A process that keeps it from shrinking; 0: none is known. */
    char process[16]; /* Its name. */
};
#define IDEM_SQLITE_LOG_INFO_INIT                                              \
    {                                                                          \
        sizeof(struct idem_sqlite_log_info), 0, 0, ""                          \
    }

/* How long the log of @store is, and who keeps it from shrinking: every program that
 * keeps a transaction open in the file, such as a backup or a shell, does. Start
 * *@ret_log from IDEM_SQLITE_LOG_INFO_INIT. That process is looked for, for a fifth of a
 * second, where the log is longer than 32 MiB; one of another PID namespace is not
 * found.
 *
 * IDEM_EINVALID  The store is not an SQLite store, or the size is not set.
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_log(struct idem_store *store,
                    struct idem_sqlite_log_info *ret_log,
                    struct idem_error *ret_error);

/* ---- A file that was put back from a copy ---- */

/* A copy has forgotten what was recorded after it was made. Nothing brings that
 * back: an operation that was begun or completed since then runs again when it is
 * asked for. But what the copy knows to be open must not be taken for what it
 * was, and no fence may be given out twice. Once the copy lies in its place, and
 * before anybody uses it:
 *
 *     stop all users; delete PATH-wal and PATH-shm; copy the file to PATH
 *     idem_sqlite_mark_restored(PATH, ...)
 *
 * A store that finds itself older than what was in its place before refuses to
 * open (IDEM_ECONFIG) until that was done, and so does one that PATH-lock does
 * not know: another one, or one that lies in a new place without its lock file.
 * A copy that is less than a second older than what it replaces cannot be told
 * from it.
 */
struct idem_sqlite_restored {
    size_t size;      /* sizeof, set by IDEM_SQLITE_RESTORED_INIT. */
    uint64_t unknown; /* Attempts in progress: they are unknown now. */
    uint64_t cut_off; /* Records that their owners could have changed still, and
                          can no longer. */
    uint64_t corrupt; /* Records that cannot be trusted: left as they are. */
    int64_t known_ms; /* The newest moment that the copy knows of ... */
    int64_t marked_ms; /* ... and now. */
    uint64_t fence;    /* Every fence from now on is above it. */
    uint64_t times;    /* How often this file was marked, with this. */
    uint8_t id[16];    /* Of this restore; random. */
};
#define IDEM_SQLITE_RESTORED_INIT                                              \
    {                                                                          \
        sizeof(struct idem_sqlite_restored), 0, 0, 0, 0, 0, 0, 0,              \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

/* How many records were looked at so far. Must not call the library. */
typedef void idem_sqlite_progress_fn(void *ctx, uint64_t records);

/* Marks the file @path as put back from a copy. Start *@ret_restored from
 * IDEM_SQLITE_RESTORED_INIT; @progress may be NULL.
 *
 * Every attempt in progress, whatever its policy and its lease, becomes unknown
 * for a person to resolve, with a note that says why. Its former owner, or that
 * of any other record that could still be ended, gets IDEM_ELOST. Every
 * later fence is above all that were given out before, also since the copy was
 * made: from here on they are at least the store's time in microseconds.
 *
 * Others who use the store wait, or find it busy, until all is done. A call that
 * failed or died half-way is made again: nothing is done twice. But a second call
 * takes every attempt in progress for one of the copy, those that were begun since
 * the first included.
 *
 * IDEM_ENOTFOUND     The file does not exist.
 * IDEM_ECORRUPT      The file is damaged, or is not one with the log beside it;
 *                    nothing was marked. (Single records that cannot be trusted
 *                    are counted, and are not an error.)
 * IDEM_EUNKNOWN      The store is marked, but the lock file could not be written:
 *                    the next open may refuse it still.
 * And the other errors of idem_open().
 */
int idem_sqlite_mark_restored(const char *path,
                              idem_sqlite_progress_fn *progress, void *ctx,
                              struct idem_sqlite_restored *ret_restored,
                              struct idem_error *ret_error);

/* The same where the database is missing or empty, and cannot be put back: a new
 * store is made in its place. Everything that was recorded in the old one is
 * forgotten, and runs again when it is asked for. Without this the place stays
 * refused (IDEM_ECONFIG), because PATH-lock knows that a store was made there.
 */
int idem_sqlite_accept_loss(const char *path, idem_sqlite_progress_fn *progress,
                            void *ctx,
                            struct idem_sqlite_restored *ret_restored,
                            struct idem_error *ret_error);

/* ---- A store whose time ran ahead ---- */

/* Store time is the wall clock's once in a boot, and never goes back. While nothing
 * keeps that clock right (adjtimex(2)), it expires nothing. One that was said to be
 * right, and was ahead, is followed for good: this sets the time of the store at
 * @path back to this host's clock, if that is earlier. Fences, leases and the
 * memory of what was done are safe: fences go on above the time that was left, a
 * lease ends a lease from now at most, and what ended later than now is kept for a
 * whole retention. Programs that have the store open are started anew afterwards.
 * It can be killed and called again: until then records are kept for too long.
 *
 * Its errors are those of idem_open().
 */
int idem_sqlite_set_clock(const char *path,
                          const struct idem_open_options *options,
                          int64_t *ret_from_ms, int64_t *ret_to_ms,
                          struct idem_error *ret_error);

/* How far the time of @store went on when this boot of the host first used it, and
 * how much of that is in doubt still, because nothing is known to keep the clock
 * right: so much later what is past its retention expires.
 *
 * IDEM_EINVALID  The store is not an SQLite store.
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_clock(struct idem_store *store, int64_t *ret_jump_ms,
                      int64_t *ret_doubt_ms, struct idem_error *ret_error);

/* ---- Effect and record in one transaction ---- */

/* An effect that is itself a change of an SQLite database can be committed
 * together with its record: both are there or neither is, at every moment,
 * whatever dies when.
 *
 *     sqlite3_exec(db, "BEGIN IMMEDIATE", ...)
 *     idem_sqlite_begin_in(db, &request, &attempt, &error)
 *     |
 *     +-- IDEM_STARTED   change the database; then
 *     |                  idem_sqlite_complete_in(db, attempt, &result, &error)
 *     |                  and COMMIT
 *     +-- IDEM_REPLAY    ROLLBACK; attempt->record->result is the outcome
 *     +-- ...            ROLLBACK
 *
 * The records are tables of the caller's database (idem_record, idem_clock),
 * made at the first call. With IDEM_OPEN_READONLY idem_open() opens such a database
 * too, so that they can be listed and read; without it that is refused
 * (IDEM_ECONFIG). No lock but the transaction is used; on an error roll back. An attempt that was begun in a transaction is ended in one, the same or
 * a later one, and not with idem_complete() and the other endings. How durable a commit is
 * is the caller's choice: PRAGMA synchronous.
 *
 * A claim that is committed before it is ended has a lease like any other: renew it
 * with idem_sqlite_renew_in() in a transaction of its own, and start no further
 * effect once idem_attempt_lease_left_ms() is 0. idem_attempt_from_token() with a
 * NULL store gives such an attempt to another process.
 *
 * From another language than C these functions cannot be called: its driver hides
 * the sqlite3 *, or has an SQLite of its own. For it the same is there as SQL
 * functions, in the loadable extension mod_idem: idem-sqlite(7).
 *
 * Nothing deletes these records by itself. Those past their retention:
 *
 *     DELETE FROM idem_record
 *     WHERE status IN (2, 5) AND deadline < unixepoch() * 1000
 */
struct sqlite3;

/* Claims @request's key in the transaction that is open on @db. Not durable
 * before the caller commits. wait_ms must be 0. The caller destroys the attempt.
 *
 * IDEM_EINVALID      No transaction is open on @db, or @request is not valid.
 * IDEM_ECONFIG       The tables are of another version of idem.
 * IDEM_EUNAVAILABLE  The database is locked, or the clock cannot be read.
 * IDEM_EFULL, IDEM_EDENIED, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_begin_in(struct sqlite3 *db, const struct idem_request *request,
                         struct idem_attempt **ret_attempt,
                         struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Records how the attempt ended, in the transaction that is open on @db.
 *
 * IDEM_ELOST         Another attempt owns the record now; it is unchanged.
 * IDEM_EINVALID      No transaction is open, the attempt was not STARTED, or it
 *                    was begun in a store.
 * IDEM_EUNAVAILABLE, IDEM_EFULL, IDEM_EDENIED, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_end_in(struct sqlite3 *db, struct idem_attempt *attempt,
                       const struct idem_outcome *outcome,
                       struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* The same, completed with @result (NULL: an empty one). */
int idem_sqlite_complete_in(struct sqlite3 *db, struct idem_attempt *attempt,
                            const struct idem_result *result,
                            struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Extends the lease of a claim that was committed: it ends @lease_ms after now, or,
 * with 0, as long after now as was asked for at first. It never ends earlier than it
 * would have. Counts once the caller has committed.
 *
 * IDEM_ELOST         Another attempt owns the record now, or it was ended.
 * IDEM_EINVALID      No transaction is open, the attempt was not STARTED, or it
 *                    was begun in a store.
 * IDEM_EUNAVAILABLE, IDEM_EFULL, IDEM_EDENIED, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_renew_in(struct sqlite3 *db, struct idem_attempt *attempt,
                         int64_t lease_ms, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
