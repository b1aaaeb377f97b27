/* idem.h: one recorded outcome for each idempotency key.
 *
 * Anything may be delivered twice: a job starts on two hosts, a client retries after a
 * time-out, a queue redelivers. idem keeps one durable record for each key, so an
 * operation that is retried, redelivered or raced has one recorded outcome, and every
 * caller gets that outcome.
 *
 * Calling sequence
 * ----------------
 *
 *     idem_open("sqlite:/var/lib/pay/idem.db", NULL, &store, &error)
 *     |
 *     |   struct idem_request request = IDEM_REQUEST_INIT;
 *     |   request.key = idem_str("order-42");
 *     |   request.on_expired_lease = IDEM_HOLD;
 *     |
 *     idem_begin(store, &request, &attempt, &error)
 *     |
 *     |   attempt->verdict says what to do:
 *     |
 *     +-- IDEM_STARTED     the key is yours: do the work, then end the attempt
 *     |     |              with exactly one of
 *     |     +-- idem_complete()  it is done, and this is the result
 *     |     +-- idem_fail()      it failed for good: a person must look
 *     |     +-- idem_release()   nothing happened: another may try
 *     |     +-- idem_retry()     it may have happened: run it again
 *     |     +-- idem_unknown()   it may have happened: a person must look
 *     |         (idem_renew() while the work takes longer than the lease)
 *     +-- IDEM_REPLAY      the work is done: attempt->record->result
 *     +-- IDEM_BUSY        another owner is at work: attempt->lease_left_ms
 *     +-- IDEM_MISMATCH    the key was used for another request
 *     +-- IDEM_FAILED      on record as failed: attempt->record->error
 *     +-- IDEM_UNKNOWN     the outcome is unknown: a person must idem_resolve()
 *     +-- IDEM_RELEASED    (waiters only) the owner gave it up: begin again
 *     |
 *     idem_attempt_destroy(attempt)
 *     idem_close(store)
 *
 * idem_once() is the whole pattern in one call. Queues (<idem/queue.h>) have the same
 * verbs without blocking: thousands of operations in flight from one thread.
 *
 * The states of a record
 * ----------------------
 *
 *     (none) --begin--> in_progress --complete--> completed --retention--> (none)
 *                         |  ^ |  '---fail------> failed    --resolve--> ...
 *                         |  | |------release---> released  --begin--> in_progress
 *                         |  | '------retry-----> retry     --begin--> in_progress
 *                         |  '-takeover (lease over, policy rerun)
 *                         '--unknown, or lease over under policy hold--> unknown
 *
 *     completed, failed, unknown, retry --idem_reopen() by a person--> retry
 *
 * "retry" is shown and not stored: such a record is in progress without a lease, and
 * idem_record.retry is set. The next begin starts at once, whatever the policies, and
 * as a takeover: the work may have been done, in part or whole.
 *
 * An owner may end its attempt, also after the lease is over, until another attempt has
 * started or a person has resolved the record. If the record became unknown because the
 * lease ended, the owner may still complete, fail or retry, but no longer release.
 *
 * README.md, "What it promises", has the promises and their limits. Above all: if a
 * process dies between the effect and idem_complete(), no library can know whether the
 * effect happened. IDEM_HOLD then answers IDEM_UNKNOWN and waits for a person;
 * IDEM_RERUN runs the work again, with attempt->takeover set.
 *
 * Conventions
 * -----------
 *
 * - Functions return 0 or a negative enum idem_code. Outputs come last and are named
 *   ret_*. On failure they are untouched, and there is nothing to free.
 * - A struct idem_error * may be NULL; on failure it receives the code and one sentence
 *   with what failed and why.
 * - Every input is copied before the call returns. No slice needs a NUL at its end, and
 *   none that the library returns has one: print it with "%.*s".
 * - Times are int64_t milliseconds: points since 1970-01-01 UTC in the store's time,
 *   durations otherwise.
 * - A store may be used from many threads at once; an attempt, an op and a queue by one
 *   thread at a time (a queue may be submitted to from many).
 * - Handles do not survive fork(): a child opens the store anew. Functions that use a
 *   handle of the parent return IDEM_EINVALID and change nothing.
 * - The library never prints or exits. It reads no environment variables itself; a
 *   DynamoDB store reads AWS's, and libpq reads its own. It starts a thread only for
 *   IDEM_OPEN_THREAD, <idem/renewer.h> and, for a moment, AWS credentials. It neither
 *   renews leases nor purges records unless you call it.
 * - It does not touch signals. Under a limit on the size of files, SIGXFSZ ends the
 *   program; after signal(SIGXFSZ, SIG_IGN), the library returns IDEM_EFULL instead.
 * - Link with the flags of `pkg-config --libs idem`; statically: -lidem -lsqlite3
 *   -lcrypto -ldl -lpthread. Whole programs: examples/minimal.c, once.c, queue.c.
 */
