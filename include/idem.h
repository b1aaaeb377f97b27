/* idem.h: one recorded outcome for each idempotency key.
 *
 * Anything may be delivered twice: a job starts on two hosts, a client retries
 * after a time-out, a queue redelivers. idem keeps one durable record for each
 * key, so that an operation that is retried, redelivered or raced has one
 * recorded outcome, and everybody who asks gets that outcome.
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
 *     +-- IDEM_STARTED     the key is yours: do the work, then say how it ended
 *     |     |              with exactly one of
 *     |     +-- idem_complete()  it is done, and this is the result
 *     |     +-- idem_fail()      it failed for good: a person must look
 *     |     +-- idem_release()   nothing happened: another may try
 *     |     +-- idem_retry()     it may have happened: run it again
 *     |     +-- idem_unknown()   it may have happened: a person must look
 *     |         (idem_renew() while the work takes longer than the lease)
 *     +-- IDEM_REPLAY      it was done before: attempt->record->result
 *     +-- IDEM_BUSY        another owner is at work: attempt->lease_left_ms
 *     +-- IDEM_MISMATCH    the key was used for another request
 *     +-- IDEM_FAILED      on record as failed: attempt->record->error
 *     +-- IDEM_UNKNOWN     it may have happened: a person must idem_resolve()
 *     +-- IDEM_RELEASED    (waiters only) it was given up: begin again
 *     |
 *     idem_attempt_destroy(attempt)
 *     idem_close(store)
 *
 * idem_once() is the whole pattern in one call. Queues (<idem/queue.h>) are the same
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
 * "retry" is shown and not stored: such a record is in progress without a lease,
 * and idem_record.retry is set. The next begin starts at once, whatever the
 * policies, and as a takeover: the work may have been done, in part or whole.
 *
 * An owner may end its attempt, also after the lease is over, until another
 * attempt has started or a person has resolved the record. One that became unknown
 * because its lease ended it may still complete, fail or retry, but no longer
 * release.
 *
 * Its promises and their limits: README.md, "What it promises". The one thing
 * to keep in mind: when a process dies between the effect and idem_complete(),
 * no library can know whether the effect happened. IDEM_HOLD then answers
 * IDEM_UNKNOWN and waits for a person; IDEM_RERUN runs the work again and tells
 * it so (attempt->takeover).
 *
 * Conventions
 * -----------
 *
 * - Functions return 0 or a negative enum idem_code. Outputs come last, are
 *   named ret_*, and are untouched on failure. Nothing needs to be freed then.
 * - Where a function takes a struct idem_error *, it may be NULL; on failure it
 *   receives the code and one sentence that says what failed and why.
 * - Every input is copied before the call returns. No slice needs a NUL at its
 *   end, and none that comes back has one: print it with "%.*s".
 * - Times are int64_t milliseconds: points since 1970-01-01 UTC in the store's
 *   time, durations otherwise.
 * - A store may be used from many threads at once; an attempt, an op and a
 *   queue by one thread at a time (a queue may be submitted to from many).
 * - Nothing here survives fork(): a child opens the store anew. A handle that
 *   was carried across answers IDEM_EINVALID and touches nothing.
 * - The library never prints or exits, nor reads the environment (a DynamoDB
 *   store does: AWS's own variables). It starts no
 *   thread unless told to (IDEM_OPEN_THREAD). Nothing renews a lease by itself
 *   (<idem/renewer.h> does when asked to), and nothing is purged by itself.
 * - It leaves signals alone. Under a limit on the size of files SIGXFSZ ends a
 *   program that does not ignore it: signal(SIGXFSZ, SIG_IGN), and the limit is a
 *   full disk.
 * - Link with the flags of `pkg-config --libs idem`; statically: -lidem -lsqlite3
 *   -lcrypto -ldl -lpthread. Whole programs: examples/minimal.c, once.c,
 *   queue.c.
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

/* The physical identity of (@scope, @key): SHA-256 of "idem1", the length and
 * bytes of the scope, the length and bytes of the key (lengths as 8 bytes, most
 * significant first). ("a", "bc") and ("ab", "c") are two identities.
 *
 * IDEM_EINVALID  The key is empty or longer than IDEM_KEY_MAX, or the scope is
 *                longer than IDEM_SCOPE_MAX.
 * IDEM_ENOMEM    The hash could not be made.
 */
