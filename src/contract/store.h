/* store.h: the contract between the library and a store, for authors of stores.
 *
 * A store is a struct idem_store_ops that works on struct idem_op. It takes ops with
 * submit(), works on them when a caller drives it, and gives each back with
 * idem__op_answer(), once, from any thread. It decides nothing itself: the pure
 * functions idem__decide_*() below implement the verbs. The store passes them the
 * record that it found and its time.
 *
 *     submit(op) --> [pending] --drive()--> [running] --idem__op_answer()--> queue
 *                        |                      |
 *                     cancel():              cancel(): detached, freed by
 *                     taken back             idem__op_answer() itself
 *
 * Every store keeps these rules:
 *
 * - One step. No other change of a record, by any process, comes between reading it and
 *   writing the decision about it: the store holds a lock or a transaction, or writes
 *   on condition that the record is still the one that it read.
 * - Durable. A change that is answered with 0 survives the death of the process and, if
 *   the store claims durability, of the machine: the store flushes it before
 *   idem__op_answer(). A read sees every change that was answered before.
 * - True. IDEM_EUNAVAILABLE and IDEM_EFULL mean that nothing was done. If the change
 *   may have been made, the code is IDEM_EUNKNOWN: the caller then submits the same op
 *   again, with the nonce by which the decision recognises its own write.
 * - Whole. The store keeps a record as idem__record_encode() encoded it, with scope,
 *   key and both bodies, and verifies it on each read. Its id is the hash of scope and
 *   key, and a read by id compares these. A record that fails is answered with
 *   IDEM_ECORRUPT, and never overwritten.
 * - Alone. An op that fails does not fail the ops that ran with it.
 * - In time. If the deadline_ms of an op comes while it is pending, its caller takes it
 *   back; a running op may go on, detached. A store that waits for something beyond its
 *   control gives up at the deadline.
 * - Threads. Any thread may call the functions of a store, several at once: submit and
 *   cancel while another thread is inside drive. No process calls them in the child of
 *   a fork(): a handle works in the process that opened it.
 * - Memory. An op owns the bytes that it points to; they are gone once
 *   idem__op_answer() was called. idem__op_set_record() copies the answer.
 *
 * parts.h has parts that do much of this.
 */
#ifndef IDEM_CONTRACT_STORE_H
#define IDEM_CONTRACT_STORE_H

#include <idem.h>
#include <idem/limit.h>
#include <idem/operator.h>

#pragma GCC visibility push(default)

/* ---- Time -------------------------------------------------------------- */

/* The time, as far as a decision knows it. The true store time lies within store_ms
 * plus or minus store_err_ms. A decision judges a lease that was counted on the same
 * boot by boot_ms alone; any other lease is over once store time is certainly past its
 * end plus margin_ms. */
struct idem_now {
    int64_t store_ms;
    int64_t store_err_ms;
    int64_t boot_ms;
    uint8_t boot_id[16];
    int64_t margin_ms;
    uint64_t fence_floor; /* Every new fence is above it: the highest fence that
                             was ever purged, or may have been lost. */
    const char *mark;     /* The store's mark, or NULL; see IDEM_OP_MOVE. */
    int64_t doubt_ms;     /* How far store_ms may be ahead of the time that has
                             certainly passed; expiry is judged by store_ms -
                             store_err_ms - doubt_ms. 0 if the clock is known to
                             be right. */
};

/* ---- Ops --------------------------------------------------------------- */

enum idem_verb {
    /* Claims the key. Atomic: read, idem__decide_begin(), write. A STARTED is durable
     * when it is answered, and so is a record that this op turned into unknown or
     * failed. */
    IDEM_OP_BEGIN = 1,
    /* Ends the attempt with this id, nonce and fence, by idem__decide_end(). Atomic and
     * durable when answered. */
    IDEM_OP_END,
    /* Extends the lease of that attempt, by idem__decide_renew(). Atomic and
     * durable. */
    IDEM_OP_RENEW,
    /* Ends the lease of that attempt now, by idem__decide_expire(). Atomic and
     * durable. */
    IDEM_OP_EXPIRE,
    /* Reads one record, with result and input, no older than the newest change
     * that was answered anywhere before the op was submitted. */
    IDEM_OP_GET,
    /* Reads a page of records, without results and inputs, from list.cursor on: calls
     * list.each for each record during drive(), and sets list.cursor, or list.done at
     * the end. */
    IDEM_OP_LIST,
    /* Adds a record from another store, by idem__decide_import(). Atomic and
     * durable. */
    IDEM_OP_IMPORT,
    /* Records a person's decision, by idem__decide_resolve(). Atomic and durable. */
    IDEM_OP_RESOLVE,
    /* Deletes at most purge.max records for which idem__decide_expired() is true, in
     * one slice of at most 100 ms, and remembers their highest fence. Sets
     * purge.purged, and purge.done if there are no more, else purge.rest_ms. */
    IDEM_OP_PURGE,
    /* Reads the counters; see struct idem_counters. */
    IDEM_OP_COUNT,
    /* Counts a request against a limit, once; see <idem/limit.h>. Atomic, and
     * durable when it is answered. */
    IDEM_OP_LIMIT,
    /* Reads the store's mark (struct idem_move) and, with move.set, replaces it by
     * move.mark if it is still move.was. Atomic and durable. A claim that was decided
     * before the new mark and is answered with STARTED appears in every list that
     * begins move.settles_ms after the answer to this op. */
    IDEM_OP_MOVE,
};

