/* idem/sqlite.h: the embedded store, one SQLite file. */
#ifndef IDEM_SQLITE_H
#define IDEM_SQLITE_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Opens the store in the file @path, like idem_open("sqlite:PATH", ...), with the same
 * errors. The options of that URL may follow the path.
 *
 * Beside the file are PATH-wal and PATH-shm (SQLite's), PATH-lock (ours), and
 * PATH-reserve, 4 MiB of disk for ending attempts when the disk is full. All of them
 * are the store: copy, move or delete them together, and only while no process uses
 * them.
 */
int idem_sqlite_open(const char *path, const struct idem_open_options *options,
                     struct idem_store **ret_store,
                     struct idem_error *ret_error);

/* Creates the store in the file @path, even if the options after the path include
 * create=no, and sets *@ret_created to whether it did. Does not change an existing
 * store. Its errors are those of idem_open().
 */
int idem_sqlite_create(const char *path, bool *ret_created,
                       struct idem_error *ret_error);

/* SQLite counts the bytes that it allocates, for sqlite3_memory_used() and its limits,
 * under one mutex for the whole process; a replay allocates and frees seven blocks. A
 * process that needs neither can switch the counting off
 * (https://sqlite.org/c3ref/c_config_covering_index_scan.html, MEMSTATUS). Call this
 * before anything in the process uses SQLite, and before the process starts a thread.
 *
 * IDEM_EINVALID  SQLite is already in use, and goes on counting.
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
    int64_t known_ms;  /* The newest time in the file, at most a second late. */
    bool is_copy;      /* The file is older than the store that was here before,
                          and was not marked as restored. Also false if that
                          cannot be known. */
    uint64_t restores; /* How often it was marked as restored ... */
    int64_t restored_ms; /* ... and when last; 0: never. */
    uint8_t id[16]; /* Of the store; random. Zeros: an application's database,
                       which has none. */
    bool is_other;  /* PATH-lock knows another store, or none: no attempt can
                       begin or end in this file. */
    bool of_application; /* The database of an application, which changes the
                            records in its own transactions
                            (idem_sqlite_begin_in()): it has no lock file and no
                            id. */
};
#define IDEM_SQLITE_INFO_INIT                                                  \
    {                                                                          \
        sizeof(struct idem_sqlite_info), NULL, 0, 0, 0, 0, 0, 0, {0}, 0,       \
            false, 0, 0, {0}, false, false                                     \
    }

/* Reads the state of @store's file. Start *@ret_info from IDEM_SQLITE_INFO_INIT.
 *
 * IDEM_EINVALID  The store is not a SQLite store, or the size is not set.
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_inspect(struct idem_store *store,
                        struct idem_sqlite_info *ret_info,
                        struct idem_error *ret_error);

struct idem_sqlite_log_info {
    size_t size; /* sizeof, set by IDEM_SQLITE_LOG_INFO_INIT. */
    uint64_t
        len;     /* Bytes of the log that are in use: its file may be longer. */
    int64_t pid; /* A process that keeps it from shrinking; 0: unknown. */
    char process[16]; /* Its name. */
};
#define IDEM_SQLITE_LOG_INFO_INIT                                              \
    {                                                                          \
        sizeof(struct idem_sqlite_log_info), 0, 0, ""                          \
    }

/* Reads how long the log of @store is, and which process keeps it from shrinking
 * because it has a transaction open in the file, such as a backup or a shell. Start
 * *@ret_log from IDEM_SQLITE_LOG_INFO_INIT. If the log is longer than 32 MiB, this
 * looks for that process for up to a fifth of a second; it cannot find a process in
 * another PID namespace.
 *
 * IDEM_EINVALID  The store is not an SQLite store, or the size is not set.
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_log(struct idem_store *store,
                    struct idem_sqlite_log_info *ret_log,
                    struct idem_error *ret_error);

/* ---- A file that was put back from a copy ---- */

/* A copy lacks everything that the store recorded after the copy was made. Nothing can
 * bring that back: an operation that began or completed since then runs again when its
 * caller retries. But records that are open in the copy must not count as open, and no
 * fence may be issued twice. To put the copy in its place:
 *
 *     stop all users; delete PATH-wal and PATH-shm; copy the file to PATH
 *     idem_sqlite_mark_restored(PATH, ...)
 *
 * Until then a store that is older than the one before it refuses to open
 * (IDEM_ECONFIG), and so does a store that PATH-lock does not know: another store, or a
 * store in a new place without its lock file. idem cannot tell a copy that is less than
 * a second older from the store that it replaces.
 */
