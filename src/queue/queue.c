/* Manages queues: which ops are in one, and how their answers come back to the thread
 * that reaps. */
#include "queue/queue.h"

#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/process.h"
#include "base/wait.h"
#include "core/error.h"

#include <assert.h>
#include <idem/queue.h>
#include <unistd.h>

int idem__queue_init(struct idem_queue *queue, struct idem_store *store)
{
    memset(queue, 0, sizeof(*queue));
    queue->store = store;
    queue->liveness = store->liveness;
    queue->fd = -1;
    queue->both = -1;
    return pthread_mutex_init(&queue->mutex, NULL) == 0 ? 0 : IDEM_ENOMEM;
}

void idem__queue_finish(struct idem_queue *queue)
{
    assert(queue->submitted == 0);
    if (queue->both >= 0) {
        (void)close(queue->both);
    }
    if (queue->fd >= 0) {
        (void)close(queue->fd);
    }
    (void)pthread_mutex_destroy(&queue->mutex);
}

int idem_queue_create(struct idem_store *store, struct idem_queue **ret_queue,
                      struct idem_error *ret_error)
{
    struct idem_queue *queue;
    int rc = idem__store_check(store, ret_error);

    if (rc != 0) {
        return rc;
    }
    queue = idem__alloc(sizeof(*queue));
    if (queue == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = idem__queue_init(queue, store);
    if (rc != 0) {
        idem__free(queue);
        return idem__error_plain(ret_error, rc);
    }
    /* The caller may close the store before this queue. Then the hold keeps the
     * liveness valid, and the queue learns of the close. */
    (void)idem__liveness_hold(queue->liveness);
    *ret_queue = queue;
    return 0;
}

static void enter(struct idem_queue *queue, struct idem_op *op)
{
    /* idem_queue_destroy() takes back the members, so every submitted op must be
     * one. */
    op->queue_prev = NULL;
    op->queue_next = queue->members;
    if (queue->members != NULL) {
        queue->members->queue_prev = op;
    }
    queue->members = op;
    queue->submitted++;
}

static void leave(struct idem_queue *queue, struct idem_op *op)
{
    if (op->queue_prev == NULL) {
        queue->members = op->queue_next;
    } else {
        op->queue_prev->queue_next = op->queue_next;
    }
    if (op->queue_next != NULL) {
        op->queue_next->queue_prev = op->queue_prev;
    }
    queue->submitted--;
}

void idem__queue_enter(struct idem_queue *queue, struct idem_op **ops, size_t n)
{
    size_t i;

    (void)pthread_mutex_lock(&queue->mutex);
    for (i = 0; i < n; i++) {
        enter(queue, ops[i]);
    }
    (void)pthread_mutex_unlock(&queue->mutex);
}

void idem__queue_leave(struct idem_queue *queue, struct idem_op *op)
{
    (void)pthread_mutex_lock(&queue->mutex);
    leave(queue, op);
    (void)pthread_mutex_unlock(&queue->mutex);
}

enum idem_cancel idem__queue_cancel(struct idem_queue *queue,
                                    struct idem_op *op)
{
    enum idem_cancel how;

