/* Submits ops: the checks, the deadline and the nonce that each op gets before its
 * store. */
#include "base/crash.h"
#include "base/host.h"
#include "base/list.h"
#include "contract/parts.h"
#include "core/error.h"
#include "queue/queue.h"

#include <idem/queue.h>

enum {
    NONCES = 32
};

/* Gives @op a nonce of its own, which it keeps when it is submitted again: a second
 * copy then finds its own nonce in the record, and knows that the first copy was
 * applied. */
static int give_nonce(const struct idem_store *store, struct idem_op *op)
{
    const struct idem_host *host = &store->options.host;

    if (!op->has_nonce &&
        host->random(host->ctx, op->nonce, sizeof(op->nonce)) != 0) {
        return idem__op_fail(op, IDEM_EUNAVAILABLE, "cannot read random bytes");
    }
    op->has_nonce = true;
    return 0;
}

/* True if the nonce may wait until the reader has looked: random numbers cost time, and
 * only an op that may write needs one. But a host with its own source of random bytes
 * may supply the nonce of an earlier claim, which the reader must recognise; the
 * supervisor of idem run does that. */
static bool may_come_later(const struct idem_store *store)
{
    return store->ops->peek != NULL &&
           idem__host_has_our_random(&store->options.host);
}

/* The clocks, read once for all ops that are submitted together. */
struct moment {
    int64_t mono_ms;
    int64_t boot_ms; /* 0 until an op needs it. */
};

static int read_boot_ms(const struct idem_host *host, struct moment *moment)
{
    struct idem_clock_reading reading;

    if (moment->boot_ms == 0) {
        if (host->clock(host->ctx, &reading) != 0) {
            return IDEM_EUNAVAILABLE;
        }
        moment->boot_ms = reading.boot_ms;
    }
    return 0;
}

/* Sets the deadline of the op and the moment from which its lease counts, before the
 * store sees it. An op that is submitted again keeps that moment: an earlier copy may
 * have made the claim, and if the owner counted from a later try, it would believe in a
 * lease that is over in the store. A renewal counts anew each time. */
static int prepare(struct idem_queue *queue, struct idem_op *op,
                   struct moment *moment)
{
    const struct idem_open_options *options = &queue->store->options;

    if (options->observe != NULL) {
        op->submitted_ns = idem__mono_ns();
    }
    /* The op may come from an earlier try, whose answer must not show in this one. */
    memset(&op->error, 0, sizeof(op->error));
    op->has_record = false;
    op->verdict = (enum idem_verdict)0;
    op->takeover = false;
    op->lease_left_ms = 0;
    /* No record has a nonce of zeros (see check_record() in api/ops.c), so the reader
     * cannot take a record for a claim of this op. */
    if (!op->has_nonce && may_come_later(queue->store)) {
        memset(op->nonce, 0, sizeof(op->nonce));
    } else if (give_nonce(queue->store, op) != 0) {
        return op->error.code;
    }
    if (op->asked_boot_ms == 0 || op->verb == IDEM_OP_RENEW) {
        if (read_boot_ms(&options->host, moment) != 0) {
            return idem__op_fail(op, IDEM_EUNAVAILABLE,
                                 "cannot read the clock");
        }
        op->asked_boot_ms = moment->boot_ms;
    }
    /* Each try gets the whole timeout; src/api/call.c, which asks again, bounds all
     * tries together. */
    op->deadline_ms = idem__time_add(moment->mono_ms, options->timeout_ms);
    op->store = queue->store;
    op->queue = queue;
    return 0;
}

/* Refuses a lease that is too short: the owner stops some time before its end, and the
 * rest must be enough to do some work and to renew the lease. */
static int check_lease(const struct idem_store *store, const struct idem_op *op,
                       struct idem_error *error)
{
    /* A claim that ends in the same write has no work under its lease, which may be
     * short. */
    if (op->verb != IDEM_OP_BEGIN || op->commit != NULL ||
        op->u.begin.lease_ms >= store->lease_min_ms) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "lease: %lld ms is too short for a store of kind %s, "
                       "whose owners stop %lld ms before its end; the shortest "
                       "is %lld ms",
                       (long long)op->u.begin.lease_ms, store->ops->name,
                       (long long)store->margin_ms,
                       (long long)store->lease_min_ms);
}

