/* store.h: what a store is, for those who write one: a contract that both sides keep.
 *
 * A store is a struct idem_store_ops over one struct idem_op. It takes ops with
 * submit(), works on them when a caller drives it, and gives each back with
 * idem__op_answer(), once, from any thread. It decides nothing itself: what a
 * verb means is in the pure functions idem__decide_*() below, which are given the
 * record that was found and the store's time.
 *
 *     submit(op) --> [pending] --drive()--> [running] --idem__op_answer()--> queue
 *                        |                      |
 *                     cancel():              cancel(): detached, freed by
 *                     taken back             idem__op_answer() itself
 *
 * These hold for every store:
 *
 * - One step. Between reading a record and writing what was decided about it falls
 *   no other change of it, by any process: a lock, a transaction, or a write on
 *   condition that what was found is still there.
 * - Durable. A change that is answered 0 survives the death of the process and, where
 *   the store says that it is durable, of the machine: it is flushed before
 *   idem__op_answer(). A read sees every change that was answered before.
 * - True. IDEM_EUNAVAILABLE and IDEM_EFULL say that nothing was done. If it may have
 *   been done the code is IDEM_EUNKNOWN: the caller then submits the same op
 *   again, with the nonce by which the decision recognises its own write.
 * - Whole. A record is kept as idem__record_encode() made it, with scope, key and
 *   both bodies, and is verified when it is read. Its id is the hash of scope and
 *   key, and a read by id compares these. A record that fails is answered with
 *   IDEM_ECORRUPT, and never overwritten.
 * - Alone. An op that fails does not fail those that were run with it.
 * - In time. An op whose deadline_ms comes while it is pending is taken back by
 *   its caller; one that is running may go on, detached. A store that waits for
 *   something beyond its control gives up at the deadline.
 * - Threads. The functions of a store are called from any thread, several at once:
 *   submit and cancel while another thread is inside drive. None is called in the
 *   child of a fork(): a handle works in the process that opened it.
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

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Time -------------------------------------------------------------- */

/* The time, as far as a decision knows it. The true store time lies within
 * store_ms plus or minus store_err_ms. A lease that was counted on the same
 * boot is judged by boot_ms alone; any other is over when store time is
 * certainly past its end plus margin_ms. */
struct idem_now {
    int64_t store_ms;
    int64_t store_err_ms;
    int64_t boot_ms;
    uint8_t boot_id[16];
    int64_t margin_ms;
    uint64_t fence_floor; /* Every new fence is above it: the highest that was
                             ever purged, or may have been lost. */
    const char *mark;     /* The store's, or NULL; see IDEM_OP_MOVE. */
    int64_t doubt_ms; /* By how much store_ms may be ahead of the time that has
                         certainly passed; expiry is judged by store_ms -
                         store_err_ms - doubt_ms. 0 where the clock is known
                         to be right. */
};

/* ---- Ops --------------------------------------------------------------- */

enum idem_verb {
    /* Claims the key. Atomic: read, idem__decide_begin(), write. A STARTED is
     * durable when it is answered, and so is a record that became unknown or
     * failed on the way. */
    IDEM_OP_BEGIN = 1,
    /* Ends the attempt (id, nonce, fence) by idem__decide_end(). Atomic and
     * durable when answered. */
    IDEM_OP_END,
    /* Extends its lease by idem__decide_renew(). Atomic and durable. */
    IDEM_OP_RENEW,
    /* Ends its lease now, by idem__decide_expire(). Atomic and durable. */
    IDEM_OP_EXPIRE,
    /* Reads one record, with result and input, no older than the newest change
     * that was answered anywhere before the op was submitted. */
    IDEM_OP_GET,
    /* Reads a page of records without results and inputs, after list.cursor:
     * calls list.each for each of them during drive(), sets list.cursor, or
     * list.done at the end. */
    IDEM_OP_LIST,
    /* Adds a record from another store, by idem__decide_import(). Atomic and
     * durable. */
    IDEM_OP_IMPORT,
    /* A person's decision, by idem__decide_resolve(). Atomic and durable. */
    IDEM_OP_RESOLVE,
    /* Deletes at most purge.max records that idem__decide_expired(), in one slice
     * of at most 100 ms; remembers their highest fence. Sets purge.purged,
     * purge.done when no more are to be found, and else purge.rest_ms. */
    IDEM_OP_PURGE,
    /* Reads the counters; see struct idem_counters. */
    IDEM_OP_COUNT,
    /* Counts a request against a limit, once; see <idem/limit.h>. Atomic, and
     * durable when it is answered. */
    IDEM_OP_LIMIT,
    /* Reads the store's mark (struct idem_move) and, with move.set, replaces it by
     * move.mark where it is move.was. Atomic and durable. Each claim that was
     * decided without it and is answered STARTED is seen by every list that begins
     * move.settles_ms after the answer. */
    IDEM_OP_MOVE,
};

