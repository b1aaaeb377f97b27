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
 * Answers come back only inside idem_queue_reap(), on the thread that calls it, in any
 * order. Without IDEM_OPEN_THREAD that call also does the work: all ops that were
 * submitted since the last call run together, with one flush to the disk.
 */
struct idem_queue;

/* Creates a queue for @store. The caller destroys *@ret_queue, before it closes the
 * store.
 *
 * IDEM_EINVALID  The store was opened in another process, before fork().
 * IDEM_ENOMEM
 */
int idem_queue_create(struct idem_store *store, struct idem_queue **ret_queue,
                      struct idem_error *ret_error);

/* Cancels ops that have not started, leaves those in flight to the store, and destroys
 * the queue and its ops. NULL is allowed. */
void idem_queue_destroy(struct idem_queue *queue);

/* Returns a descriptor that is readable while idem_queue_reap() has something to do,
 * for poll() and similar functions. It belongs to the queue: do not read from it or
 * close it.
 *
 * IDEM_EINVALID      The store of the queue was closed.
 * IDEM_EUNAVAILABLE  No descriptor is left.
 */
int idem_queue_fd(struct idem_queue *queue);

/* Submits @op, from any thread. On failure the op still belongs to the caller. The same
 * op may be submitted again after it came back with an error of kind RETRY: it keeps
 * its nonce, by which the store recognises its earlier success.
 *
 * IDEM_EUNAVAILABLE  queue_max ops are queued: reap some first. Or the clock or the
 *                    random source does not answer. A full queue never refuses an
 *                    end or a renewal.
 * IDEM_EINVALID      The op is in flight or gave its attempt away, its lease is too
 *                    short for the store, the store of the queue was closed, or the
 *                    handle crossed a fork().
 */
int idem_queue_submit(struct idem_queue *queue, struct idem_op *op,
                      struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Returns an op that was answered, which then belongs to the caller again. Returns NULL
 * after @timeout_ms without an answer (0: do not wait for others, although this call's
 * own work may take time; -1: no limit), or at once if no op is in flight. An op that
 * the store cannot start within its timeout_ms comes back with IDEM_EUNAVAILABLE. */
struct idem_op *idem_queue_reap(struct idem_queue *queue, int64_t timeout_ms);

/* Submits @n ops together, so that they share work: the store reads the outcomes that
 * are already on record in one go, as of one moment. Call it at the end of an iteration
 * of an event loop, on the thread that reaps. Afterwards reap until idem_queue_reap()
 * returns NULL: answers that arrive before that do not make the descriptor readable.
 *
 * Returns how many ops it refused. It moves them to the front of @ops, in any order;
 * they still belong to the caller. *@ret_error has the reason for one of them;
 * @ret_error may be NULL.
 *
 * IDEM_EUNAVAILABLE, IDEM_EINVALID: see idem_queue_submit()
 */
size_t idem_queue_submit_all(struct idem_queue *queue, struct idem_op **ops,
                             size_t n, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Returns how many submitted ops were not reaped yet. */
size_t idem_queue_len(struct idem_queue *queue);

/* The functions below create ops. They check and copy the arguments of the verb, and
 * contact no store. The caller destroys *@ret_op. An attempt may be destroyed before
 * the op that ends it comes back; idem_op_record() then has the record. wait_ms of a
 * request must be 0, because an op is answered at once: to wait for another's attempt,
 * make an op with join_fence and submit it again after a pause.
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

/* A pointer for the caller; the library does not use it. */
void idem_op_set_user(struct idem_op *op, void *user);
void *idem_op_user(const struct idem_op *op);

/* Returns the identity of the op's record, IDEM_ID_LEN bytes that belong to the op;
 * zeros for an op that is not about a single record. */
const uint8_t *idem_op_id(const struct idem_op *op);

/* Return the answer of a reaped op: 0 or an enum idem_code, and its sentence, which
 * belongs to the op. */
int idem_op_code(const struct idem_op *op);
const struct idem_error *idem_op_error(const struct idem_op *op);

/* Returns the verdict of a begin whose code is 0. */
enum idem_verdict idem_op_verdict(const struct idem_op *op);

/* Returns, for an import whose code is 0, whether the store added the record: false if
 * it kept the record that it had, or if the imported record is past its retention. */
bool idem_op_added(const struct idem_op *op);

/* Returns the record after the op; NULL if there is none. Valid until the op is
 * submitted again or destroyed, or its attempt is taken. */
const struct idem_record *idem_op_record(const struct idem_op *op);

/* Moves the attempt of a begin whose code is 0 out of @op, which can then only be
 * destroyed, even before the attempt. The caller destroys *@ret_attempt.
 *
 * IDEM_EINVALID  @op is not such a begin, or its attempt was already taken.
 */
int idem_op_take_attempt(struct idem_op *op, struct idem_attempt **ret_attempt);

/* Frees @op, which must belong to the caller. NULL is allowed. */
void idem_op_destroy(struct idem_op *op);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