int idem_id(struct idem_slice scope, struct idem_slice key,
            uint8_t ret_id[IDEM_ID_LEN]);

/* The fingerprint of a request: a version byte, then SHA-256 over the number of
 * @parts and each part with its length. Two lists of parts have one fingerprint
 * only if they are the same list. With a @secret (at most IDEM_SECRET_MAX bytes)
 * it is an HMAC, so that a reader of the store cannot guess small requests.
 *
 * IDEM_EINVALID  More than 65,535 parts, or a secret that is too long.
 * IDEM_ENOMEM    The hash could not be made.
 */
int idem_fingerprint(const struct idem_slice *parts, size_t parts_len,
                     struct idem_slice secret,
                     uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN]);

/* ---- Stores ------------------------------------------------------------ */

struct idem_store;

enum idem_open_flag {
    IDEM_OPEN_THREAD = 1,    /* One thread, all signals blocked, does the work:
                                no caller runs another caller's operation. */
    IDEM_OPEN_READONLY = 2,  /* Fail where the store does not exist; allow only
                                idem_get() and idem_list(). */
    IDEM_OPEN_NO_CREATE = 4, /* Fail where the store does not exist. */
    IDEM_OPEN_BUDGETS =
        8, /* Ends will have failures_max or retry_after_ms: fail
                                where records have no room for them. */
};

struct idem_op;

/* Told of an op that was answered, or that was given up: on the thread that reaps
 * it, from which nothing may be called that takes an op or a store. @took_us is
 * how long that took since it was submitted. */
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
    idem_observe_fn *observe; /* NULL: nobody is told. */
    void *observe_ctx;
    size_t cache_max; /* Bytes of completed records that a SQLite store keeps in
                         memory for replays; 16 MiB. 0: none. */
};

#define IDEM_OPEN_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(struct idem_open_options), 0, 10000, 4096, (size_t)16 << 20,    \
            {NULL, NULL, NULL, NULL}, NULL, NULL, (size_t)16 << 20             \
    }

/* Opens the store that @url names and creates it if it is not there:
 *
 *     sqlite:PATH     a file, made with mode 0600; its directory must exist
 *     sqlite:PATH?group=NAME
 *                     the same, but made with mode 0660 for that group (a name or
 *                     a number), of which the caller must be a member; programs
 *                     that open it later may name the group or not. A PATH has
 *                     no "?" in it.
 *     dynamodb://TABLE
 *                     a DynamoDB table, for many machines; idem/dynamodb.h says
 *                     what may follow it. It reads AWS's own variables of
 *                     the environment
 *     postgres://HOST/DATABASE
 *                     tables in PostgreSQL, for many machines; idem/postgres.h says
 *                     what may follow it. libpq reads the environment, too
 *     sqlite:PATH?network=yes
 *                     on a network file system too, which is refused without:
 *                     it must be known that no other host uses the file. Options
 *                     are joined by "&".
 *     sqlite:PATH?create=no
 *                     the store has to be there already
 *     memory:         in this process, gone when it is closed
 *
 * A local store is opened, or made, before this returns. A remote one
 * (postgresql:, dynamodb:) is not asked for anything: one that cannot be reached,
 * or refuses, answers so to the first verb.
 *
 * @options may be NULL: IDEM_OPEN_OPTIONS_INIT.
 *
 * IDEM_EINVALID      The kind of store is unknown, the part after "?" is
 *                    invalid, or options are out of range.
 * IDEM_ENOTFOUND     It does not exist and may not be created (the flags).
 * IDEM_ECONFIG       The file is a database of another program or of a newer
 *                    idem, lies on a network file system or in no directory;
 *                    or the group does not exist, or the file is not shared
 *                    with it; or it is older than what was here before, and has
 *                    to be marked: idem_sqlite_mark_restored() in
 *                    idem/sqlite.h.
 * IDEM_EDENIED       The file may not be opened, is not a regular file, or may
 *                    be written by anyone; or the caller is not in the group.
 * IDEM_ECORRUPT      The file is damaged, or no database. It is left as it is.
 * IDEM_EFULL         The disk is too full to create it.
 * IDEM_EUNAVAILABLE  Another process held the store's lock for too long.
 * IDEM_ENOMEM
 */