/* The states of an op:
 *
 *     IDLE --submit--> PENDING --begun--> RUNNING --done--> ANSWERED --reap--> IDLE
 *                       |  |                 |                 ^
 *                       |  '-----done--------|-----------------'
 *           IDLE <--taken back               '--given up--> DETACHED --done--> freed
 */
enum idem_op_state {
    IDEM_OP_IDLE = 0, /* The caller's. */
    IDEM_OP_PENDING,  /* The store's; nothing done. */
    IDEM_OP_RUNNING,  /* The store's; in flight. */
    IDEM_OP_ANSWERED, /* In its queue, to be reaped, or about to be. */
    IDEM_OP_DETACHED, /* The store's; its caller has gone. */
};

enum idem_cancel {
    IDEM_CANCEL_TAKEN_BACK, /* It was pending; nothing was done. */
    IDEM_CANCEL_DETACHED,   /* It was running; the store frees it. */
    IDEM_CANCEL_ANSWERED,   /* Too late: it is in its queue, or about to be. */
};

/* Writes of a caller that the store applies together with a record, because it is the
 * database that holds the caller's own data (store->commits). One block of memory,
 * freed with its op. An IDEM_OP_END with commit writes all of it and the outcome, or
 * nothing. An IDEM_OP_BEGIN with commit claims the key, writes, and records outcome, in
 * one step: the attempt is STARTED and ended already. */
struct idem_commit {
    struct idem_slice writes;    /* In the store's own language. */
    size_t writes_len;           /* How many writes. */
    uint8_t digest[16];          /* First half of their SHA-256. */
    struct idem_outcome outcome; /* Of a begin. */

    /* The answer, if the code of the op is 0. */
    bool committed; /* By this op, or by an earlier copy of it. */
    size_t refused; /* The refused write, from 1; 0: none. */
    char text[252]; /* The reason for that. */
};

#define IDEM_CURSOR_LEN 40

/* Bytes of a store's mark, with a NUL: text, "" for none. */
#define IDEM_MARK_MAX 240

/* One request to a store and its answer. The idem_op_*() functions create it; all
 * slices of the arguments point into memory that the op owns. */
struct idem_op {
    enum idem_verb verb;

    /* The record (of all verbs but list, purge, count, limit and move). */
    uint8_t id[IDEM_ID_LEN];
    struct idem_slice scope;
    struct idem_slice key;
    /* The attempt that asks. A begin gets a fresh nonce when submit() sees it, and
     * keeps it when it is submitted again; end and renew have the nonce of their
     * attempt; resolve gets a fresh one. Zeros before that: see peek(). */
    uint8_t nonce[16];
    bool has_nonce;
    uint64_t fence; /* Of end, renew, expire, resolve. A store that decides a
                       begin in several steps, or fails it with IDEM_EUNKNOWN,
                       puts the fence of the claim that it may have made here
                       (0: none): by it idem__decide_begin() recognises a claim
                       of which no caller has heard. */

