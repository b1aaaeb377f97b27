/* parts.h: the parts of which our stores are made.
 *
 * store.h lists the duties of a store. From an op to its answer:
 *
 *     a store that can read and write under one lock
 *         idem__table_peek()     answers what reading alone can answer
 *         idem__table_run()      finds, decides, writes, sets the answer
 *
 *     a store that has to wait for each step
 *         (finds the record)
 *         idem__verb_decide()    decides what to write
 *         idem__verb_given()     the record for the caller, and whether its
 *                               bodies have to be fetched
 *         (writes, on condition that the record has not changed)
 *         idem__verb_answer()    sets the answer
 *
 *     both
 *         idem__verb_list_row()  shows the records of a list
 *         idem__limit_settle()   decides a rate limit
 *         idem__verb_unwanted()  releases a claim whose caller has gone
 *         idem__op_answer()      gives the op back
 */
#ifndef IDEM_CONTRACT_PARTS_H
#define IDEM_CONTRACT_PARTS_H

#include "contract/store.h"

#pragma GCC visibility push(default)

/* ---- One op over a table of records ------------------------------------ */

/* A table of records, as idem__table_run() uses it. The caller holds the lock that
 * makes load and save one step. */
struct idem_table {
    /* Finds the record with @id and verifies it, except that @id belongs to its scope
     * and key. Returns 1 if it found the record, 0 if there is none, or a negative code
     * with its sentence. It loads and verifies the bytes of result and input only
     * @with_bodies. The bytes that *@ret_record points to stay valid until the next
     * load, also after a save. */
    int (*load)(void *ctx, const uint8_t *id, bool with_bodies,
                struct idem_record *ret_record, struct idem_error *ret_error);
    /* Writes decision->next as decision->change says, with the result and the input
     * only if set_result and set_input are set; otherwise these stay. Returns 0 or a
     * code. */
    int (*save)(void *ctx, const struct idem_decision *decision,
                struct idem_error *ret_error);
    void *ctx;
};

/* Runs a begin, end, renew, expire, import, resolve or get: decides, writes, and sets
 * the answer, but does not give @op back. Returns true if it wrote. If writing fails,
 * op->error gives the reason, and the caller must undo what was written. */
bool idem__table_run(const struct idem_table *table, struct idem_op *op,
                     const struct idem_now *now);

/* Answers @op if reading is enough: a get, or a begin whose verdict changes nothing.
 * Returns true also for an error, and false if the caller must run @op under the
 * lock. */
bool idem__table_peek(const struct idem_table *table, struct idem_op *op,
                      const struct idem_now *now);

/* ---- The same in steps ------------------------------------------------- */

/* Decides the verb of @op for the record that was found (NULL: none). A get without a
 * record is refused with IDEM_ENOTFOUND. */
void idem__verb_decide(const struct idem_record *found,
                       const struct idem_op *op, const struct idem_now *now,
                       struct idem_decision *decision);

/* Sets the record that the caller gets for @decision. Returns true if the caller wants
 * the bytes of result and input and they are not in it yet. Fetch and verify these
 * before any write: a damaged body must not cost an attempt. */
bool idem__verb_given(const struct idem_op *op, const struct idem_record *found,
                      const struct idem_decision *decision,
                      struct idem_record *ret_record);

/* True if the caller gets the result on record. After an attempt that ended in retry,
 * the next owner does not get the result of that attempt, which is for a reader of the
 * record. */
bool idem__verb_gives_result(const struct idem_decision *decision);

/* Copies the wanted bodies from @bodies, a record that was loaded with them. */
void idem__verb_take_bodies(const struct idem_decision *decision,
                            const struct idem_record *bodies,
                            struct idem_record *record);

/* Verifies the bodies of a record that was loaded with them.
 *
 * IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem__verb_check_bodies(const struct idem_record *record,
                            struct idem_error *error);

/* Sets the op's answer, but does not give the op back. It copies @record. Call it
 * before a change is written: a caller that gets IDEM_ENOMEM must not have made the
 * change. Setting the same answer again needs no more memory.
 *
 * IDEM_ENOMEM  It is then the answer.
 */
int idem__verb_answer(struct idem_op *op, const struct idem_decision *decision,
                      const struct idem_record *record);

/* True if @op is a claim whose caller stopped waiting before it was made; @op is then
 * turned into the release of that claim, for the store to run. Otherwise the claim
 * would block the key for a lease, and under hold until a person decides. Ask this
 * before idem__op_answer(), for an op that cancel() may have detached. From then on
 * cancel() can no longer detach a claim that is wanted. */
bool idem__verb_unwanted(struct idem_op *op);

/* ---- Lists ------------------------------------------------------------- */

/* True if the list @op starts with the newest record, in a store that has such an
 * order, and no index serves the list. */
