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
 * idem_once() is the whole pattern in one call. Queues (below) are the same
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
 *   thread unless told to (IDEM_OPEN_THREAD). Nothing renews a lease by itself,
 *   and nothing is purged by itself.
 * - It leaves signals alone. Under a limit on the size of files SIGXFSZ ends a
 *   program that does not ignore it: signal(SIGXFSZ, SIG_IGN), and the limit is a
 *   full disk.
 * - Link with the flags of `pkg-config --libs idem`; statically: -lidem -lsqlite3
 *   -lcrypto -ljson-c -ldl -lpthread. Whole programs: examples/minimal.c, once.c,
 *   queue.c.
 */
#ifndef IDEM_H
#define IDEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define IDEM_VERSION "0.1.0"

/* ---- Errors ------------------------------------------------------------ */

/* Code, value, kind, text. The value is part of the ABI. */
#define IDEM_ERROR_MAP(IDEM__X)                                                \
    IDEM__X(INVALID, -1, CALLER, "the request is not valid")                   \
    IDEM__X(UNAVAILABLE, -2, RETRY,                                            \
            "the store is away or busy; nothing was done")                     \
    IDEM__X(UNKNOWN, -3, RETRY,                                                \
            "it is not known whether the store made the change")               \
    IDEM__X(LOST, -4, LOST, "the attempt no longer owns the record")           \
    IDEM__X(FULL, -5, STORE, "the store has no room; nothing was done")        \
    IDEM__X(CORRUPT, -6, STORE, "the record cannot be trusted")                \
    IDEM__X(DENIED, -7, STORE, "the store may not be used by this user")       \
    IDEM__X(CONFIG, -8, STORE, "the store or its settings cannot be used")     \
    IDEM__X(NOMEM, -9, MEMORY, "out of memory")                                \
    IDEM__X(NOTFOUND, -10, CALLER, "the key has no record")

enum idem_code {
    IDEM_OK = 0,
#define IDEM__X(name, value, kind, text) IDEM_E##name = value,
    IDEM_ERROR_MAP(IDEM__X)
#undef IDEM__X
};

/* The action that a caller can take on an error. */
enum idem_kind {
    IDEM_KIND_NONE = 0,
    IDEM_KIND_RETRY,  /* Ask again later; the same op again is always safe. */
    IDEM_KIND_LOST,   /* Stop: this attempt no longer owns the key. */
    IDEM_KIND_CALLER, /* Mend the request. */
    IDEM_KIND_STORE,  /* Mend the store. */
    IDEM_KIND_MEMORY,
};

struct idem_error {
    int code;       /* 0 or an enum idem_code. */
    char text[252]; /* One sentence, NUL-terminated, for a person. */
};

/* "INVALID", "LOST" ...; "OK" for 0; never NULL. */
const char *idem_error_name(int code);

/* The general sentence for @code; never NULL. */
const char *idem_error_text(int code);

enum idem_kind idem_error_kind(int code);

/* ---- Slices ------------------------------------------------------------ */

struct idem_slice {
    const void *base; /* May be NULL when len is 0. */
    size_t len;
};

/* @base must stay as long as the slice is used. */
static inline struct idem_slice idem_bytes(const void *base, size_t len)
{
    struct idem_slice s;
    s.base = base;
    s.len = len;
    return s;
}

/* @text must stay as long as the slice is used; its NUL is not part of it. */
static inline struct idem_slice idem_str(const char *text)
{
    return idem_bytes(text, text == NULL ? 0 : strlen(text));
}

/* ---- Limits ------------------------------------------------------------ */