/* An op on its way:
 *
 *     IDLE --submit--> PENDING --begun--> RUNNING --done--> ANSWERED --reap--> IDLE
 *                       |  |                 |                 ^
 *                       |  '-----done--------|-----------------'
 *           IDLE <--taken back               '--given up--> DETACHED --done--> freed
 */
enum idem_op_state {
    IDEM_OP_IDLE = 0, /* The caller's. */
    IDEM_OP_PENDING,  /* The store's; nothing done. */
    IDEM_OP_RUNNING,  /* The store's; under way. */
    IDEM_OP_ANSWERED, /* In its queue, to be reaped, or about to be. */
    IDEM_OP_DETACHED, /* The store's; nobody waits for it any more. */
};

enum idem_cancel {
    IDEM_CANCEL_TAKEN_BACK, /* It was pending; nothing was done. */
    IDEM_CANCEL_DETACHED,   /* It was running; the store frees it. */
    IDEM_CANCEL_ANSWERED,   /* Too late: it is in its queue, or about to be. */
};

/* Writes of a caller together with a record, where the store is the database
 * that holds the caller's own data (store->commits). One block of memory, freed
 * with its op. An IDEM_OP_END with one writes all of it and the outcome, or
 * nothing. An IDEM_OP_BEGIN with one claims the key, writes, and records
 * outcome, in one step: it is STARTED and ended already. */
struct idem_commit {
    struct idem_slice writes;    /* In the words of the store. */
    size_t writes_len;           /* So many of them. */
    uint8_t digest[16];          /* The first half of their SHA-256. */
    struct idem_outcome outcome; /* Of a begin. */

    /* The answer of an op that was answered 0. */
    bool committed; /* By this op, or by an earlier copy of it. */
    size_t refused; /* The write that was refused, from 1 on; 0: none. */
    char text[252]; /* The answer to it. */
};

#define IDEM_CURSOR_LEN 40

/* Bytes of a store's mark, with a NUL: text, "" for none. */
#define IDEM_MARK_MAX 240

/* One request to a store and its answer. Made by the idem_op_*() functions; all
 * slices of the arguments point into memory that the op owns. */
struct idem_op {
    enum idem_verb verb;

    /* The record that is meant (all verbs but list, purge, count, limit and
     * move). */
    uint8_t id[IDEM_ID_LEN];
    struct idem_slice scope;
    struct idem_slice key;
    /* The attempt that asks: fresh for each begin that submit() sees, kept when
     * it is submitted again; of the attempt for end and renew; fresh for
     * resolve. All zero before: see peek(). */
    uint8_t nonce[16];
    bool has_nonce;
    uint64_t fence; /* end, renew, expire, resolve. A store that decides a begin
                     * in several steps, or fails it with IDEM_EUNKNOWN, puts here
                     * the fence of the claim that it may have made (0: none): by
                     * it idem__decide_begin() knows a claim that nobody was told
                     * of. */

