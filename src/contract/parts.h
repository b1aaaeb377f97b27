/* parts.h: what our stores are made of.
 *
 * store.h says what a store must do. From an op to its answer:
 *
 *     a store that can read and write under one lock
 *         idem__table_peek()     what reading alone can answer
 *         idem__table_run()      find, decide, write, set the answer
 *
 *     a store that has to wait for each step
 *         (finds the record)
 *         idem__verb_decide()    what is to be written
 *         idem__verb_given()     what the caller is given, and whether the
 *                               bodies have to be fetched for it
 *         (writes, on condition that what was found is still there)
 *         idem__verb_answer()    sets the answer
 *
 *     both
 *         idem__verb_list_row()  the records of a list
 *         idem__limit_settle()   a rate limit
 *         idem__verb_unwanted()  a claim whose caller has gone
 *         idem__op_answer()      gives the op back
 */
#ifndef IDEM_CONTRACT_PARTS_H
#define IDEM_CONTRACT_PARTS_H

#include "contract/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- One op over a table of records ------------------------------------ */

/* A table, as idem__table_run() sees it. Its caller holds the lock that makes load
 * and save one step. */
struct idem_table {
    /* Finds the record of @id and verifies all of it but whether @id is that of
     * its scope and key: 1 found, 0 none, or a negative code with its sentence.
     * Result and input bytes are loaded and verified only @with_bodies. The
     * bytes that *@ret_record points to stay until the next call on the table,
     * and beyond a save. */
    int (*load)(void *ctx, const uint8_t *id, bool with_bodies,
                struct idem_record *ret_record, struct idem_error *ret_error);
    /* Writes decision->next as decision->change says; result and input only
     * where set_result and set_input say so, else they stay. 0 or a code. */
    int (*save)(void *ctx, const struct idem_decision *decision,
                struct idem_error *ret_error);
    void *ctx;
};

/* Runs a begin, end, renew, expire, import, resolve or get: decides, writes and
 * sets the answer, but does not give it back. True if something was written.
 * Where writing fails op->error says why, and the caller must undo what it
 * wrote. */
bool idem__table_run(const struct idem_table *table, struct idem_op *op,
                     const struct idem_now *now);

/* Answers @op if reading alone can: a get, or a begin whose verdict changes
 * nothing. False: it has to be run, under the lock. Errors are answers too. */
bool idem__table_peek(const struct idem_table *table, struct idem_op *op,
                      const struct idem_now *now);

/* ---- The same in steps ------------------------------------------------- */

/* Decides the op's verb for the record that was found (NULL: none). A get of a
 * record that is not there is refused with IDEM_ENOTFOUND. */
void idem__verb_decide(const struct idem_record *found,
                       const struct idem_op *op, const struct idem_now *now,
                       struct idem_decision *decision);

/* The record that the caller is given for @decision. True: the bytes of its
 * result and input are wanted, and not in it yet. Fetch and verify them before
 * anything is written: one that cannot be trusted must not cost an attempt. */
bool idem__verb_given(const struct idem_op *op, const struct idem_record *found,
                      const struct idem_decision *decision,
                      struct idem_record *ret_record);

/* True if the result that is on record is given to the caller. The next owner after a try
 * that ended in retry is not given what that one left: it is for who looks at the
 * record. */
bool idem__verb_gives_result(const struct idem_decision *decision);

/* Puts them in, from a record that was loaded with its bodies. */
void idem__verb_take_bodies(const struct idem_decision *decision,
                            const struct idem_record *bodies,
                            struct idem_record *record);

/* Verifies the bodies of a record that was loaded with them.
 *
 * IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem__verb_check_bodies(const struct idem_record *record,
                            struct idem_error *error);

/* Sets the op's answer, but does not give it back. @record is copied: before a change
 * is written, for a caller that is told of no memory must not have made it. The same
 * answer once more needs no more memory.
 *
 * IDEM_ENOMEM, which is then the answer
 */
int idem__verb_answer(struct idem_op *op, const struct idem_decision *decision,
                      const struct idem_record *record);

/* A claim that was made after its caller had stopped waiting would block the key
 * for a lease, and under hold for a person. True: @op was one, and is now the
 * release of it, for the store to run. Asked before idem__op_answer(), of an op
 * that cancel() may have detached; a claim that is wanted can be detached no more. */
bool idem__verb_unwanted(struct idem_op *op);

/* ---- Lists ------------------------------------------------------------- */

/* True if the list @op goes down from the newest record, in a store that has an
 * order and no index that serves the list. */