#ifndef IDEM_H
#define IDEM_H

#include <idem/base.h>
#include <idem/host.h>
#include <idem/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define IDEM_VERSION "0.1.0"

/* ---- Identity, fingerprint --------------------------------------------- */

/* Computes the identity of the record of (@scope, @key): SHA-256 of "idem1", the length
 * and bytes of the scope, the length and bytes of the key (lengths as 8 bytes, most
 * significant first). ("a", "bc") and ("ab", "c") are two identities.
 *
 * IDEM_EINVALID  The key is empty or longer than IDEM_KEY_MAX, or the scope is
 *                longer than IDEM_SCOPE_MAX.
 * IDEM_ENOMEM
 */
int idem_id(struct idem_slice scope, struct idem_slice key,
            uint8_t ret_id[IDEM_ID_LEN]);

/* Computes the fingerprint of a request: a version byte, then SHA-256 over the number
 * of @parts and each part with its length. Two lists of parts have the same fingerprint
 * only if they are equal. With a @secret (at most IDEM_SECRET_MAX bytes) it is an HMAC,
 * so that a reader of the store cannot guess small requests.
 *
 * IDEM_EINVALID  More than 65,535 parts, or a secret that is too long.
 * IDEM_ENOMEM
 */
int idem_fingerprint(const struct idem_slice *parts, size_t parts_len,
                     struct idem_slice secret,
                     uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN]);

/* ---- Stores ------------------------------------------------------------ */

struct idem_store;

enum idem_open_flag {
    IDEM_OPEN_THREAD = 1,    /* One thread, all signals blocked, does the work:
                                no caller runs another caller's operation. */
    IDEM_OPEN_READONLY = 2,  /* Fail if the store does not exist; allow only
                                idem_get() and idem_list(). */
    IDEM_OPEN_NO_CREATE = 4, /* Fail if the store does not exist. */
    IDEM_OPEN_BUDGETS = 8, /* Fail if records have no room for failures_max and
                              retry_after_ms. */
};

struct idem_op;

/* Called for each op that was answered or given up, on the thread that reaps it. It may
 * read @op, and must not call a function that submits or destroys an op, or one that
 * takes a store. @took_us is the time since the op was submitted. */
typedef void idem_observe_fn(void *ctx, const struct idem_op *op,
                             int64_t took_us);

struct idem_open_options {
    size_t size;        /* sizeof, set by IDEM_OPEN_OPTIONS_INIT. */
    unsigned flags;     /* enum idem_open_flag, or-ed. */
    int64_t timeout_ms; /* For each operation on the store; 10,000. */
    size_t queue_max;   /* Operations queued at most; 4,096. An end or a renewal
                           is taken beyond that. */
    size_t result_max;  /* Longer results become tombstones; 16 MiB. */
    struct idem_host host;
    idem_observe_fn *observe; /* NULL: none. */
    void *observe_ctx;
    size_t cache_max; /* Bytes of completed records in memory, for replays; of a
                         remote store if its URL has "cache=". 16 MiB. 0: none. */
};

#define IDEM_OPEN_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(struct idem_open_options), 0, 10000, 4096, (size_t)16 << 20,    \
            {NULL, NULL, NULL, NULL}, NULL, NULL, (size_t)16 << 20             \
    }