    union {
        struct idem_request begin;
        struct idem_outcome end;
        struct {
            int64_t lease_ms;
        } renew;
        struct {
            const struct idem_record *record; /* The op's own, below. */
            bool added;
        } import;
        struct {
            struct idem_outcome outcome; /* RETRY: the record is reopened. */
            struct idem_slice who;
            unsigned flags; /* enum idem_resolve_flag. */
        } resolve;
        struct {
            struct idem_filter filter;
            idem_list_fn *each;
            void *ctx;
            uint64_t cursor[IDEM_CURSOR_LEN]; /* The store's own; 0: from
                                                 the start. */
            uint64_t limit; /* Records looked at in this page, about. */
            int64_t now_ms;
            bool done;
            bool stopped; /* each() asked for it. The cursor is that after the
                             record for which it did. */
            uint64_t looked; /* Records looked at, in all pages. */
        } list;
        struct {
            uint64_t max;
            uint64_t cursor[IDEM_CURSOR_LEN]; /* As in list. */
            uint64_t purged;
            bool done;
            uint64_t from[10]; /* The store's own, */
            uint64_t undone;   /* like this. */
            int64_t rest_ms; /* Set with the answer: how long to wait before the
                                 next slice, for the sake of writers. */
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
            uint64_t fence_floor; /* The store's are raised to these. */
            int64_t store_ms;
            char found[IDEM_MARK_MAX]; /* The answer: how it is now. */
            uint64_t found_floor;
            int64_t found_ms;
            int64_t settles_ms;
        } move;
    } u;

    /* The answer. */
    struct idem_error error; /* code 0: answered. */
    enum idem_verdict verdict;
    bool takeover;
    bool changed; /* The record, by this op; not by an earlier copy of it. */
    bool has_record;
    int64_t lease_left_ms;
    struct idem_record *record; /* If so. Its slices are the op's, too: they
                                   point into its block, or to args. */

    /* The library's own. */
    struct idem_store *store;
    struct idem_queue *queue;
    struct idem_op *next; /* The store's, then the queue's. */
    struct idem_op *prev;
    struct idem_op *queue_next;
    struct idem_op *queue_prev;
    int state;           /* enum idem_op_state; atomic from submit to answer. */
    int64_t deadline_ms; /* CLOCK_MONOTONIC. */
    int64_t asked_boot_ms; /* First submitted; leases count from here. */
    int64_t submitted_ns;  /* CLOCK_MONOTONIC; where somebody observes. */
    void *user;
    uint8_t *args; /* After the op, or, where they are long, a block of their
                      own. */
    size_t args_len;
    size_t record_room;         /* After record, in its block. */
    struct idem_commit *commit; /* NULL: the record is all that is written. */
    struct idem__attempt *attempt; /* Of a begin, empty: for its answer. */

    /* A store's own, and kept when the op is submitted again: an earlier copy may yet
     * change the record whose head has this digest. */
    bool pending;
    uint8_t pending_head[32];
};

/* Marks a pending @op as running. The store's own lock keeps cancel() away. */
void idem__op_run(struct idem_op *op);

/* The result of cancel() for an op that is no longer pending. */
enum idem_cancel idem__op_detach(struct idem_op *op);

/* Gives @op back to its queue (or frees it, if it was detached). The store must
 * not touch it afterwards. error, verdict, takeover, lease_left_ms and the
 * record have been set before. */
void idem__op_answer(struct idem_op *op);

/* Copies @record into the op's own memory and makes it the answer's record. A
 * result or input that already lies in long arguments of the op is not copied.
 *
 * IDEM_ENOMEM
 */
int idem__op_set_record(struct idem_op *op, const struct idem_record *record);

/* Sets the op's error: @code and one sentence made as printf does. Returns
 * @code. */