#define IDEM_KEY_MAX 255            /* Bytes of a key; the shortest is 1. */
#define IDEM_SCOPE_MAX 255          /* Bytes of a scope; it may be empty. */
#define IDEM_OWNER_MAX 255          /* Bytes of an owner. */
#define IDEM_TEXT_MAX 4096          /* Bytes of an error, note or reason. */
#define IDEM_META_MAX 32768         /* Bytes of a result's metadata. */
#define IDEM_RESULT_MAX (64L << 20) /* Bytes of a result or an input. */
#define IDEM_ID_LEN 32              /* Bytes of an identity. */
#define IDEM_FINGERPRINT_LEN 33     /* Bytes of a fingerprint. */
#define IDEM_SECRET_MAX 65536       /* Bytes of a fingerprint's secret. */
#define IDEM_HISTORY_MAX 8          /* Past attempts that a record keeps. */
#define IDEM_TOKEN_MAX 768          /* Bytes of a token, with its NUL. */
#define IDEM_LEASE_MIN_MS 2000      /* The shortest lease of any store. */
#define IDEM_DURATION_MAX_MS 3155760000000LL /* A hundred years. */
#define IDEM_NEVER INT64_MAX    /* A lease or retention without an end. */
#define IDEM_STORE_URL_MAX 1536 /* Bytes of idem_store_url(). */

/* ---- Records ----------------------------------------------------------- */

enum idem_status {
    IDEM_STATUS_IN_PROGRESS = 1,
    IDEM_STATUS_COMPLETED = 2,
    IDEM_STATUS_FAILED = 3,
    IDEM_STATUS_UNKNOWN = 4,
    IDEM_STATUS_RELEASED = 5,
    /* Of an outcome, a filter, and idem_record_status(). On record it is
     * IN_PROGRESS with retry set; 6 and 7 are verdicts. */
    IDEM_STATUS_RETRY = 8,
};

/* The policy for a record whose owner's lease ended without a word. */
enum idem_on_expired_lease {
    IDEM_ON_EXPIRED_UNSET = 0, /* idem_begin() answers IDEM_EINVALID. */
    IDEM_RERUN = 1,            /* The next caller runs the work again. */
    IDEM_HOLD = 2,             /* It becomes unknown: a person must look. */
};

/* The outcome of completed work, as it was given and as it is replayed. */
struct idem_result {
    struct idem_slice bytes;        /* At most IDEM_RESULT_MAX. */
    struct idem_slice content_type; /* At most 255 bytes; may be empty. */
    struct idem_slice meta;         /* At most IDEM_META_MAX; yours to shape.
                                       <idem/form.h> has what front ends write. */
    bool not_kept; /* A tombstone: done, but the bytes were not kept. */
};

/* How an attempt that is no longer the newest came to its end. */
enum idem_past_end {
    IDEM_PAST_RELEASED = 1,
    IDEM_PAST_TAKEN_OVER = 2, /* Its lease ended, another attempt followed. */
    IDEM_PAST_RESOLVED = 3,   /* A person decided; the owner is that person. */
    IDEM_PAST_RETRIED = 4,    /* Its owner asked for another run. */
    IDEM_PAST_REOPENED = 5,   /* A person asked for another run; likewise. */
};

struct idem_past {
    struct idem_slice owner;
    uint64_t fence;
    int64_t started_ms;
    int64_t ended_ms;
    enum idem_past_end end;
    enum idem_status was; /* REOPENED: the status until then. Else 0. */
};

/* A record. Read-only; the slices belong to whatever holds the record. */
struct idem_record {
    struct idem_slice scope;
    struct idem_slice key;
    uint8_t id[IDEM_ID_LEN]; /* idem_id() of scope and key. */
    enum idem_status status;
    enum idem_on_expired_lease on_expired_lease;
    struct idem_slice owner; /* For people. */
    uint64_t fence;          /* Grows with every attempt of the key. */
    uint32_t attempts;       /* How many times work started. */
    uint32_t retried;     /* How many of them do not count towards attempts_max:
                         idem_retry() ended them, another began after
                         idem_release(), or a person has decided since. */
    int64_t created_ms;   /* First claim. */
    int64_t started_ms;   /* This attempt. */
    int64_t lease_ms;     /* Length; IDEM_NEVER: it does not end. */
    int64_t lease_end_ms; /* IDEM_NEVER likewise. */
    int64_t expected_ms;  /* Overdue after this; 0: not said. */
    int64_t ended_ms;     /* End of work; 0: not ended. */
    int64_t expires_ms;   /* End of retention; IDEM_NEVER: no end. */
    int64_t retention_ms; /* The longest that was asked for in this life. */
    struct idem_slice fingerprint; /* Empty: not checked. */
    struct idem_result result;     /* In a list its bytes are left out ... */
    uint64_t result_len;           /* ... and this says how many there are. */
    struct idem_slice error;       /* Of failed work. */
    struct idem_slice note;        /* Of unknown, released, resolved, retry. */
    bool by_lease; /* Unknown, or failed ("gave up"), because the lease ended
                      without a word of the owner. */
    uint64_t
        in_doubt; /* Fence of an attempt of this life that may have done the
                          work and came to no outcome, while no person has
                          decided since; 0: none, or one in the history. */
    bool retry;   /* In progress, but its attempt is over: the next begin
                      starts as a takeover. */
    struct idem_slice input; /* Likewise, and after the ending verbs. */
    uint64_t input_len;
    struct idem_past history[IDEM_HISTORY_MAX]; /* Newest first. */
    size_t history_len;
    bool overdue; /* Of idem_list(): in progress, and late by the store's own
                     clock. Else false. */