int idem_open(const char *url, const struct idem_open_options *options,
              struct idem_store **ret_store, struct idem_error *ret_error);

struct idem_store_kind;

/* Lets idem_open() find @kind, such as idem_dynamodb_kind of <idem/dynamodb.h>, in a
 * program that is linked statically. It must stay valid. To register the same kind again
 * changes nothing. Without this idem_open() looks for the symbol idem_SCHEME_kind in this
 * program and in what it is linked with, then loads libidem-SCHEME.so.0 from the
 * system's library path; a set-user-ID or set-group-ID program loads nothing.
 *
 * IDEM_EINVALID  Its scheme is not one, or has another kind.
 * IDEM_ECONFIG   @kind was built for another version of libidem.
 * IDEM_EFULL     16 kinds are registered.
 */
int idem_kind_register(const struct idem_store_kind *kind,
                       struct idem_error *ret_error);

/* Waits for operations in flight and closes. Destroy the queues of the store before:
 * one that is left keeps its answers, and refuses what is submitted. NULL is
 * allowed. */
void idem_close(struct idem_store *store);

/* The URL of @store as all who use it on this host get to see it, however they
 * wrote it: an absolute path without symbolic links, and nothing that only says
 * how to use it. idem_open() takes it. Valid until idem_close(). NULL: nobody
 * else can open this store (memory:). */
const char *idem_store_url(const struct idem_store *store);

/* Copies @url to @buf of @cap bytes, cut to fit and NUL-terminated, with "***" in the
 * place of each secret in it: of the password that precedes an "@", and of the value of
 * an option whose name has "passw", "passphrase", "secret", "token" or "_key" in it. For
 * whatever a person or a log is shown; idem_store_url() has none. Returns @buf. */
char *idem_url_hide(const char *url, char *buf, size_t cap);

/* True if a network lies between this host and the records. An outcome may then
 * fail to be recorded although all is well here: see <idem/journal.h>. */
bool idem_store_is_remote(const struct idem_store *store);

/* From now on @timeout_ms, as in struct idem_open_options, is for each operation
 * of @store: a caller that can wait for a claim may have less time for an end. Not while
 * operations are in flight, on any thread.
 *
 * IDEM_EINVALID  It is out of range.
 */
int idem_store_set_timeout(struct idem_store *store, int64_t timeout_ms,
                           struct idem_error *ret_error);

/* The shortest lease, in ms, that carries work: owners stop theirs a while before
 * it ends, by as much as the clocks of two hosts may differ where there are many
 * hosts. A claim with a shorter one is refused. */
int64_t idem_store_lease_min_ms(const struct idem_store *store);

/* ---- The life of one operation ----------------------------------------- */

enum idem_request_flag {
    /* A waiter that sees the attempt it waits for released, or end with
     * idem_retry(), or its lease end under IDEM_RERUN, starts the work itself. In
     * an op: its caller waits, and looks once more. */
    IDEM_WAIT_THEN_RUN = 1,
    /* The key is probably on record already: a redelivered event, a client that
     * says so. A store to which a refused claim costs more than a look then looks
     * first. The answer is the same. */
    IDEM_LIKELY_REPLAY = 2,
};