int idem__op_fail(struct idem_op *op, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Stores ------------------------------------------------------------ */

struct idem_store_ops {
    const char *name;
    /* Answers what can be answered at once, without a change to the store: those
     * ops leave @ops, and *@n says how many are left, in their order. They may
     * have no nonces yet. NULL: this store does no such thing. */
    void (*peek)(struct idem_store *store, struct idem_op **ops, size_t *n);
    /* Takes @op: 0, or IDEM_EUNAVAILABLE when too much is queued; an end, renew or
     * expire is always taken. A store that needs no driving may run and answer it
     * here. NULL: submit_all is there. */
    int (*submit)(struct idem_store *store, struct idem_op *op);
    /* Takes @ops in one go, or those before the first for which there is no room
     * (see submit()), and returns how many. It is called again with what comes after
     * that one. NULL: submit() is called for each. */
    size_t (*submit_all)(struct idem_store *store, struct idem_op **ops,
                         size_t n);
    /* Takes @op back, or detaches it. */
    enum idem_cancel (*cancel)(struct idem_store *store, struct idem_op *op);
    /* Works, or waits while others work, until @queue has an answer, nothing of
     * it is under way, or CLOCK_MONOTONIC has reached @deadline_ms. */
    void (*drive)(struct idem_store *store, struct idem_queue *queue,
                  int64_t deadline_ms);
    /* Ends and frees the store. Nothing is pending. */
    void (*close)(struct idem_store *store);
    /* A descriptor that is readable when drive() has something to do that no
     * queue knows of, the same at each call, or a negative code. No lock of a
     * queue's is held meanwhile. NULL: it has none. */
    int (*fd)(struct idem_store *store);
};

struct idem_waiters;

/* The head of every store; the store's own struct begins with it. */
struct idem_store {
    const struct idem_store_ops *ops;
    struct idem_open_options options; /* With every hook of host set. */
    int64_t margin_ms;    /* Owners stop their work this long before the end. */
    int64_t lease_min_ms; /* See idem_store_lease_min_ms(). */
    long pid;             /* That opened it. */
    struct idem_waiters *waiters; /* Callers of this process that wait. */

    /* Facts that the store may give about itself, once it is open. */
    bool remote;     /* See idem_store_is_remote(). */
    const char *url; /* See idem_store_url(); the store's to keep. */
    bool commits;    /* It takes ops with a struct idem_commit. */

    struct idem_liveness *liveness; /* By which its queues know that it was
                                       closed; set and freed with the head. */
};

/* Sets up the head. @ops is not copied. @options may be NULL.
 *
 * IDEM_EINVALID  Options out of range.
 * IDEM_ENOMEM
 */
int idem__store_init(struct idem_store *store, const struct idem_store_ops *ops,
                     const struct idem_open_options *options,
                     struct idem_error *ret_error);

/* Frees what the head holds; the store frees itself. */
void idem__store_finish(struct idem_store *store);

/* Says that the record @id reached an end: waiters of this process look again.
 * Called after the change is durable. */
void idem__store_changed(struct idem_store *store, const uint8_t *id);

/* True while @queue holds an answer that was not reaped. */
bool idem__queue_ready(struct idem_queue *queue);

/* Blocks until @queue is ready, it was poked, or CLOCK_MONOTONIC has reached
 * @deadline_ms. */
void idem__queue_sleep(struct idem_queue *queue, int64_t deadline_ms);

/* Ends an idem__queue_sleep() of @queue early; from any thread. */
void idem__queue_poke(struct idem_queue *queue);

/* ---- Decisions --------------------------------------------------------- */

enum idem_change {
    IDEM_CHANGE_NONE = 0,
    IDEM_CHANGE_INSERT,  /* The id has no record: write next. */
    IDEM_CHANGE_REPLACE, /* Write next over the record that was found, provided
                            that it is still the same. */
};

struct idem_decision {
    int code; /* 0, or an enum idem_code with @text. */
    char text[160];
    char note[64];             /* Memory that next.note or next.error may point
                                  to. */
    enum idem_verdict verdict; /* Of a begin. */
    bool takeover;
    int64_t lease_left_ms; /* BUSY: of the lease, or of the pause. */
    enum idem_change change;
    bool set_result; /* Write next.result too (perhaps empty); else keep. */
    bool set_input;  /* The same for next.input. */
    struct idem_record
        next; /* If there is a change. Its slices point to what the
                                arguments point to. */
};

/* Decides idem_begin(). @found may be NULL: the record does not exist. It needs
 * no result or input bytes. @op is an IDEM_OP_BEGIN with nonce, or any op with
 * the same members set. */
void idem__decide_begin(const struct idem_record *found,
                        const struct idem_op *op, const struct idem_now *now,
                        struct idem_decision *ret_decision);

/* Decides the ending verbs: complete, fail, release, retry, unknown. */
void idem__decide_end(const struct idem_record *found, const struct idem_op *op,
                      const struct idem_now *now,
                      struct idem_decision *ret_decision);

void idem__decide_renew(const struct idem_record *found,
                        const struct idem_op *op, const struct idem_now *now,
                        struct idem_decision *ret_decision);

void idem__decide_expire(const struct idem_record *found,
                         const struct idem_op *op, const struct idem_now *now,
                         struct idem_decision *ret_decision);

/* A record that is there and counts is never written over: one that was released
 * does not count beside one with a higher fence. */
void idem__decide_import(const struct idem_record *found,
                         const struct idem_op *op, const struct idem_now *now,
                         struct idem_decision *ret_decision);

/* Also reopens: an outcome of IDEM_STATUS_RETRY. */
void idem__decide_resolve(const struct idem_record *found,
                          const struct idem_op *op, const struct idem_now *now,
                          struct idem_decision *ret_decision);

/* Decides the new form of a record of a store that was put back from a copy. An
 * attempt in progress is unknown, whatever its policy and lease: in what was
 * lost it may have ended, or have been renewed. A record that an owner could
 * still end gets @nonce, which is fresh, and so another owner. @note says why.
 * No change: the record stays as it is. */
void idem__decide_restored(const struct idem_record *found,
                           const uint8_t nonce[16], struct idem_slice note,
                           const struct idem_now *now,
                           struct idem_decision *ret_decision);

/* True if @record may be deleted and counts as absent: its retention is
 * certainly over. */
bool idem__decide_expired(const struct idem_record *record,
                          const struct idem_now *now);

/* True if @record is in progress and late: past expected_ms, or its lease over.
 * A record that waits to be run again has no lease: it is late past expected_ms, but not
 * before its pause is over. */
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
 *            them while it changes the rest, so each names what it is about and
 *            counts only as long as that is there:
 *              8  to be run again: fence (8) and lease_end (8) of the attempt,
 *                 or zero; attempts that do not count towards attempts_max (4);
 *                 those that ended in retry since a person has decided (4)
 *              9  in doubt: fence (8) of an attempt
 *      .. 16  first half of SHA-256 over id and all bytes above
 *
 * The digests are the first half of SHA-256 over the body (zero if empty).
 */
#define IDEM_HEAD_MIN 200
#define IDEM_HEAD_MAX 65536

/* Encodes @record's head into @buf of @cap bytes.
 *
 * IDEM_EINVALID  It does not fit (no record within the limits of idem.h needs
 *                more than IDEM_HEAD_MAX).
 * IDEM_ENOMEM    The hash could not be made.
 */
int idem__record_encode(const struct idem_record *record, void *buf, size_t cap,
                        size_t *ret_len);

/* Decodes and verifies a head that was stored under @id. The slices of
 * @ret_record point into @head. scope, key, and the bytes of result and input
 * are the caller's to set; result_len, input_len and the digests are set.
 *
 * IDEM_ECORRUPT  It fails its checksum, is bound to another id, breaks a rule of
 *                the layout, or is of a newer version (@ret_error says which).
 * IDEM_ENOMEM    The hash could not be made.
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

#ifdef __cplusplus
}
#endif

#endif