    /* For stores: who may end this attempt, and proofs of the parts. */
    uint8_t nonce[16];
    uint8_t boot_id[16];
    int64_t lease_end_boot_ms;
    uint8_t result_digest[16];
    uint8_t input_digest[16];
    struct idem_slice unknown_fields; /* Of a later minor version; kept. */
};

/* "in_progress", "completed", "failed", "unknown", "released", "retry"; NULL if
 * none. */
const char *idem_status_name(enum idem_status status);

/* The status as people are shown it: that of @record, or IDEM_STATUS_RETRY. */
enum idem_status idem_record_status(const struct idem_record *record);

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

/* One reading of the host's clocks. */
struct idem_clock_reading {
    int64_t wall_ms;     /* CLOCK_REALTIME. */
    int64_t boot_ms;     /* CLOCK_BOOTTIME: counts suspended time too. */
    uint8_t boot_id[16]; /* Another value after every boot of the host. */
    bool unsynchronised; /* Nothing is known to keep the wall clock right. */
};

/* The functions that the library needs from its host. Each member may be NULL:
 * the system's own. clock and random answer 0, or anything else for "cannot
 * say" (the call that needed them then answers IDEM_EUNAVAILABLE and does
 * nothing). */
struct idem_host {
    void *ctx; /* Passed to each. */
    int (*clock)(void *ctx, struct idem_clock_reading *ret_reading);
    int (*random)(void *ctx, void *buf, size_t len);
    void (*sleep)(void *ctx, int64_t ms);
};

enum idem_open_flag {
    IDEM_OPEN_THREAD = 1,    /* One thread, all signals blocked, does the work:
                                no caller runs another caller's operation. */
    IDEM_OPEN_READONLY = 2,  /* Fail where the store does not exist; allow only
                                idem_get() and idem_list(). */
    IDEM_OPEN_NO_CREATE = 4, /* Fail where the store does not exist. */
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
    size_t queue_max;   /* Operations queued at most; 4,096. */
    size_t result_max;  /* Longer results become tombstones; 16 MiB. */
    struct idem_host host;
    idem_observe_fn *observe; /* NULL: nobody is told. */
    void *observe_ctx;
};

#define IDEM_OPEN_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(struct idem_open_options), 0, 10000, 4096, (size_t)16 << 20,    \
            {NULL, NULL, NULL, NULL}, NULL, NULL                               \
    }

/* Opens the store that @url names and creates it if it is not there:
 *
 *     sqlite:PATH     a file, made with mode 0600; its directory must exist
 *     sqlite:PATH?group=NAME
 *                     likewise, but made with mode 0660 for that group (a name or
 *                     a number), which the caller must be in; whoever opens it
 *                     later may say so or not. A PATH has no "?" in it.
 *     dynamodb://TABLE
 *                     a DynamoDB table, for many machines; idem/dynamodb.h says
 *                     what may follow it. The one store that reads the
 *                     environment: AWS's own variables
 *     sqlite:PATH?network=yes
 *                     on a network file system too, which is refused without:
 *                     it must be known that no other host uses the file. Options
 *                     are joined by "&".
 *     memory:         in this process, gone when it is closed
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

/* Waits for operations in flight and closes. Destroy the queues of the store before:
 * one that is left keeps its answers, and refuses what is submitted. NULL is
 * allowed. */
void idem_close(struct idem_store *store);