/* Opens the store that @url names, and creates a missing file:
 *
 *     sqlite:PATH     a file, made with mode 0600; its directory must exist
 *     sqlite:PATH?group=NAME
 *                     the same, but made with mode 0660 for that group (a name or
 *                     a number), of which the caller must be a member; programs
 *                     that open it later may name the group or not. A PATH has
 *                     no "?" in it.
 *     dynamodb://TABLE
 *                     a DynamoDB table, for many machines; idem/dynamodb.h lists
 *                     its options. The store reads AWS's environment variables
 *     postgres://HOST/DATABASE
 *                     tables in PostgreSQL, for many machines; idem/postgres.h
 *                     lists its options. libpq reads the environment
 *     sqlite:PATH?network=yes
 *                     allows a network file system, which idem_open() refuses
 *                     otherwise: make sure that no other host uses the file. "&"
 *                     joins options
 *     sqlite:PATH?create=no
 *                     the store must exist
 *     memory:         a store in this process; idem_close() deletes its records
 *
 * A local store is open, or created, when this returns. Opening a remote store
 * (postgres:, dynamodb:) sends no request: if the store is unreachable or refuses this
 * caller, the first verb returns the error.
 *
 * @options may be NULL: IDEM_OPEN_OPTIONS_INIT.
 *
 * IDEM_EINVALID      The kind of store is unknown, the part after "?" is
 *                    invalid, or options are out of range.
 * IDEM_ENOTFOUND     The store does not exist, and flags or URL forbid creating it.
 * IDEM_ECONFIG       The file is a database of another program or of a newer
 *                    idem, or is on a network file system; its directory or the group
 *                    does not exist; the file is not shared with the group; or it
 *                    is older than the store that was here before, and must be
 *                    marked: idem_sqlite_mark_restored() in idem/sqlite.h.
 * IDEM_EDENIED       This user may not open the file; or the file is not a regular file
 *                    or is writable by every user; or the caller is not in the group.
 * IDEM_ECORRUPT      The file is damaged, or not a database. It is unchanged.
 * IDEM_EFULL         The disk is too full to create it.
 * IDEM_EUNAVAILABLE  Another process held the store's lock for too long.
 * IDEM_ENOMEM
 */
int idem_open(const char *url, const struct idem_open_options *options,
              struct idem_store **ret_store, struct idem_error *ret_error);

struct idem_store_kind;

/* Lets idem_open() find @kind, such as idem_dynamodb_kind of <idem/dynamodb.h>, in a
 * program that is linked statically. @kind must stay valid. Without this function,
 * idem_open() looks for the kind in this program and its libraries, then loads
 * libidem-aws.so.0 or libidem-postgres.so.0 from the system's library path; a set-user-ID
 * or set-group-ID program loads nothing.
 *
 * IDEM_EINVALID  libidem does not know the scheme of @kind.
 * IDEM_ECONFIG   @kind was built for another version of libidem.
 */
int idem_kind_register(const struct idem_store_kind *kind,
                       struct idem_error *ret_error);

/* Waits for operations in flight, closes the store and frees it. Destroy its queues
 * first: a queue that remains still returns ops that were answered, and refuses new
 * ones. NULL is allowed. */
void idem_close(struct idem_store *store);

/* Returns the canonical URL of @store, the same for every process of this host: an
 * absolute path without symbolic links, and no options that only describe how to use
 * the store. idem_open() accepts it. Valid until idem_close(). NULL: no other process
 * can open this store (memory:). */
const char *idem_store_url(const struct idem_store *store);

/* Copies @url to @buf of @cap bytes, cut to fit and NUL-terminated, with "***" in place
 * of each secret: the password before an "@", and the value of an option whose name
 * contains "passw", "passphrase", "secret", "token" or "_key". For messages and logs;
 * the URL of idem_store_url() has no secrets. Returns @buf. */
char *idem_url_hide(const char *url, char *buf, size_t cap);

/* True if a network lies between this host and the records. Recording an outcome may
 * then fail although this host works: see <idem/journal.h>. */