struct idem_sqlite_restored {
    size_t size;       /* sizeof, set by IDEM_SQLITE_RESTORED_INIT. */
    uint64_t unknown;  /* Attempts that were in progress, and are unknown
                          now. */
    uint64_t cut_off;  /* Other records that their owners could still have
                          ended, and can no longer. */
    uint64_t corrupt;  /* Records that cannot be trusted; they are unchanged. */
    int64_t known_ms;  /* The newest time in the copy ... */
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

/* Called with the number of records read so far. Must not call the library. */
typedef void idem_sqlite_progress_fn(void *ctx, uint64_t records);

/* Marks the file @path as restored from a copy. Start *@ret_restored from
 * IDEM_SQLITE_RESTORED_INIT; @progress may be NULL.
 *
 * Every attempt in progress, whatever its policy and its lease, becomes unknown for a
 * person to resolve, with a note that gives the reason. The former owner of such an
 * attempt, and the owner of any other record that it could still end, gets IDEM_ELOST.
 * Every later fence is above all earlier ones, including those issued since the copy
 * was made: fences are now at least the store's time in microseconds. Other users of
 * the store wait, or find it busy, until this is done. If a call fails or its process
 * dies midway, call again: no step happens twice. But a second call takes every attempt
 * in progress for one of the copy, including attempts that began after the first call.
 *
 * IDEM_ENOTFOUND  The file does not exist.
 * IDEM_ECORRUPT   The file is damaged, or the log beside it belongs to another file;
 *                 nothing was marked. (A single record that cannot be trusted is
 *                 counted, and is not an error.)
 * IDEM_EUNKNOWN   The store is marked, but the lock file could not be written: the next
 *                 open may still refuse the store.
 * It also returns the other errors of idem_open().
 */
int idem_sqlite_mark_restored(const char *path,
                              idem_sqlite_progress_fn *progress, void *ctx,
                              struct idem_sqlite_restored *ret_restored,
                              struct idem_error *ret_error);

/* Creates a new store at @path in place of a database that is missing or empty and
 * cannot be restored, and marks it like idem_sqlite_mark_restored(). Everything that
 * the old store recorded is lost, and runs again when its caller retries. Without this
 * call idem_open() refuses the place (IDEM_ECONFIG), because PATH-lock knows that a
 * store was created there. The errors are the same.
 */
int idem_sqlite_accept_loss(const char *path, idem_sqlite_progress_fn *progress,
                            void *ctx,
                            struct idem_sqlite_restored *ret_restored,
                            struct idem_error *ret_error);

/* ---- A store whose time ran ahead ---- */

/* The store takes its time from the wall clock once in a boot, and never goes back.
 * While nothing synchronizes that clock (adjtimex(2)), its time expires nothing. But if
 * a clock that counts as synchronized was ahead, the store keeps that time. This sets
 * the time of the store at @path back to this host's clock, if that is earlier. Fences,
 * leases and outcomes stay safe: fences continue above the former time, no lease lasts
 * longer than its length from now, and a record that ended later than now is kept for a
 * whole retention. Restart programs that have the store open afterwards. The call may
 * be interrupted and repeated: until it is done, the store keeps records for too long.
 * *@ret_from_ms and *@ret_to_ms are the store's time before and after. The errors are
 * those of idem_open().
 */
int idem_sqlite_set_clock(const char *path,
                          const struct idem_open_options *options,
                          int64_t *ret_from_ms, int64_t *ret_to_ms,
                          struct idem_error *ret_error);

/* Reads how far the time of @store advanced when it was first used after this boot of
 * the host, in ms, and how much of that is still in doubt because nothing is known to
 * synchronize the clock: records expire that much later.
 *
 * IDEM_EINVALID  The store is not an SQLite store.
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_clock(struct idem_store *store, int64_t *ret_jump_ms,
                      int64_t *ret_doubt_ms, struct idem_error *ret_error);

/* ---- Effect and record in one transaction ---- */

/* An effect that is itself a change of a SQLite database can be committed together with
 * its record: either both exist or neither does, whatever process dies.
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
 * The first call creates the tables idem_record and idem_clock in the caller's
 * database. idem_open() opens such a database with IDEM_OPEN_READONLY to list and read
 * the records, and refuses it otherwise (IDEM_ECONFIG). These functions use no lock but
 * the transaction; after an error, roll back. End an attempt that began in a
 * transaction in the same or a later transaction with these functions, not with
 * idem_complete() and the like. The caller's PRAGMA synchronous decides how durable a
 * commit is.
 *
 * A claim that is committed before its end has a lease like any other: renew it with
 * idem_sqlite_renew_in() in a transaction of its own, and start no further effect once
 * idem_attempt_lease_left_ms() is 0. Another process can take such an attempt over with
 * idem_attempt_from_token() and a NULL store.
 *
 * Other languages cannot call these functions, because their drivers hide the sqlite3 *
 * or have a SQLite of their own. They use the SQL functions of the loadable extension
 * mod_idem instead: idem-sqlite(7).
 *
 * No function deletes these records. To delete those past their retention:
 *
 *     DELETE FROM idem_record
 *     WHERE status IN (2, 5) AND deadline < unixepoch() * 1000
 */
struct sqlite3;

/* Claims the key of @request in the transaction that is open on @db. The claim is not
 * durable before the caller commits. wait_ms must be 0. The caller destroys the
 * attempt.
 *
 * IDEM_EINVALID      No transaction is open on @db, or @request is not valid.
 * IDEM_ECONFIG       The tables belong to another version of idem.
 * IDEM_EUNAVAILABLE  The database is locked, or the clock cannot be read.
 * IDEM_EFULL, IDEM_EDENIED, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_sqlite_begin_in(struct sqlite3 *db, const struct idem_request *request,
                         struct idem_attempt **ret_attempt,
                         struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Records the outcome of @attempt in the transaction that is open on @db.
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

/* Completes @attempt with @result (NULL: an empty result) in the transaction that is
 * open on @db. The errors are those of idem_sqlite_end_in(). */
int idem_sqlite_complete_in(struct sqlite3 *db, struct idem_attempt *attempt,
                            const struct idem_result *result,
                            struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Extends the lease of a committed claim to @lease_ms from now (0: the length that was
 * requested at begin); never shortens it. The renewal takes effect when the caller
 * commits.
 *
 * IDEM_ELOST         Another attempt owns the record now, or this attempt has ended.
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