/* The URL of @store as all who use it on this host get to see it, however they
 * wrote it: an absolute path without symbolic links, and nothing that only says
 * how to use it. idem_open() takes it. Valid until idem_close(). NULL: nobody
 * else can open this store (memory:). */
const char *idem_store_url(const struct idem_store *store);

/* True if a network lies between this host and the records. An outcome may then
 * fail to be recorded although all is well here: see <idem/journal.h>. */
bool idem_store_is_remote(const struct idem_store *store);

/* From now on @timeout_ms, as in struct idem_open_options, is for each operation
 * of @store: whoever can wait for a claim may have less time for an end. Not while
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
            IDEM_ON_EXPIRED_UNSET, {NULL, 0}, {NULL, 0}, {NULL, 0}, 60000,     \
            86400000, 0, 5, 0, 0, 0, 0                                         \
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
    bool takeover;     /* STARTED after an attempt that stopped without a word,
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
 *                    or too many operations are queued. Nothing was started. With
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
    struct idem_result result; /* COMPLETED and FAILED. */
    struct idem_slice text;    /* For people. */
    int64_t ended_boot_ms;     /* When the work ended, by boot_ms of the host's
                                  clock (below 0: before this boot); 0: when
                                  the store is told. On record it is never
                                  before the attempt began. */
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
 * whatever the policies, and is told that it is a takeover. The attempt does not
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
 * one submission: whoever works on one key after the other pays one flush (SQLite)
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

/* Says that the work of this attempt has stopped without an end and will not go
 * on: whoever watched over it saw it die. Its lease is over now, everywhere, and
 * the record's policy decides: IDEM_RERUN lets the next caller take over at once,
 * IDEM_HOLD makes it unknown. Unlike idem_release() it does not say that nothing
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

/* ---- For the operator -------------------------------------------------- */

/* A record that was read; the caller destroys it. */
struct idem_answer;

/* Reads one record, strongly. idem_answer_record() stays valid until
 * idem_answer_destroy().
 *
 * IDEM_ENOTFOUND  There is none (a record past its retention counts as none).
 * IDEM_EINVALID, IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_get(struct idem_store *store, struct idem_slice scope,
             struct idem_slice key, struct idem_answer **ret_answer,
             struct idem_error *ret_error);
const struct idem_record *idem_answer_record(const struct idem_answer *answer);
void idem_answer_destroy(struct idem_answer *answer);

struct idem_filter {
    size_t size;       /* sizeof, set by IDEM_FILTER_INIT. */
    unsigned statuses; /* 1u << enum idem_status, or-ed; 0: all. A record to be
                          run again is IN_PROGRESS, and RETRY. */
    bool overdue;      /* In progress, and past expected_ms or past the end of
                          the lease; with retry set, past expected_ms. */
    bool any_scope;    /* true: scope below is not looked at. */
    struct idem_slice scope;
    uint64_t max; /* 0: all. */
    bool expired; /* true: what a purge would delete, and nothing else; such
                     records are left out otherwise. */
    bool failed_outcomes; /* true: beside @statuses (0: none), what is completed
                             and idem_outcome_failed(). A store with an index
                             reads nothing else for it. */
    bool newest_first; /* true: the record that came into the store last comes
                          first. Holds where the store has such an order (SQLite
                          and memory, not DynamoDB) and no index serves the
                          list: @statuses is 0 or has COMPLETED, without
                          @overdue. Elsewhere it changes nothing. */
};
#define IDEM_FILTER_INIT                                                       \
    {                                                                          \
        sizeof(struct idem_filter), 0, false, true, {NULL, 0}, 0, false,       \
            false, false                                                       \
    }

/* True if @record is completed, and its result tells of a failure: an exit status
 * other than 0 or a signal, as `idem run` records them, or an HTTP status of 500 or
 * above. Such an outcome is replayed like any other, and waits for nobody. */
bool idem_outcome_failed(const struct idem_record *record);

/* Called for each record, which is valid during the call only. Answer 0 to go
 * on, anything else to stop. With @code other than 0 the record could not be
 * read (IDEM_ECORRUPT); only its id, scope and key are set. */
typedef int idem_list_fn(void *ctx, int code, const struct idem_record *record);

