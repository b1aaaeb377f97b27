/* queue.h: the verbs of <idem.h> without blocking. */
#ifndef IDEM_QUEUE_H
#define IDEM_QUEUE_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

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
 * IDEM_EUNAVAILABLE  queue_max ops are queued: reap some first. Or the clock or the
 *                    random source is away. An end or a renewal is never refused
 *                    for want of room.
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
int idem_op_expire(const struct idem_attempt *attempt, struct idem_op **ret_op,
                   struct idem_error *ret_error);
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
 */
int idem_op_take_attempt(struct idem_op *op, struct idem_attempt **ret_attempt);

/* NULL is allowed. The op must be the caller's. */
void idem_op_destroy(struct idem_op *op);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