    /* Take the op off the list first: once it is detached, its store may free it. */
    idem__queue_leave(queue, op);
    how = queue->store->ops->cancel(queue->store, op);
    /* An answered op must be a member again, because its answer is still to be reaped.
     * An op that was taken back is its caller's again, and keeps its nonce: the caller
     * may submit it once more. */
    if (how == IDEM_CANCEL_ANSWERED) {
        idem__queue_enter(queue, &op, 1);
    } else if (how == IDEM_CANCEL_TAKEN_BACK) {
        __atomic_store_n(&op->state, IDEM_OP_IDLE, __ATOMIC_RELEASE);
    }
    return how;
}

void idem__queue_abandon(struct idem_queue *queue, struct idem_op *op)
{
    switch (idem__queue_cancel(queue, op)) {
    case IDEM_CANCEL_TAKEN_BACK:
        idem_op_destroy(op);
        break;
    case IDEM_CANCEL_DETACHED:
        break;
    case IDEM_CANCEL_ANSWERED:
        /* The answer is in the queue, or the store is about to push it. */
        idem_op_destroy(idem_queue_reap(queue, -1));
        break;
    }
}

/* Destroys the ops of a queue whose store was closed: closing it has answered all of
 * them. */
static void destroy_answered(struct idem_queue *queue)
{
    struct idem_op *op;

    while ((op = idem_queue_reap(queue, 0)) != NULL) {
        idem_op_destroy(op);
    }
}

void idem_queue_destroy(struct idem_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    /* Takes each op back, or leaves it to the store, which frees it once it is done: a
     * write that has begun cannot be undone. */
    if (idem__liveness_check(queue->liveness, NULL) == 0) {
        while (queue->submitted > 0) {
            idem__queue_abandon(queue, queue->members);
        }
    } else if (idem__liveness_is_closed(queue->liveness)) {
        destroy_answered(queue);
    } else {
        queue->submitted = 0; /* After fork() they are the parent's ops. */
    }
    idem__queue_finish(queue);
    idem__liveness_drop(queue->liveness);
    idem__free(queue);
}

/* Makes the descriptor readable exactly while a reap has something to do. */
static void arm(struct idem_queue *queue)
{
    bool should = queue->answered != NULL || queue->poked;

    if (queue->fd < 0 || queue->held || queue->armed == should) {
        return;
    }
    if (should) {
        idem__event_set(queue->fd);
    } else {
        idem__event_clear(queue->fd);
    }
    queue->armed = should;
}

/* Opens a descriptor that is readable while @a or @b is. */
static int watch_both(int a, int b)
{
    int both = idem__watch_open();

    if (both >= 0 && (idem__watch_add(both, a, POLLIN) != 0 ||
                      idem__watch_add(both, b, POLLIN) != 0)) {
        (void)close(both);
        both = -1;
    }
    return both;
}

/* Opens the event of the queue. The caller holds the mutex. */
static void make_fd(struct idem_queue *queue)
{
    if (queue->fd < 0) {
        queue->fd = idem__event_open();
        queue->armed = false;
        arm(queue);
    }
}

int idem_queue_fd(struct idem_queue *queue)
{
    struct idem_store *store = queue->store;
    bool has_own;
    int own;
    int fd;

    if (idem__liveness_is_closed(queue->liveness)) {
        return IDEM_EINVALID;
    }
    has_own = store->ops->fd != NULL;
    /* Call this without the queue's mutex: a store holds its own lock while it pushes
     * answers, which takes the mutex. */
    own = has_own ? store->ops->fd(store) : -1;
    (void)pthread_mutex_lock(&queue->mutex);
    make_fd(queue);
    if (has_own && queue->both < 0 && queue->fd >= 0 && own >= 0) {
        queue->both = watch_both(queue->fd, own);
    }
    fd = has_own ? queue->both : queue->fd;
    (void)pthread_mutex_unlock(&queue->mutex);
    return fd >= 0 ? fd : IDEM_EUNAVAILABLE;
}

/* Wakes the sleepers after the unlock, so that they do not wake up only to wait for the
 * mutex. A queue on the stack of a call may be gone by then; waking its address does no
 * harm. */
static void wake_and_unlock(struct idem_queue *queue)
{
    bool wake = queue->sleepers > 0;

    arm(queue);
    if (wake) {
        __atomic_store_n(&queue->wake_word, queue->wake_word + 1,
                         __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&queue->mutex);
    if (wake) {
        idem__futex_wake(&queue->wake_word, IDEM__FUTEX_PROCESS);
    }
}

void idem__queue_push(struct idem_queue *queue, struct idem_op *first,
                      struct idem_op *last)
{
    (void)pthread_mutex_lock(&queue->mutex);
    last->next = NULL;
    if (queue->answered == NULL) {
        queue->answered = first;
    } else {
        queue->answered_last->next = first;
    }
    queue->answered_last = last;
    wake_and_unlock(queue);
}

static struct idem_op *pop(struct idem_queue *queue, size_t *ret_submitted)
{
    struct idem_op *op;

    (void)pthread_mutex_lock(&queue->mutex);
    op = queue->answered;
    if (op != NULL) {
        queue->answered = op->next;
        op->next = NULL;
        leave(queue, op);
        /* From here on the caller may submit the op once more, or destroy it. */
        __atomic_store_n(&op->state, IDEM_OP_IDLE, __ATOMIC_RELEASE);
    }
    if (op == NULL) {
        /* Clear the poke only here: a thread that finds no answer drives the store
         * next. If an answer cleared it, the thread would return with the answer, and
         * the store would have no leader. */
        queue->poked = false;
        queue->held = false;
    }
    *ret_submitted = queue->submitted;
    arm(queue);
    (void)pthread_mutex_unlock(&queue->mutex);
    return op;
}

bool idem__queue_ready(struct idem_queue *queue)
{
    bool ready;

    (void)pthread_mutex_lock(&queue->mutex);
    ready = queue->answered != NULL;
    (void)pthread_mutex_unlock(&queue->mutex);
    return ready;
}

bool idem__queue_has_sleeper(struct idem_queue *queue)
{
    bool has;

    (void)pthread_mutex_lock(&queue->mutex);
    has = queue->sleepers > 0;
    (void)pthread_mutex_unlock(&queue->mutex);
    return has;
}

void idem__queue_sleep(struct idem_queue *queue, int64_t deadline_ms)
{
    bool late = false;

    (void)pthread_mutex_lock(&queue->mutex);
    queue->sleepers++;
    while (!late && queue->answered == NULL && !queue->poked) {
        /* Read the word under the mutex: an answer that comes after the unlock changes
         * it, so the wait ends at once and no wake-up is lost. */
        uint32_t seen = queue->wake_word;

        (void)pthread_mutex_unlock(&queue->mutex);
        late =
            !idem__futex_wait(&queue->wake_word, seen,
                              idem__time_ns(deadline_ms), IDEM__FUTEX_PROCESS);
        (void)pthread_mutex_lock(&queue->mutex);
    }
    queue->sleepers--;
    /* The poke has done its work: this thread leads next, or calls another thread to do
     * so (idem__leader_drive()). */
    queue->poked = false;
    arm(queue);
    (void)pthread_mutex_unlock(&queue->mutex);
}

void idem__queue_poke(struct idem_queue *queue)
{
    (void)pthread_mutex_lock(&queue->mutex);
    queue->poked = true;
    wake_and_unlock(queue);
}

size_t idem_queue_len(struct idem_queue *queue)
{
    size_t len;

    (void)pthread_mutex_lock(&queue->mutex);
    len = queue->submitted;
    (void)pthread_mutex_unlock(&queue->mutex);
    return len;
}

void idem__queue_observe(const struct idem_store *store,
                         const struct idem_op *op)
{
    const struct idem_open_options *options = &store->options;

    if (options->observe != NULL) {
        options->observe(options->observe_ctx, op,
                         (idem__mono_ns() - op->submitted_ns) / 1000);
    }
}

/* Reaps after the store was closed: answers that came before still belong to the
 * caller. The child of a fork() reaps nothing, because the ops are its parent's. */
static struct idem_op *reap_closed(struct idem_queue *queue)
{
    size_t submitted;

    return idem__liveness_is_closed(queue->liveness) ? pop(queue, &submitted)
                                                     : NULL;
}

struct idem_op *idem_queue_reap(struct idem_queue *queue, int64_t timeout_ms)
{
    struct idem_store *store = queue->store;
    int64_t deadline_ms = 0;
    bool first = true;

    if (idem__liveness_check(queue->liveness, NULL) != 0) {
        return reap_closed(queue);
    }
    for (;;) {
        size_t submitted;
        struct idem_op *op = pop(queue, &submitted);

        if (op != NULL) {
            idem__queue_observe(store, op);
        }
        /* Drive the store once at least, even without a timeout: if no thread leads,
         * only this call does the work. */
        if (op != NULL || submitted == 0 ||
            (!first && idem__mono_ms() >= deadline_ms)) {
            IDEM__CRASH_POINT("queue/reaped");
            return op;
        }
        /* Read the clock only now: most reaps find an answer at once. */
        if (first) {
            deadline_ms = timeout_ms < 0
                              ? IDEM_NEVER
                              : idem__time_add(idem__mono_ms(), timeout_ms);
        }
        store->ops->drive(store, queue, deadline_ms);
        first = false;
    }
}