/* Calls @each for the records that @filter lets through, without results and
 * inputs. Holds nothing locked between pages: a record that changes meanwhile
 * may be seen in either state, or twice. @each must not call the library.
 * *@ret_now_ms (may be NULL) is the store's time.
 *
 * IDEM_EINVALID, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_list(struct idem_store *store, const struct idem_filter *filter,
              idem_list_fn *each, void *ctx, int64_t *ret_now_ms,
              struct idem_error *ret_error);

/* With its zero byte. */
#define IDEM_PLACE_MAX 512

/* How far a list has come. Begin with IDEM_PAGE_INIT, and pass it on from page to
 * page; @place alone goes on with a list in another process. */
struct idem_page {
    size_t size;       /* sizeof, set by IDEM_PAGE_INIT. */
    uint64_t look_max; /* A page ends after about so many records that were
                          looked at, shown or not; 0: at the end of the list. */
    char place[IDEM_PLACE_MAX]; /* Where the list goes on: letters, digits, "-"
                                   and "_"; "" before the first page. */
    bool done;                  /* The end was reached. */
    uint64_t looked;            /* Records looked at, on all pages so far. */
    int64_t now_ms;             /* The store's time. */
};
#define IDEM_PAGE_INIT                                                         \
    {                                                                          \
        sizeof(struct idem_page), 0, {0}, false, 0, 0                          \
    }

/* The next page of a list: as idem_list(), from @page->place on, until
 * @filter->max records were shown, @each stops it, or page->look_max or the end is
 * reached. The place is that after the last record that was shown; it holds while
 * records come and go, also if that record goes. A record that is there from the
 * first page to the last, and keeps its status, is shown once.
 *
 * IDEM_EINVALID  Likewise; or @page->place is not that of a list with this filter.
 * IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_list_page(struct idem_store *store, const struct idem_filter *filter,
                   idem_list_fn *each, void *ctx, struct idem_page *page,
                   struct idem_error *ret_error);

enum idem_resolve_flag {
    /* Although the lease of an owner still runs: it may be at work, also after
     * another has started. */
    IDEM_RESOLVE_FORCE = 1,
};

/* Decides for a record that is failed, unknown, to be run again, or in progress
 * while its lease is over or has no end; by IDEM_RESOLVE_FORCE in @flags also while
 * the lease runs, which being overdue does not allow. @outcome's status may be
 * COMPLETED, FAILED or RELEASED, its text is the reason. @who is recorded.
 * The record must still have @fence. Durable when it answers 0; the same decision
 * by the same person again answers 0 again. The former owner can no longer change
 * the record.
 *
 * IDEM_ENOTFOUND  The record does not exist.
 * IDEM_ELOST      Its fence is another one now: look again.
 * IDEM_EINVALID   It is completed, released, or the lease of its owner runs.
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_resolve(struct idem_store *store, struct idem_slice scope,
                 struct idem_slice key, uint64_t fence, struct idem_slice who,
                 const struct idem_outcome *outcome, unsigned flags,
                 struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Lets the work of a record that is completed, failed or unknown be run again, or
 * of one in progress that idem_resolve() would take without a flag. Its result is
 * dropped and its fingerprint with it, as the mended request may be another one:
 * so idem_retry() lets the same request run again, and this one any request;
 * its history keeps who reopened it and what it was. It never expires. The next
 * begin starts as a takeover and gives the record its fingerprint. @who and @reason
 * are recorded; fence, durability and repetition are as with idem_resolve().
 *
 * IDEM_ENOTFOUND  The record does not exist.
 * IDEM_ELOST      Its fence is another one now: look again.
 * IDEM_EINVALID   It is released or reopened already, or the lease of its owner
 *                 runs.
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_reopen(struct idem_store *store, struct idem_slice scope,
                struct idem_slice key, uint64_t fence, struct idem_slice who,
                struct idem_slice reason, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Adds a record from another store (or a copy of this one) as it is: status,
 * owner's nonce, fence, times and all. Every member of @record must be set as
 * idem_get() and idem_record_decode() set it. A record that is already there, and
 * is not past its retention, stays: *@ret_added (may be NULL) is false then. One
 * that was released gives way to one with a higher fence.
 *
 * IDEM_EINVALID  @record is none that a store could hold, or its fence leaves no
 *                room for greater ones (2^61 or more).
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_import(struct idem_store *store, const struct idem_record *record,
                bool *ret_added, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* How often things happened since the store was made, in all processes that use
 * it, as their callers were answered. */