bool idem_store_is_remote(const struct idem_store *store);

/* Changes the timeout of struct idem_open_options for later operations of @store: a
 * caller may be able to wait longer for a claim than for an end. Call it only while no
 * operation is in flight on any thread.
 *
 * IDEM_EINVALID  @timeout_ms is out of range.
 */
int idem_store_set_timeout(struct idem_store *store, int64_t timeout_ms,
                           struct idem_error *ret_error);

/* Returns the shortest lease, in ms, that the store accepts. An owner stops some time
 * before its lease ends; for a store of many hosts that time covers the difference
 * between two clocks. */
int64_t idem_store_lease_min_ms(const struct idem_store *store);

/* ---- The life of one operation ----------------------------------------- */

enum idem_request_flag {
    /* A waiter starts the work itself if the attempt that it waits for is released or
     * ends with idem_retry(), or if the lease of that attempt ends under IDEM_RERUN. An
     * op never waits: its caller sets this flag, waits, and submits the op again. */
    IDEM_WAIT_THEN_RUN = 1,
    /* The key is probably on record already, for example for a redelivered event. A
     * store that pays more for a refused claim than for a read then reads first. The
     * answer is the same. */
    IDEM_LIKELY_REPLAY = 2,
};

struct idem_request {
    size_t size;             /* sizeof, set by IDEM_REQUEST_INIT. */
    struct idem_slice scope; /* Tenant; part of the identity. */
    struct idem_slice key;   /* The idempotency key. Must be set. */
    enum idem_on_expired_lease on_expired_lease; /* Must be set. A takeover
                                                    needs IDEM_RERUN from both
                                                    the record and the
                                                    caller. */
    struct idem_slice owner;       /* The name of the caller, for people:
                                      "host/pid". */
    struct idem_slice traceparent; /* The caller's place in a trace (W3C Trace
                                      Context), kept with a new attempt for
                                      people. Text that is not of version 00 is
                                      ignored. */
    struct idem_slice fingerprint; /* From idem_fingerprint(). Empty here or on
                                      record: not compared. */
    struct idem_slice input;       /* Kept with the record for recovery; may be
                                      empty. At most IDEM_RESULT_MAX. */
    int64_t lease_ms;              /* 60,000. At least
                                      idem_store_lease_min_ms(); or
                                      IDEM_NEVER. */
    int64_t retention_ms;  /* 86,400,000. At least lease_ms if the lease ends;
                              or IDEM_NEVER. The record keeps the longest
                              retention that was requested in its life. */
    int64_t expect_ms;     /* Overdue after this long; 0: never. */
    uint32_t attempts_max; /* 5. After this many starts an ended lease makes the
                              record failed ("gave up"); attempts that
                              idem_retry() or idem_release() ended do not count.
                              0: no limit. */
    int64_t wait_ms;       /* 0. How long idem_begin() waits for another owner's
                              attempt, and for attempts that take it over. It
                              returns the outcome; IDEM_RELEASED if the owner
                              releases the attempt; IDEM_BUSY with lease_left_ms
                              0 if the lease ends under IDEM_RERUN or the owner
                              calls idem_retry(). */
    unsigned flags;        /* enum idem_request_flag, or-ed. */
    uint64_t join_fence;   /* 0. For waiters on a queue: the fence of the
                              attempt in progress. The answer is about that
                              attempt, and starts nothing. */
    uint64_t bodies_max;   /* 0: no limit. If result and input together are
                              longer, REPLAY and FAILED come without their
                              bytes; result_len and input_len still give the
                              lengths, and idem_get() reads the bytes. */
};

#define IDEM_REQUEST_INIT                                                      \
    {                                                                          \
        sizeof(struct idem_request), {NULL, 0}, {NULL, 0},                     \
            IDEM_ON_EXPIRED_UNSET, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, \
            60000, 86400000, 0, 5, 0, 0, 0, 0                                  \
    }