/* Returns 0 if @op may be submitted. It does not touch an op in flight, which the store
 * may be writing. */
static int check_op(const struct idem_store *store, const struct idem_op *op,
                    struct idem_error *error)
{
    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != IDEM_OP_IDLE) {
        return idem__error(error, IDEM_EINVALID, "the op is in flight");
    }
    if (op->key.len == 0 && op->verb != IDEM_OP_LIST &&
        op->verb != IDEM_OP_PURGE && op->verb != IDEM_OP_COUNT &&
        op->verb != IDEM_OP_LIMIT && op->verb != IDEM_OP_MOVE) {
        return idem__error(error, IDEM_EINVALID,
                           "the op gave its attempt away: make a new one");
    }
    return check_lease(store, op, error);
}

/* Checks and prepares @op, which is pending from then on. */
static int admit(struct idem_queue *queue, struct idem_op *op,
                 struct moment *moment, struct idem_error *error)
{
    int rc = check_op(queue->store, op, error);

    if (rc != 0) {
        return rc;
    }
    rc = prepare(queue, op, moment);
    if (rc != 0) {
        idem__queue_observe(queue->store, op);
        *error = op->error;
        return rc;
    }
    /* From here on check_op() refuses a second submission. */
    __atomic_store_n(&op->state, IDEM_OP_PENDING, __ATOMIC_RELEASE);
    return 0;
}

/* Reads many nonces from the system at once, which takes hardly longer than one. If
 * that fails, each op tries by itself later. @n is at most NONCES. */
static void give_nonces(const struct idem_store *store, struct idem_op **ops,
                        size_t n)
{
    const struct idem_host *host = &store->options.host;
    struct idem_op *without[NONCES];
    uint8_t nonces[NONCES][sizeof(ops[0]->nonce)];
    size_t found = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (!ops[i]->has_nonce) {
            without[found++] = ops[i];
        }
    }
    if (found < 2 || !may_come_later(store) ||
        host->random(host->ctx, nonces, found * sizeof(nonces[0])) != 0) {
        return;
    }
    for (i = 0; i < found; i++) {
        memcpy(without[i]->nonce, nonces[i], sizeof(nonces[i]));
        without[i]->has_nonce = true;
    }
}

/* Returns @op, which was admitted, to its caller. */
static void give_back(struct idem_queue *queue, struct idem_op *op,
                      struct idem_error *error)
{
    idem__queue_leave(queue, op);
    __atomic_store_n(&op->state, IDEM_OP_IDLE, __ATOMIC_RELEASE);
    idem__queue_observe(queue->store, op);
    *error = op->error;
}

/* Returns how many ops the store took. These may be gone when this returns. */
static size_t submit_to_store(struct idem_store *store, struct idem_op **ops,
                              size_t n)
{
    size_t taken = 0;

    if (store->ops->submit_all != NULL) {
        return store->ops->submit_all(store, ops, n);
    }
    while (taken < n && store->ops->submit(store, ops[taken]) == 0) {
        taken++;
    }
    return taken;
}

/* Moves the op at @i to the end of the @refused ops at the front. */
static size_t refuse(struct idem_op **ops, size_t i, size_t refused)
{
    struct idem_op *op = ops[i];

    ops[i] = ops[refused];
    ops[refused] = op;
    return refused + 1;
}

static size_t admit_all(struct idem_queue *queue, struct idem_op **ops,
                        size_t n, struct idem_error *error)
{
    struct moment moment = {.mono_ms = idem__mono_ms()};
    size_t refused = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (admit(queue, ops[i], &moment, error) != 0) {
            refused = refuse(ops, i, refused);
        }
    }
    /* The ops enter the queue before the store gets them, because the store may answer
     * at once. */
    idem__queue_enter(queue, ops + refused, n - refused);
    return refused;
}

static size_t give_all_nonces(struct idem_queue *queue, struct idem_op **ops,
                              size_t n, struct idem_error *error)
{
    size_t refused = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (i % NONCES == 0) {
            give_nonces(queue->store, ops + i, n - i < NONCES ? n - i : NONCES);
        }
        if (give_nonce(queue->store, ops[i]) != 0) {
            give_back(queue, ops[i], error);
            refused = refuse(ops, i, refused);
        }
    }
    return refused;
}