struct idem_counters {
    size_t size;        /* sizeof, set by IDEM_COUNTERS_INIT. */
    uint64_t started;   /* Claims that were STARTED. */
    uint64_t takeovers; /* Of these, with attempt->takeover. */
    uint64_t completed; /* Attempts that ended so ... */
    uint64_t failed;    /* ... with those that were given up ... */
    uint64_t unknown;   /* ... with those whose lease ended under IDEM_HOLD. */
    uint64_t released;
    uint64_t replayed;
    uint64_t busy; /* A caller that waits counts once. */
    uint64_t mismatch;
    uint64_t lost;     /* Verbs of owners that were answered IDEM_ELOST. */
    uint64_t resolved; /* Decisions by persons, with those to reopen; they
                          count nowhere else. */
    uint64_t purged;   /* Records. */
    uint64_t retried;  /* Attempts that idem_retry() ended. */
};
#define IDEM_COUNTERS_INIT                                                     \
    {                                                                          \
        sizeof(struct idem_counters), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0    \
    }

/* Reads the counters. Start *@ret_counters from IDEM_COUNTERS_INIT.
 *
 * They are kept in the store, but written less often than records, so that
 * counting costs nothing: another process sees those of a busy one a second late,
 * and those of one that only reads when it closes its store. A process that is
 * killed, or a power cut, takes what was not written with it. Nothing is decided
 * by them. Copies of a request that was applied before are not counted, nor is
 * what a read-only handle, or idem_sqlite_begin_in() and its kin, did.
 *
 * IDEM_EINVALID   Its size is not set.
 * IDEM_ENOTFOUND  The store keeps none: it is an application's database.
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_count(struct idem_store *store, struct idem_counters *ret_counters,
               struct idem_error *ret_error);

/* Deletes records past their retention, at most @max of them (0: all), in slices
 * that each hold the store's lock for less than 100 ms. Their space is used
 * again. A live lease, an unexpired result and what failed or is unknown are
 * never touched; fences keep growing over what was deleted.
 *
 * IDEM_EUNAVAILABLE, IDEM_EFULL, IDEM_EDENIED, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_purge(struct idem_store *store, uint64_t max, uint64_t *ret_purged,
               struct idem_error *ret_error);

/* ---- Queues: the same verbs without blocking --------------------------- */

/*     idem_queue_create(store, &queue, &error)
 *     idem_op_begin(&request, &op, &error)      each op is copied, then ...
 *     idem_queue_submit(queue, op, &error)      ... belongs to the store
 *     idem_queue_reap(queue, timeout_ms)        until it comes back here
 *     idem_op_code(op), idem_op_take_attempt(op, ...)
 *     idem_op_destroy(op)
 *
 * Answers come back only inside idem_queue_reap(), on the thread that calls it,
 * in any order. Without IDEM_OPEN_THREAD that call also does the work: what was
 * submitted since the last call runs together, with one flush to the disk.
 */
struct idem_queue;

/* IDEM_EINVALID, IDEM_ENOMEM */
int idem_queue_create(struct idem_store *store, struct idem_queue **ret_queue,
                      struct idem_error *ret_error);

/* Takes back what the store has not begun (nothing is done then), lets what is
 * under way go its way unheard, and destroys the ops and the queue. NULL is
 * allowed. */
void idem_queue_destroy(struct idem_queue *queue);

/* A descriptor that is readable while idem_queue_reap() has something to do; for
 * poll() and its kin. It belongs to the queue. Negative: IDEM_EUNAVAILABLE, no
 * descriptor could be had. */
int idem_queue_fd(struct idem_queue *queue);

/* Hands @op over. On failure it stays the caller's. The same op may be submitted
 * again after it came back with an error of kind RETRY: it keeps its nonce, so
 * that its own earlier success is recognised.
 *
 * IDEM_EUNAVAILABLE  The queue is full, or the clock or random source is away.
 * IDEM_EINVALID      The op is in flight, the store of the queue was closed, or the
 *                    handle crossed a fork().
 */