/* A verdict and the status that causes it have the same number. */
enum idem_verdict {
    IDEM_STARTED = IDEM_STATUS_IN_PROGRESS,
    IDEM_REPLAY = IDEM_STATUS_COMPLETED,
    IDEM_FAILED = IDEM_STATUS_FAILED, /* Also after attempts_max: "gave up". */
    IDEM_UNKNOWN = IDEM_STATUS_UNKNOWN,
    IDEM_RELEASED = IDEM_STATUS_RELEASED,
    IDEM_MISMATCH = 6, /* The record comes without its content. */
    IDEM_BUSY = 7,
};

/* "STARTED", "REPLAY" ...; NULL for any other number. */
const char *idem_verdict_name(enum idem_verdict verdict);

/* The answer of idem_begin(). Read-only; new members go at the end. */
struct idem_attempt {
    enum idem_verdict verdict;
    bool takeover;     /* STARTED: an earlier attempt stopped without an outcome
                          or ended with idem_retry(), or a person reopened the
                          record. The work may have been done, in part or
                          whole. */
    uint64_t fence;    /* Of this attempt; pass it to the services that the work
                          calls. */
    uint32_t attempts; /* How many times the work was started, including this
                          time. */
    int64_t lease_left_ms; /* BUSY: how long the owner's lease still runs. */
    const struct idem_record *record; /* As stored; never NULL. Each function
                                         that ends the attempt replaces it, and
                                         frees the old one, when it returns
                                         0. */
};

/* Claims the key of @request, or reports why it is not free. It returns STARTED only
 * when the claim would survive a power cut. If several callers race for a key, one of
 * them gets STARTED. If an error leaves open whether the store made the claim, this
 * asks again with the same nonce until the store's timeout_ms is over. The caller
 * destroys *@ret_attempt with idem_attempt_destroy().
 *
 * IDEM_EINVALID      A member of @request is missing or out of range (the error
 *                    names it and its range), or the handle crossed a fork().
 * IDEM_EUNAVAILABLE  The store, the clock or the random source did not answer, or
 *                    queue_max operations are queued. The store started nothing. Within
 *                    wait_ms this call keeps trying a busy store on this host, and a
 *                    remote store once it has seen another owner's attempt there.
 * IDEM_EUNKNOWN      The store may have made the claim. A second idem_begin() counts as
 *                    another caller and may find that claim: it then gets IDEM_BUSY
 *                    and, once the lease is over, the verdict of the policy. (To ask
 *                    again as the same caller, submit the same op of a queue again.)
 * IDEM_EFULL         No room. Nothing was started.
 * IDEM_ECORRUPT      The record fails its checksum or is of a newer version. The
 *                    library never replays it, overwrites it or treats it as absent.
 * IDEM_EDENIED       The store is read-only.
 * IDEM_ECONFIG       Another file has taken the place of the store since it was
 *                    opened: open it anew. Nothing was started.
 * IDEM_ENOMEM
 */