    union {
        struct idem_request begin;
        struct idem_outcome end;
        struct {
            int64_t lease_ms;
        } renew;
        struct {
            const struct idem_record *record; /* The op's own record, below. */
            bool added;
        } import;
        struct {
            struct idem_outcome outcome; /* RETRY: reopen the record. */
            struct idem_slice who;
            unsigned flags; /* enum idem_resolve_flag. */
        } resolve;
        struct {
            struct idem_filter filter;
            idem_list_fn *each;
            void *ctx;
            uint64_t cursor[IDEM_CURSOR_LEN]; /* The store's own; 0: from the
                                                 start. */
            uint64_t limit; /* Records to read for this page, about. */
            int64_t now_ms;
            bool done;
            bool stopped; /* each() stopped the list. The cursor is then after
                             the record at which it did. */
            uint64_t looked; /* Records read, on all pages. */
        } list;
        struct {
            uint64_t max;
            uint64_t cursor[IDEM_CURSOR_LEN]; /* As in list. */
            uint64_t purged;
            bool done;
            uint64_t from[10]; /* The store's own, */
            uint64_t undone;   /* as is this. */
            int64_t rest_ms; /* Set with the answer: how long to wait before the
                                next slice, to let writers in. */
        } purge;
        struct idem_counters counters;
        struct {
            struct idem_limit_request limit;
            uint8_t window[IDEM_ID_LEN];  /* Identity of the window ... */
            uint8_t request[IDEM_ID_LEN]; /* ... and of the request in it. */
            struct idem_limited answer;
        } limit;
        struct {
            bool set;
            struct idem_slice was;
            struct idem_slice mark;
            uint64_t fence_floor; /* The store raises its own floor and time to
                                     these. */
            int64_t store_ms;
            char found[IDEM_MARK_MAX]; /* The answer: the mark now. */
            uint64_t found_floor;
            int64_t found_ms;
            int64_t settles_ms;
        } move;
    } u;

    /* The answer. */
    struct idem_error error; /* Code 0: success. */
    enum idem_verdict verdict;
    bool takeover;
    bool changed; /* This op changed the record, and not an earlier copy of
                     it. */
    bool has_record;
    int64_t lease_left_ms;
    struct idem_record *record; /* If has_record. The op owns its slices too:
                                   they point into its block, or into args. */

    /* For the library. */
    struct idem_store *store;
    struct idem_queue *queue;
    struct idem_op *next; /* The store's, then the queue's. */
    struct idem_op *prev;
    struct idem_op *queue_next;
    struct idem_op *queue_prev;
    int state;           /* enum idem_op_state; atomic from submit to answer. */
    int64_t deadline_ms; /* CLOCK_MONOTONIC. */
    int64_t asked_boot_ms; /* When it was first submitted; its lease counts from
                              here. */
    int64_t submitted_ns;  /* CLOCK_MONOTONIC; set if there is an observer. */
    void *user;
    uint8_t *args; /* Follows the op; long arguments have a block of their
                      own. */
    size_t args_len;
    size_t record_room;            /* Bytes after record, in its block. */
    struct idem_commit *commit;    /* NULL: write only the record. */
    struct idem__attempt *attempt; /* Of a begin: the empty attempt for its
                                      answer. */

    /* For the store, and kept when the op is submitted again: an earlier copy may still
     * change the record whose head has this digest. */
    bool pending;
    uint8_t pending_head[32];
};

/* Marks a pending @op as running. The store holds its own lock, so that cancel() cannot
 * take the op back meanwhile. */
void idem__op_run(struct idem_op *op);

/* Returns the result of cancel() for an op that is no longer pending. */
enum idem_cancel idem__op_detach(struct idem_op *op);

/* Gives @op back to its queue, or frees it if it was detached. The store has set error,
 * verdict, takeover, lease_left_ms and the record before, and must not touch @op
 * afterwards. */
void idem__op_answer(struct idem_op *op);

/* Copies @record into the op's own memory and makes it the record of the answer. It
 * does not copy a result or input that lies in long arguments of the op already.
 *
 * IDEM_ENOMEM
 */
int idem__op_set_record(struct idem_op *op, const struct idem_record *record);

/* Sets the op's error to @code and a sentence formatted as by printf(). Returns
 * @code. */