struct idem_request {
    size_t size;             /* sizeof, set by IDEM_REQUEST_INIT. */
    struct idem_slice scope; /* Tenant; part of the identity. */
    struct idem_slice key;   /* The idempotency key. Must be set. */
    enum idem_on_expired_lease on_expired_lease; /* Must be set. A takeover
                                needs the record's and the caller's to be
                                IDEM_RERUN. */
    struct idem_slice owner;       /* The name of the caller, for people:
                                      "host/pid". */
    struct idem_slice traceparent; /* The caller's place in a trace, as W3C
                                      Trace Context writes it: the record of a
                                      new attempt has it, for people. Text that
                                      is not of version 00 is left out. */
    struct idem_slice fingerprint; /* From idem_fingerprint(). Empty here or on
                                      record: not compared. */
    struct idem_slice input;       /* Kept with the record for recovery; may be
                                empty. At most IDEM_RESULT_MAX. */
    int64_t lease_ms;              /* 60,000. From idem_store_lease_min_ms();
                              IDEM_NEVER. */
    int64_t retention_ms;  /* 86,400,000. Not less than a lease that ends;
                              IDEM_NEVER. The record keeps the longest of its
                              life. */
    int64_t expect_ms;     /* Overdue after this long; 0: not said. */
    uint32_t attempts_max; /* 5. Takeovers end with "gave up" once the work
                                was started this often, without the attempts
                                that idem_retry() or idem_release() ended;
                                0: no cap. */
    int64_t wait_ms;       /* 0. How long idem_begin() waits where it would
                                answer IDEM_BUSY: it answers with the end of
                                that attempt, whoever takes it over; with
                                IDEM_RELEASED when it was given up; with
                                IDEM_BUSY and lease_left_ms 0 when its lease
                                is over under IDEM_RERUN, or it ended with
                                idem_retry(). */
    unsigned flags;        /* enum idem_request_flag, or-ed. */
    uint64_t join_fence;   /* 0. For waiters on a queue: the fence that was
                                seen. The answer is about that attempt and
                                nothing is ever started. */
    uint64_t bodies_max;   /* 0: no limit. REPLAY and FAILED come without the
                                bytes of result and input where these are
                                longer together; result_len and input_len say
                                how long, and idem_get() has them. */
};

#define IDEM_REQUEST_INIT                                                      \
    {                                                                          \
        sizeof(struct idem_request), {NULL, 0}, {NULL, 0},                     \
            IDEM_ON_EXPIRED_UNSET, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, \
            60000, 86400000, 0, 5, 0, 0, 0, 0                                  \
    }

/* Where a verdict and a status share a word they share its number. */
enum idem_verdict {
    IDEM_STARTED = IDEM_STATUS_IN_PROGRESS,
    IDEM_REPLAY = IDEM_STATUS_COMPLETED,
    IDEM_FAILED = IDEM_STATUS_FAILED, /* Also after attempts_max: "gave up". */
    IDEM_UNKNOWN = IDEM_STATUS_UNKNOWN,
    IDEM_RELEASED = IDEM_STATUS_RELEASED,
    IDEM_MISMATCH = 6, /* The record is shown without its content. */
    IDEM_BUSY = 7,
};

/* "STARTED", "REPLAY" ...; NULL if there is none. */
const char *idem_verdict_name(enum idem_verdict verdict);

/* The answer of idem_begin(). Read-only; new members go at the end. */
struct idem_attempt {
    enum idem_verdict verdict;
    bool takeover;     /* STARTED after an attempt that stopped without an end,
                          that ended with idem_retry(), or whose record was
                          reopened: the work may have been done, in part or
                          whole. */
    uint64_t fence;    /* Of this attempt; hand it to what the work calls. */
    uint32_t attempts; /* How many times the work was started, with this. */
    int64_t lease_left_ms; /* BUSY: how long the owner's lease still runs. */
    const struct idem_record *record; /* As stored; never NULL. Each ending verb
                          that answers 0 replaces it and frees the old one. */
};

/* Claims @request's key, or says why it cannot be claimed.
 *
 * Durable when it answers: no STARTED is given before the claim would survive a
 * power cut. Atomic: of callers that race for a key one gets STARTED. A store
 * error that leaves it unknown whether the claim was made is settled by asking
 * again as the same claimant, until the store's timeout_ms is over.
 *
 * The caller destroys *@ret_attempt with idem_attempt_destroy().
 *
 * IDEM_EINVALID      A member of @request is missing or out of range (the error
 *                    names it and its range), or the handle crossed a fork().
 * IDEM_EUNAVAILABLE  The store, the clock or the random source did not answer,
 *                    or queue_max operations are queued. Nothing was started. With
 *                    wait_ms that is waited for until the wait is over: on this
 *                    host, and once another's attempt was seen, anywhere.
 * IDEM_EUNKNOWN      The claim may have been made. A second idem_begin() is
 *                    another claimant and may find it: IDEM_BUSY, and after the
 *                    lease what the policy says. (To ask again as the same
 *                    claimant, submit the same op of a queue again.)
 * IDEM_EFULL         No room. Nothing was started.
 * IDEM_ECORRUPT      The record fails its checksum or is of a newer version. It
 *                    is never replayed, overwritten or taken for absent.
 * IDEM_EDENIED       The store is read-only.
 * IDEM_ECONFIG       Another file has taken the place of the store since it was
 *                    opened: open it anew. Nothing was started.
 * IDEM_ENOMEM
 */