bool idem__verb_list_down(const struct idem_op *op);

/* Shows one record of a list to its caller if the filter selects it. @record has no
 * bodies; if @code is not 0, it has only scope, key and id. Returns false if the list
 * is to stop here. */
bool idem__verb_list_row(struct idem_op *op, int code,
                         const struct idem_record *record,
                         const struct idem_now *now);

/* ---- Rate limits ------------------------------------------------------- */

/* The stored state of the window of an IDEM_OP_LIMIT. Zeroed: the store has none. */
struct idem_limit_state {
    bool has_window;
    uint64_t used;     /* More than max if max was larger before. */
    uint64_t refusals; /* Refusals on record. */
    bool has_entry;
    int64_t entry; /* The entry of the request; see below. */
};

/* The entry of a request is one number: the remaining count if the request was
 * admitted, and its negative if it was refused. A refusal with nothing left has no
 * entry: the request would be refused again, or admitted once max is larger. */

struct idem_limit_decision {
    int code; /* 0, or an enum idem_code with @text. */
    char text[200];
    struct idem_limited limited;
    bool remember; /* Write entry, used and refusals, and expires_ms if it is
                      later than the stored one, in one step with the reading of
                      @found. */
    int64_t entry;
    uint64_t used;
    uint64_t refusals;
    int64_t expires_ms;
};

/* Decides @op for the state @found of window u.limit.window and of request
 * u.limit.request in it, and sets the answer. Returns false after an error, which is in
 * op->error. */
bool idem__limit_settle(struct idem_op *op,
                        const struct idem_limit_state *found,
                        const struct idem_now *now,
                        struct idem_limit_decision *ret_decision);

/* True if the window that has @expires_ms may be deleted, with its requests. */
bool idem__limit_expired(int64_t expires_ms, const struct idem_now *now);

/* ---- The time of a store on one host ----------------------------------- */

/* A point from which store time counts: it was store_ms when the boot clock of boot_id
 * showed boot_ms. It was sure_ms at least: the newest time that was saved in an earlier
 * boot, as long as nothing is known to keep the wall clock right. Zeroed: no anchor
 * yet. The anchor is part of the store: all its processes read and write the same
 * one. */
struct idem_anchor {
    uint8_t boot_id[16];
    int64_t boot_ms;
    int64_t store_ms;
    int64_t sure_ms; /* At most store_ms. */
    int64_t jump_ms; /* How far store time advanced at this boot. */
};

/* How long after a boot a lease of an earlier boot still counts. */
#define IDEM_OTHER_BOOT_MARGIN_MS 5000

/* Fills in the time members of *@ret_now. @last_ms is the newest time that was saved in
 * the store: store_ms minus doubt_ms of an earlier answer, a few seconds old at most.
 * Returns true if it moved the anchor, which must be saved before any decision that
 * used this time. It moves the anchor in these cases:
 *
 * - @reading is of another boot: to wall time, but never before @last_ms. If the wall
 *   clock is not synchronised, expiry is judged as if no time had passed since
 *   @last_ms.
 * - The clock has become synchronised: to the time that it shows, within the bounds of
 *   sure_ms and store_ms.
 * - As much boot time has passed as store time had advanced: store time is then
 *   trusted.
 */
bool idem__anchor_now(struct idem_anchor *anchor,
                      const struct idem_clock_reading *reading, int64_t last_ms,
                      struct idem_now *ret_now);

/* ---- Ops that the store has not begun ---------------------------------- */

/* A list of ops, oldest first, linked by next and prev. The store holds its own lock
 * around each call. Zeroed: empty. */
struct idem_pending {
    struct idem_op *first;
    struct idem_op *last;
    size_t len;
};

void idem__pending_append(struct idem_pending *pending, struct idem_op *op);

/* Takes @op off the list, to run it now. */
void idem__pending_run(struct idem_pending *pending, struct idem_op *op);

/* Implements cancel of struct idem_store_ops, for an op that may be in the list. */
enum idem_cancel idem__pending_cancel(struct idem_pending *pending,
                                      struct idem_op *op);

/* Ends the ops that are left when a store is closed. It destroys the releases of
 * unwanted claims that did not run, and answers the ops of a queue that should have
 * been destroyed before with IDEM_EUNAVAILABLE. */
void idem__pending_drop(struct idem_pending *pending);

/* Calls idem__op_answer() for each of @ops, which are linked by next. A caller that
 * waits for several of them wakes up once. */
void idem__op_answer_all(struct idem_op *ops);

/* True while a thread sleeps in idem__queue_sleep() on @queue, so that a poke can make
 * it drive. */
bool idem__queue_has_sleeper(struct idem_queue *queue);

#pragma GCC visibility pop

#endif