int idem__op_fail(struct idem_op *op, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Stores ------------------------------------------------------------ */

struct idem_store_ops {
    const char *name;
    /* Answers the ops that it can answer at once, without a change to the store: those
     * ops leave @ops, and *@n becomes the number of the others, which keep their order.
     * The ops may not have nonces yet. NULL: this store cannot. */
    void (*peek)(struct idem_store *store, struct idem_op **ops, size_t *n);
    /* Takes @op. Returns 0, or IDEM_EUNAVAILABLE if too many ops are queued; it always
     * takes an end, renew or expire. A store that needs no driving may run and answer
     * @op here. NULL if there is submit_all. */
    int (*submit)(struct idem_store *store, struct idem_op *op);
    /* Takes @ops in one go, or the ops before the first one for which there is no room
     * (see submit()), and returns how many it took. The library calls it again with the
     * ops after that one. NULL: the library calls submit() for each. */
    size_t (*submit_all)(struct idem_store *store, struct idem_op **ops,
                         size_t n);
    /* Takes @op back, or detaches it. */
    enum idem_cancel (*cancel)(struct idem_store *store, struct idem_op *op);
    /* Works, or waits while other threads work, until @queue has an answer, no op of
     * @queue is in flight, or CLOCK_MONOTONIC has reached @deadline_ms. */
    void (*drive)(struct idem_store *store, struct idem_queue *queue,
                  int64_t deadline_ms);
    /* Ends and frees the store, in which no op is pending. */
    void (*close)(struct idem_store *store);
    /* Returns a descriptor that is readable when drive() has something to do that no
     * queue knows of, the same at each call, or a negative code. The library holds no
     * lock of a queue during the call. NULL: the store has none. */
    int (*fd)(struct idem_store *store);
};

struct idem_waiters;

/* The head of every store; the store's own struct begins with it. */
struct idem_store {
    const struct idem_store_ops *ops;
    struct idem_open_options options; /* With every hook of host set. */
    int64_t margin_ms;    /* Owners stop their work this long before the end. */
    int64_t lease_min_ms; /* See idem_store_lease_min_ms(). */
    long pid;             /* The process that opened it. */
    struct idem_waiters *waiters; /* Callers in this process that wait. */

    /* The store may set these once it is open. */
    bool remote;     /* See idem_store_is_remote(). */
    const char *url; /* See idem_store_url(); the store's to keep. */
    bool commits;    /* It takes ops with a struct idem_commit. */

    struct idem_liveness *liveness; /* Tells its queues that it was closed; set
                                       and freed with the head. */
};

/* Sets up the head. @ops must stay valid; @options may be NULL.
 *
 * IDEM_EINVALID  @options is out of range.
 * IDEM_ENOMEM
 */
int idem__store_init(struct idem_store *store, const struct idem_store_ops *ops,
                     const struct idem_open_options *options,
                     struct idem_error *ret_error);

/* Frees the members of the head; the store frees its own struct. */
void idem__store_finish(struct idem_store *store);

/* Wakes the waiters of this process because the record @id has reached an end: they
 * read it again. Called after the change is durable. */
void idem__store_changed(struct idem_store *store, const uint8_t *id);

/* True while @queue holds an answer that was not reaped. */
bool idem__queue_ready(struct idem_queue *queue);

/* Blocks until @queue is ready or was poked, or CLOCK_MONOTONIC has reached
 * @deadline_ms. */
void idem__queue_sleep(struct idem_queue *queue, int64_t deadline_ms);

/* Ends an idem__queue_sleep() of @queue early; from any thread. */
void idem__queue_poke(struct idem_queue *queue);

/* ---- Decisions --------------------------------------------------------- */

enum idem_change {
    IDEM_CHANGE_NONE = 0,
    IDEM_CHANGE_INSERT,  /* The id has no record: write next. */
    IDEM_CHANGE_REPLACE, /* Write next in place of the record that was found, on
                            condition that it has not changed. */
};

struct idem_decision {
    int code; /* 0, or an enum idem_code with @text. */
    char text[160];
    char note[64];             /* Memory that next.note or next.error may point
                                  to. */
    enum idem_verdict verdict; /* Of a begin. */
    bool takeover;
    int64_t lease_left_ms; /* BUSY: the rest of the lease, or of the pause. */
    enum idem_change change;
    bool set_result; /* Write next.result too (perhaps empty); else keep the old
                        one. */
    bool set_input;  /* The same for next.input. */
    struct idem_record
        next; /* If there is a change. Its slices point to the same bytes as the
                 arguments. */
};

/* Decides idem_begin(). @found, without the bytes of result and input, may be NULL: the
 * record does not exist. @op is an IDEM_OP_BEGIN with a nonce, or any op with the same
 * members set. */
void idem__decide_begin(const struct idem_record *found,
                        const struct idem_op *op, const struct idem_now *now,
                        struct idem_decision *ret_decision);

/* Decides the ending verbs: complete, fail, release, retry, unknown. */
void idem__decide_end(const struct idem_record *found, const struct idem_op *op,
                      const struct idem_now *now,
                      struct idem_decision *ret_decision);

/* Decides the renewal of a lease. */
void idem__decide_renew(const struct idem_record *found,
                        const struct idem_op *op, const struct idem_now *now,
                        struct idem_decision *ret_decision);

/* Decides the end of a lease whose owner has died. */
void idem__decide_expire(const struct idem_record *found,
                         const struct idem_op *op, const struct idem_now *now,
                         struct idem_decision *ret_decision);

/* Decides an import. It never replaces a record that counts; a released record does not
 * count beside an imported one with a higher fence. */
void idem__decide_import(const struct idem_record *found,
                         const struct idem_op *op, const struct idem_now *now,
                         struct idem_decision *ret_decision);

/* Decides a person's decision. An outcome of IDEM_STATUS_RETRY reopens the record. */
void idem__decide_resolve(const struct idem_record *found,
                          const struct idem_op *op, const struct idem_now *now,
                          struct idem_decision *ret_decision);

/* Decides the new form of a record in a store that was restored from a copy. An attempt
 * in progress becomes unknown, whatever its policy and lease: in the part that was lost
 * it may have ended, or have been renewed. A record that an owner could still end gets
 * @nonce, which is fresh, so that the owner is cut off. @note gives the reason. No
 * change: the record stays as it is. */
void idem__decide_restored(const struct idem_record *found,
                           const uint8_t nonce[16], struct idem_slice note,
                           const struct idem_now *now,
                           struct idem_decision *ret_decision);

/* True if @record may be deleted and counts as absent: its retention is
 * certainly over. */
bool idem__decide_expired(const struct idem_record *record,
                          const struct idem_now *now);

/* True if @record is in progress and late: past expected_ms, or past the end of its
 * lease. A record that waits to be run again has no lease: it is late past expected_ms,
 * but not before its pause is over. */
bool idem__decide_overdue(const struct idem_record *record,
                          const struct idem_now *now);

/* ---- The stored form --------------------------------------------------- */

/* A record is stored as its identity (id, and scope and key in clear), its head,
 * and two bodies: result and input. The head, all numbers with the most
 * significant byte first:
 *
 *      0  4  "IDR1"
 *      4  1  version, 1
 *      5  1  status
 *      6  1  on_expired_lease
 *      7  1  flags: 1 result not kept, 2 by_lease
 *      8  8  fence              48  8  lease_end       104 16  nonce
 *     16  4  attempts           56  8  lease_end_boot  120 16  boot_id
 *     20  4  bytes of fields    64  8  expected        136 16  result_digest
 *     24  8  created            72  8  ended           152 16  input_digest
 *     32  8  started            80  8  expires         168  8  result_len
 *     40  8  lease              88  8  retention       176  8  input_len
 *                               96  8  (zero)
 *    184  .  fields: tag (1), length (4), bytes; tags rise. A tag of 128 or more
 *            that the reader does not know makes the record one of a newer
 *            version; a lower one is kept as it is.
 *              7  a past attempt, as often as there are: end (1), was (1), fence
 *                 (8), started (8), ended (8), bytes of its owner (1) and of its
 *                 metadata (1), these two, text
 *            Tags from 8 on came later. A program that does not know them keeps
 *            them while it changes the rest. So each names the attempt that it is
 *            about, and counts only as long as the record still has that attempt:
 *              8  to be run again: fence (8) and lease_end (8) of the attempt,
 *                 or zero; attempts that do not count towards attempts_max (4);
 *                 attempts that ended in retry since a person last decided (4)
 *              9  in doubt: fence (8) of an attempt
 *      .. 16  first half of SHA-256 over id and all bytes above
 *
 * The digests are the first half of SHA-256 over the body (zeros if it is empty).
 */
#define IDEM_HEAD_MIN 200
#define IDEM_HEAD_MAX 65536

/* Encodes the head of @record into @buf of @cap bytes.
 *
 * IDEM_EINVALID  The head does not fit (no record within the limits of idem.h needs
 *                more than IDEM_HEAD_MAX).
 * IDEM_ENOMEM    The hash could not be computed.
 */
int idem__record_encode(const struct idem_record *record, void *buf, size_t cap,
                        size_t *ret_len);

/* Decodes and verifies a head that was stored under @id. The slices of @ret_record
 * point into @head. It sets result_len, input_len and the digests; the caller sets
 * scope, key, and the bytes of result and input.
 *
 * IDEM_ECORRUPT  The head fails its checksum, is bound to another id, breaks a rule of
 *                the layout, or is of a newer version (@ret_error says which).
 * IDEM_ENOMEM    The hash could not be computed.
 */
int idem__record_decode(const uint8_t id[IDEM_ID_LEN], struct idem_slice head,
                        struct idem_record *ret_record,
                        struct idem_error *ret_error);

/* Checks a body against the digest and length from the head.
 *
 * IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem__record_check_body(struct idem_slice body, uint64_t len,
                            const uint8_t digest[16]);

#pragma GCC visibility pop

#endif