int idem_begin(struct idem_store *store, const struct idem_request *request,
               struct idem_attempt **ret_attempt, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* How a piece of work ended. Zeroed by idem_once() before the work runs; what it
 * points to must stay until idem_once() returns. */
struct idem_outcome {
    enum idem_status status;   /* COMPLETED, FAILED, RELEASED, RETRY or
                                  UNKNOWN. */
    struct idem_result result; /* COMPLETED and FAILED; RETRY: for people. */
    struct idem_slice text;    /* For people. */
    int64_t ended_boot_ms;     /* When the work ended, by boot_ms of the host's
                                  clock (below 0: before this boot); 0: when
                                  the store records it. It it is never
                                  before the attempt began. */
    uint32_t failures_max;     /* RETRY: the attempt that makes the record's
                                  failures this many ends as FAILED, for a
                                  person; 0: none does. */
    int64_t retry_after_ms;    /* RETRY: the next attempt starts no earlier than
                                  this after the end of the work. Until then
                                  idem_begin() answers IDEM_BUSY. */
};

/* The verbs that end an attempt. Each is conditional on the attempt's nonce and
 * fence, durable when it answers 0, and idempotent: the same content again
 * answers 0 again. @text is for people, may be empty, and is cut after
 * IDEM_TEXT_MAX bytes. After an error of kind RETRY call the same verb with the
 * same content again, for as long as the lease is left. A caller that must give
 * up calls no other verb (above all not idem_release()): the lease decides
 * then.
 *
 * IDEM_ELOST         Another attempt, or a person, owns the record now, or it
 *                    was ended before with other content, or it is gone. It is
 *                    unchanged.
 * IDEM_EINVALID      The attempt was not STARTED, or a content type or metadata
 *                    is too long.
 * IDEM_EUNAVAILABLE  The store did not answer; this call recorded nothing.
 * IDEM_EUNKNOWN      It may have been recorded.
 * IDEM_EFULL         No room; nothing was recorded.
 * IDEM_ECONFIG       Another file has taken the place of the store since it was
 *                    opened; nothing was recorded.
 * IDEM_ECORRUPT, IDEM_ENOMEM
 */

/* It is done: @result is replayed to everybody who asks, until the retention
 * ends. NULL: an empty result. One longer than the store keeps is replaced by a
 * tombstone (result.not_kept), never refused. */
int idem_complete(struct idem_attempt *attempt,
                  const struct idem_result *result,
                  struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* It failed and must not be retried before a person has looked. Never expires.
 * @result may be NULL. */
int idem_fail(struct idem_attempt *attempt, struct idem_slice text,
              const struct idem_result *result, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Nothing happened; another may try at once. Never call it when the effect may
 * have happened. The attempt does not count towards attempts_max. */
int idem_release(struct idem_attempt *attempt, struct idem_slice text,
                 struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* It may have happened, and is to be run again: the next caller starts at once,
 * whatever the policies, and learns that it takes over. (idem_end() takes a
 * result, a budget of failures and a pause with it.) The attempt does not
 * count towards attempts_max. Under IDEM_RERUN the record expires after its
 * retention like one whose lease ended; under IDEM_HOLD it does not. */
int idem_retry(struct idem_attempt *attempt, struct idem_slice text,
               struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* It may have happened. Never expires; never becomes "did not happen". */
int idem_unknown(struct idem_attempt *attempt, struct idem_slice text,
                 struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* One of these five, as @outcome's status says; its text is @text. */
int idem_end(struct idem_attempt *attempt, const struct idem_outcome *outcome,
             struct idem_error *ret_error) __attribute__((warn_unused_result));

/* Ends @attempt as idem_end() does and claims the next key as idem_begin() does, in
 * one submission: a caller that works on one key after the other pays one flush (SQLite)
 * or one round trip (DynamoDB) for each, not two.
 *
 * Nothing starts before the end of @attempt is on record: 0 says that it is, and
 * *@ret_next is the answer to @request, whatever its verdict; the caller destroys it
 * as well as @attempt. Where the end fails, a claim that was made is released before
 * this returns (nothing happened), or, while the store does not answer, as far as
 * that can be done without waiting; the lease decides else. A wait (wait_ms) begins
 * after the end. Where both have one key, the claim follows the end.
 *
 * The errors are those of idem_end() and idem_begin(). After each of them
 * idem_record_status(attempt->record) says which: with the status of @outcome the
 * end is on record, and idem_begin() is to be called alone. Else @attempt is the
 * caller's to end still, by this function or idem_end() with the same @outcome (or
 * by idem_journal_put()), and nothing was started. Where an argument is not valid,
 * neither was done; but a lease that is too short is known only after the end.
 */
int idem_next(struct idem_attempt *attempt, const struct idem_outcome *outcome,
              const struct idem_request *request,
              struct idem_attempt **ret_next, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* The lease now ends @lease_ms from now (0: the length of the request). It is
 * only ever extended. Nothing renews by itself: call it every third of the lease
 * while the work goes on. It is the one verb that another thread may call while
 * the owner uses the attempt; attempt->record does not change. */
int idem_renew(struct idem_attempt *attempt, int64_t lease_ms,
               struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Records that the work of this attempt has stopped without an end and will not go
 * on: its supervisor saw it die. Its lease is over now, everywhere, and
 * the record's policy decides: IDEM_RERUN lets the next caller take over at once,
 * IDEM_HOLD makes it unknown. Unlike idem_release() it does not claim that nothing
 * happened. */
int idem_expire(struct idem_attempt *attempt, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* How long the work may go on: the lease as this process counts it, from before
 * it asked, on a clock that no one sets and that counts suspended time, less
 * the store's margin (SQLite: 500 ms). 0: start no further effect; so after the
 * end of the attempt, after IDEM_ELOST, and with a token until it was renewed.
 * IDEM_NEVER: no end. Renewals through a queue are not counted. */
int64_t idem_attempt_lease_left_ms(const struct idem_attempt *attempt);

/* The token of a STARTED attempt: its credential as printable text, for another
 * process. Its holder can end or renew the attempt, so keep it out of command
 * lines and logs. It is good for as long as the attempt, renewed or not. @buf
 * receives it with a NUL.
 *
 * IDEM_EINVALID  The attempt was not STARTED.
 */
int idem_attempt_token(const struct idem_attempt *attempt,
                       char buf[IDEM_TOKEN_MAX]);

/* An attempt from the token of one, to end or renew it. No store is asked:
 * verdict is IDEM_STARTED, and record holds only scope, key, id and fence (its
 * status is 0) until a verb ended it.
 *
 * IDEM_EINVALID  The text is not a token (@ret_error says why).
 * IDEM_ENOMEM
 */
int idem_attempt_from_token(struct idem_store *store, const char *token,
                            struct idem_attempt **ret_attempt,
                            struct idem_error *ret_error);

/* Frees. An attempt that was not ended stays as it is: its lease decides. Also
 * after idem_close(). NULL is allowed. */
void idem_attempt_destroy(struct idem_attempt *attempt);

/* Work for idem_once(). Fills @ret_outcome; leaving its status 0 counts as
 * IDEM_STATUS_UNKNOWN. May call idem_renew() and read @attempt; must not end it. */
typedef void idem_work_fn(void *ctx, struct idem_attempt *attempt,
                          struct idem_outcome *ret_outcome);

/* The whole pattern: begin; if STARTED, run @work and record what it says. The
 * attempt that comes back has the verdict of the begin and, after work that ran,
 * the record with its outcome: 0 and IDEM_STARTED mean that the work ran and that
 * attempt->record->status says how it ended. Completed work has
 * attempt->record->result, for the first caller and for a replay alike.
 *
 * Errors are those of idem_begin() (the work did not run) and, after it ran,
 * those of the ending verbs. In the second case *@ret_attempt is set too, so that
 * the caller can end it again; its verdict is IDEM_STARTED. (Set it to NULL before
 * the call, to tell the two apart.)
 */
int idem_once(struct idem_store *store, const struct idem_request *request,
              idem_work_fn *work, void *ctx, struct idem_attempt **ret_attempt,
              struct idem_error *ret_error) __attribute__((warn_unused_result));

/* ---- Records that are there already ---------------------------------------- */

/* A record that was read; the caller destroys it. */
struct idem_answer;

/* Reads one record, strongly. idem_answer_record() stays valid until
 * idem_answer_destroy().
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