int idem_begin(struct idem_store *store, const struct idem_request *request,
               struct idem_attempt **ret_attempt, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* How a piece of work ended. idem_once() zeroes it before the work runs; the memory
 * that it points to must stay until idem_once() returns. */
struct idem_outcome {
    enum idem_status status;   /* COMPLETED, FAILED, RELEASED, RETRY or
                                  UNKNOWN. */
    struct idem_result result; /* COMPLETED and FAILED; RETRY: for people. */
    struct idem_slice text;    /* For people. */
    int64_t ended_boot_ms;     /* When the work ended, by boot_ms of the host's
                                  clock (below 0: before this boot); 0: when the
                                  store records it. Never before the attempt
                                  began. */
    uint32_t failures_max;     /* RETRY: the attempt that raises the record's
                                  failures to this number ends as FAILED, for a
                                  person; 0: no limit. */
    int64_t retry_after_ms;    /* RETRY: the next attempt starts no earlier than
                                  this after the end of the work. Until then
                                  idem_begin() answers IDEM_BUSY. */
};

/* The functions that end an attempt. Each succeeds only if the record still has the
 * nonce and the fence of the attempt, and its change is durable when it returns 0. Each
 * may be repeated: the same content again returns 0 again. @text is for people, may be
 * empty, and is cut after IDEM_TEXT_MAX bytes. After an error of kind RETRY, call the
 * same function with the same content again as long as the lease lasts. If you must
 * give up, do not call another ending function, above all not idem_release(): let the
 * lease end.
 *
 * IDEM_ELOST         Another attempt, or a person, owns the record now; or this
 *                    attempt ended before with other content; or the record is
 *                    gone. Nothing was changed.
 * IDEM_EINVALID      The attempt was not STARTED, or a content type or metadata
 *                    is too long.
 * IDEM_EUNAVAILABLE  The store did not answer; this call recorded nothing.
 * IDEM_EUNKNOWN      The store may have recorded the outcome.
 * IDEM_EFULL         No room; nothing was recorded.
 * IDEM_ECONFIG       Another file has taken the place of the store since it was
 *                    opened; nothing was recorded.
 * IDEM_ECORRUPT, IDEM_ENOMEM
 */

/* Records that the work is done: every later caller gets @result until the retention
 * ends. NULL: an empty result. A tombstone (result.not_kept) replaces a result that is
 * longer than the store keeps. */
int idem_complete(struct idem_attempt *attempt,
                  const struct idem_result *result,
                  struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Records that the work failed and must not be tried again before a person has looked.
 * The record never expires. @result may be NULL. */
int idem_fail(struct idem_attempt *attempt, struct idem_slice text,
              const struct idem_result *result, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Records that nothing happened, so that another caller may start at once. Never call
 * it when the effect may have happened. The attempt does not count towards
 * attempts_max. */
int idem_release(struct idem_attempt *attempt, struct idem_slice text,
                 struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Records that the work may have happened and must run again: the next caller starts it
 * at once, whatever the policies, and learns that it takes over. (idem_end() with this
 * status also takes a result, a budget of failures and a pause.) The attempt does not
 * count towards attempts_max. Under IDEM_RERUN the record expires after its retention
 * like one whose lease ended; under IDEM_HOLD it does not. */
int idem_retry(struct idem_attempt *attempt, struct idem_slice text,
               struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Records that the work may have happened. The record never expires, and only a person
 * can turn it into "did not happen". */
int idem_unknown(struct idem_attempt *attempt, struct idem_slice text,
                 struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Ends the attempt like the function of these five that @outcome->status names;
 * @outcome->text is its @text. */
int idem_end(struct idem_attempt *attempt, const struct idem_outcome *outcome,
             struct idem_error *ret_error) __attribute__((warn_unused_result));

/* Ends @attempt as idem_end() does and claims the next key as idem_begin() does, in one
 * submission: a caller that works on one key after another pays one flush (SQLite) or
 * one round trip (DynamoDB) for each, not two. Nothing starts before the end of
 * @attempt is on record. When this returns 0, the end is on record, and *@ret_next is
 * the answer to @request, whatever its verdict; the caller destroys both attempts. If
 * the end fails, this releases the claim before it returns; if the store does not
 * answer, it sends the release without waiting for the answer, and the claim may last
 * until its lease ends. A wait (wait_ms) begins after the end. If both have the same
 * key, the claim follows the end.
 *
 * The errors are those of idem_end() and idem_begin(). After an error,
 * idem_record_status(attempt->record) shows how far the call got. If it is the status
 * of @outcome, the end is on record: call idem_begin() alone. Otherwise nothing was
 * started, and the caller must still end @attempt, by this function or idem_end() with
 * the same @outcome (or by idem_journal_put()). If an argument is not valid, this does
 * nothing; only a lease that is too short for the store is refused after the end.
 */
int idem_next(struct idem_attempt *attempt, const struct idem_outcome *outcome,
              const struct idem_request *request,
              struct idem_attempt **ret_next, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Extends the lease to @lease_ms from now (0: the length of the request); never
 * shortens it. Nothing renews automatically: call this every third of the lease while
 * the work goes on. It is the one verb that another thread may call while the owner
 * uses the attempt, because it does not change attempt->record. */
int idem_renew(struct idem_attempt *attempt, int64_t lease_ms,
               struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Records that the work of this attempt stopped without an outcome and will not go on,
 * because its supervisor saw it die. Its lease is over for every caller, and the
 * record's policy decides: IDEM_RERUN lets the next caller take over at once, IDEM_HOLD
 * makes the record unknown. Unlike idem_release() it does not claim that nothing
 * happened. */
int idem_expire(struct idem_attempt *attempt, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Returns how long the work may go on, in ms. The process counts the lease from before
 * it sent the request, on a clock that nobody can set and that includes suspended time,
 * less the store's margin (SQLite: 500 ms). At 0, start no further effect. Also 0 after
 * the end of the attempt, after IDEM_ELOST, and for an attempt made from a token until
 * it is renewed. IDEM_NEVER: the lease has no end. Renewals through a queue do not
 * count. */
int64_t idem_attempt_lease_left_ms(const struct idem_attempt *attempt);

/* Writes the token of a STARTED attempt: its credential as printable text, for another
 * process. Its holder can end or renew the attempt, so keep it out of command lines and
 * logs. It stays valid as long as the attempt, renewed or not. @buf receives it with a
 * NUL.
 *
 * IDEM_EINVALID  The attempt was not STARTED.
 */
int idem_attempt_token(const struct idem_attempt *attempt,
                       char buf[IDEM_TOKEN_MAX]);

/* Makes an attempt from its token, to end or renew it; @token is copied, and the caller
 * destroys *@ret_attempt. This does not contact the store: the verdict is IDEM_STARTED,
 * and record holds only scope, key, id and fence (its status is 0) until a verb ends
 * the attempt.
 *
 * IDEM_EINVALID  The text is not a token (@ret_error says why).
 * IDEM_ENOMEM
 */
int idem_attempt_from_token(struct idem_store *store, const char *token,
                            struct idem_attempt **ret_attempt,
                            struct idem_error *ret_error);

/* Frees @attempt and its record, also after idem_close(). It does not contact the
 * store: an attempt that was not ended stays in progress until its lease ends. NULL is
 * allowed. */
void idem_attempt_destroy(struct idem_attempt *attempt);

/* The work that idem_once() runs. It fills in @ret_outcome, where a status of 0 counts
 * as IDEM_STATUS_UNKNOWN. It may call idem_renew() and read @attempt, and must not end
 * or destroy it. */
typedef void idem_work_fn(void *ctx, struct idem_attempt *attempt,
                          struct idem_outcome *ret_outcome);

/* Runs the whole pattern: begins; if STARTED, runs @work and records its outcome.
 * *@ret_attempt has the verdict of the begin and, if the work ran, the record with its
 * outcome: after 0 and IDEM_STARTED, the work ran, and attempt->record->status is how
 * it ended. The result of completed work is in attempt->record->result, for the first
 * caller and for a replay alike.
 *
 * Returns the errors of idem_begin() if the work did not run, and after the work the
 * errors of the functions that end an attempt. In the second case *@ret_attempt is set
 * too, with the verdict IDEM_STARTED, so that the caller can end it again. (Set it to
 * NULL before the call to tell the two cases apart.)
 */
int idem_once(struct idem_store *store, const struct idem_request *request,
              idem_work_fn *work, void *ctx, struct idem_attempt **ret_attempt,
              struct idem_error *ret_error) __attribute__((warn_unused_result));

/* ---- Reading a record -------------------------------------------------- */

/* The answer of idem_get(): a record with its bytes. */
struct idem_answer;

/* Reads one record, with its result and input. It shows every change that the store
 * acknowledged before the call. The caller destroys *@ret_answer; the record of
 * idem_answer_record() is valid until then.
 *
 * IDEM_ENOTFOUND  The record does not exist, or is past its retention.
 * IDEM_EINVALID, IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_get(struct idem_store *store, struct idem_slice scope,
             struct idem_slice key, struct idem_answer **ret_answer,
             struct idem_error *ret_error);
const struct idem_record *idem_answer_record(const struct idem_answer *answer);
void idem_answer_destroy(struct idem_answer *answer);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