/* Hands the ops to the store. Afterwards each op belongs to the store, or is refused
 * and belongs to its caller again. */
static size_t hand_over(struct idem_queue *queue, struct idem_op **ops,
                        size_t n, struct idem_error *error)
{
    size_t refused = 0;
    size_t i = 0;

    while (i < n) {
        i += submit_to_store(queue->store, ops + i, n - i);
        /* The queue is full for claims, but not for ends and renewals: go on. */
        if (i < n) {
            (void)idem__op_fail(ops[i], IDEM_EUNAVAILABLE,
                                "too many operations are queued (queue_max is "
                                "%zu): reap answers before you submit more, or "
                                "raise queue_max",
                                queue->store->options.queue_max);
            give_back(queue, ops[i], error);
            refused = refuse(ops, i, refused);
            i++;
        }
    }
    IDEM__CRASH_POINT("queue/submitted");
    return refused;
}

/* Moves the refused ops to the front; @error is the error of the last one. The reader
 * comes before the nonces: it answers most duplicates, which then cost neither random
 * bytes nor the lock of the store. */
static size_t submit_all(struct idem_queue *queue, struct idem_op **ops,
                         size_t n, struct idem_error *error)
{
    struct idem_store *store = queue->store;
    size_t refused = admit_all(queue, ops, n, error);
    size_t left = n - refused;

    if (store->ops->peek != NULL && left > 0) {
        store->ops->peek(store, ops + refused, &left);
    }
    /* The answered ops are gone, and the others have moved up in their order. */
    n = refused + left;
    refused += give_all_nonces(queue, ops + refused, n - refused, error);
    refused += hand_over(queue, ops + refused, n - refused, error);
    return refused;
}

int idem_queue_submit(struct idem_queue *queue, struct idem_op *op,
                      struct idem_error *ret_error)
{
    struct idem_error error;
    int rc = idem__liveness_check(queue->liveness, ret_error);

    if (rc != 0) {
        return rc;
    }
    if (submit_all(queue, &op, 1, &error) == 0) {
        return 0;
    }
    if (ret_error != NULL) {
        *ret_error = error;
    }
    return error.code;
}

size_t idem_queue_submit_all(struct idem_queue *queue, struct idem_op **ops,
                             size_t n, struct idem_error *ret_error)
{
    struct idem_error error;
    size_t refused;

    if (idem__liveness_check(queue->liveness, ret_error) != 0) {
        return n;
    }
    (void)pthread_mutex_lock(&queue->mutex);
    /* The caller reaps until nothing is left, so the answers that the reader gives at
     * once need not wake it: that saves two system calls. */
    queue->held = true;
    (void)pthread_mutex_unlock(&queue->mutex);
    refused = submit_all(queue, ops, n, &error);
    if (refused > 0 && ret_error != NULL) {
        *ret_error = error;
    }
    return refused;
}

/* ---- Ops that their store has not begun ---- */

void idem__pending_append(struct idem_pending *pending, struct idem_op *op)
{
    IDEM__LIST_APPEND(pending, op);
    pending->len++;
}

static void take_off(struct idem_pending *pending, struct idem_op *op)
{
    IDEM__LIST_REMOVE(pending, op);
    pending->len--;
}

void idem__pending_run(struct idem_pending *pending, struct idem_op *op)
{
    take_off(pending, op);
    /* The release of an unwanted claim has no queue. It stays detached, so
     * idem__op_answer() frees it. */
    if (op->queue != NULL) {
        idem__op_run(op);
    }
}

enum idem_cancel idem__pending_cancel(struct idem_pending *pending,
                                      struct idem_op *op)
{
    /* The store marks an op as running only under the lock that this caller holds, so a
     * pending op stays pending here. */
    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != IDEM_OP_PENDING) {
        return idem__op_detach(op);
    }
    take_off(pending, op);
    return IDEM_CANCEL_TAKEN_BACK;
}

void idem__pending_drop(struct idem_pending *pending)
{
    while (pending->first != NULL) {
        struct idem_op *op = pending->first;

        take_off(pending, op);
        if (op->queue != NULL) { /* The program should have destroyed it
                                    first. */
            (void)idem__op_fail(op, IDEM_EUNAVAILABLE,
                                "the store was closed; nothing was done");
            idem__op_answer(op);
        } else {
            idem_op_destroy(op);
        }
    }
}