int idem_queue_submit(struct idem_queue *queue, struct idem_op *op,
                      struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* One op that was answered, or NULL after @timeout_ms (0: without waiting for
 * others, but see above: the work itself takes its time; -1: no limit) or when
 * nothing is under way. It is the caller's again. An op that the store
 * could not begin within its timeout_ms comes back with IDEM_EUNAVAILABLE. */
struct idem_op *idem_queue_reap(struct idem_queue *queue, int64_t timeout_ms);

/* Hands @n ops over as idem_queue_submit() would one after the other, but they
 * share what they can: what the store finds already answered is read at one
 * moment. For an event loop, at the end of a turn, on the thread that reaps. Reap
 * afterwards, until there is none: what is answered before that does not make the
 * descriptor readable.
 *
 * Returns how many were refused. They come first in @ops, in any order, and
 * stay the caller's; *@ret_error (NULL is allowed) says why one of them was.
 *
 * IDEM_EUNAVAILABLE, IDEM_EINVALID: see idem_queue_submit()
 */
size_t idem_queue_submit_all(struct idem_queue *queue, struct idem_op **ops,
                             size_t n, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* How many submitted ops were not reaped yet. */
size_t idem_queue_len(struct idem_queue *queue);

/* Makers of ops: the verb's arguments, copied and checked. An attempt may be
 * destroyed before the op that ends it comes back; what is on record then is in
 * idem_op_record(). wait_ms of a request must be 0 here: an op is answered at
 * once. A caller that waits for another's attempt makes an op with join_fence
 * and submits it again after a pause of its own.
 *
 * IDEM_EINVALID, IDEM_ENOMEM
 */
int idem_op_begin(const struct idem_request *request, struct idem_op **ret_op,
                  struct idem_error *ret_error);
int idem_op_end(const struct idem_attempt *attempt,
                const struct idem_outcome *outcome, struct idem_op **ret_op,
                struct idem_error *ret_error);
int idem_op_renew(const struct idem_attempt *attempt, int64_t lease_ms,
                  struct idem_op **ret_op, struct idem_error *ret_error);
int idem_op_get(struct idem_slice scope, struct idem_slice key,
                struct idem_op **ret_op, struct idem_error *ret_error);
int idem_op_import(const struct idem_record *record, struct idem_op **ret_op,
                   struct idem_error *ret_error);

/* The caller's own pointer, carried along. */
void idem_op_set_user(struct idem_op *op, void *user);
void *idem_op_user(const struct idem_op *op);

/* The identity of the record that it is about: IDEM_ID_LEN bytes in the op; all
 * zero for an op about no single record. */
const uint8_t *idem_op_id(const struct idem_op *op);

/* The answer of a reaped op: 0 or an enum idem_code, with its sentence. */
int idem_op_code(const struct idem_op *op);
const struct idem_error *idem_op_error(const struct idem_op *op);

/* The verdict of a begin that answered 0. */
enum idem_verdict idem_op_verdict(const struct idem_op *op);

/* False where an import that answered 0 found a record that stays, or was given
 * one that is past its retention. */
bool idem_op_added(const struct idem_op *op);

/* The record after the op; NULL where there is none. Valid until the op is
 * submitted again or destroyed. */
const struct idem_record *idem_op_record(const struct idem_op *op);

/* The attempt of a begin that answered 0; @op may be destroyed before it.
 *
 * IDEM_EINVALID  The op is not such a begin, or was asked before: it can only be
 *                destroyed then.
 * IDEM_ENOMEM
 */
int idem_op_take_attempt(struct idem_op *op, struct idem_attempt **ret_attempt);

/* NULL is allowed. The op must be the caller's. */
void idem_op_destroy(struct idem_op *op);

/* ---- Memory ------------------------------------------------------------ */

/* Where the library's own memory comes from; all three must be set. */
struct idem_heap {
    void *ctx;
    void *(*alloc)(void *ctx, size_t len);
    void *(*realloc)(void *ctx, void *ptr, size_t len);
    void (*free)(void *ctx, void *ptr);
};

/* Replaces the heap of the process for this library; call it before anything
 * else. NULL: malloc and its kin again. @heap is copied. */
void idem_heap_set(const struct idem_heap *heap);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