bool idem__verb_list_down(const struct idem_op *op);

/* Shows one record of a list to its caller if the filter lets it through.
 * @record has no bodies; with @code other than 0 only scope, key and id. False:
 * the list is to stop here. */
bool idem__verb_list_row(struct idem_op *op, int code,
                         const struct idem_record *record,
                         const struct idem_now *now);

/* ---- Rate limits ------------------------------------------------------- */

/* The window of an IDEM_OP_LIMIT as it was found. Zeroed: nothing. */
struct idem_limit_state {
    bool has_window;
    uint64_t used;     /* May be more than max, where that was larger before. */
    uint64_t refusals; /* Remembered ones. */
    bool has_entry;
    int64_t entry; /* Of the request; see below. */
};

/* Of a request one number is remembered: the remaining count if it was
 * admitted, and the negative of it if it was refused. With nothing left nothing
 * is remembered of a refusal: it would be refused again, or admitted once max
 * is larger. */

struct idem_limit_decision {
    int code; /* 0, or an enum idem_code with @text. */
    char text[200];
    struct idem_limited limited;
    bool remember; /* Write entry, used and refusals, and expires_ms if it is
                      later than what is there, in one step with the reading of
                      @found. */
    int64_t entry;
    uint64_t used;
    uint64_t refusals;
    int64_t expires_ms;
};

/* Decides on @op, and sets its answer. The state of window u.limit.window and of
 * request u.limit.request in it is @found. False: op->error says why not. */
bool idem__limit_settle(struct idem_op *op,
                        const struct idem_limit_state *found,
                        const struct idem_now *now,
                        struct idem_limit_decision *ret_decision);

/* True if the window whose expires_ms this is may be deleted, with its
 * requests. */
bool idem__limit_expired(int64_t expires_ms, const struct idem_now *now);

/* ---- The time of a store on one host ----------------------------------- */

/* Store time was @store_ms when the boot clock of @boot_id showed @boot_ms, and
 * @sure_ms at least: the newest time that was saved in an earlier boot, while
 * nothing is known to keep the wall clock right. Zeroed: no anchor yet. It is
 * part of the store: all its processes read and write the same one. */
struct idem_anchor {
    uint8_t boot_id[16];
    int64_t boot_ms;
    int64_t store_ms;
    int64_t sure_ms; /* At most store_ms. */
    int64_t jump_ms; /* How far store time went on at this boot. */
};

/* How long after a boot a lease of an earlier boot still counts. */
#define IDEM_OTHER_BOOT_MARGIN_MS 5000

/* Fills in the time members of *@ret_now. @last_ms is the newest time that was
 * saved in the store: store_ms minus doubt_ms of an earlier answer, some seconds
 * old at most. True if the anchor was moved, and is to be saved before anything
 * that this time decided:
 *
 * - @reading is of another boot: to wall time, but never before @last_ms. If the
 *   wall clock is not synchronised, what has expired is judged as if no time had
 *   passed since @last_ms.
 * - The clock is synchronised by now: what it shows counts, between what was sure
 *   and what was shown.
 * - As much boot time has passed as store time had gone on: that is believed. */
bool idem__anchor_now(struct idem_anchor *anchor,
                      const struct idem_clock_reading *reading, int64_t last_ms,
                      struct idem_now *ret_now);

/* ---- Ops that the store has not begun ---------------------------------- */

/* Oldest first, linked by next and prev. The store's own lock is held around each
 * call. Zeroed: none. */
struct idem_pending {
    struct idem_op *first;
    struct idem_op *last;
    size_t len;
};

void idem__pending_append(struct idem_pending *pending, struct idem_op *op);

/* Takes @op, which is one of them, off: it is run now. */
void idem__pending_run(struct idem_pending *pending, struct idem_op *op);

/* cancel of struct idem_store_ops, for an op that may be one of them. */
enum idem_cancel idem__pending_cancel(struct idem_pending *pending,
                                      struct idem_op *op);

/* Ends those that are left when a store is closed: it destroys claims that nobody
 * wanted and that were not given back, and answers those of a queue that should have
 * been destroyed before: nothing was done. */
void idem__pending_drop(struct idem_pending *pending);

/* Calls idem__op_answer() for each of @ops, which are linked by next. A caller that waits
 * for several of them wakes up once. */
void idem__op_answer_all(struct idem_op *ops);

/* True while a thread sleeps in idem__queue_sleep() of @queue: it can be poked to
 * drive. */
bool idem__queue_has_sleeper(struct idem_queue *queue);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
