/* Queues: answers come back on the thread that reaps them. */
#include "queue/queue.h"

#include "base/crash.h"
#include "base/futex.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/process.h"
#include "core/error.h"
#include "queue/op.h"

#include <assert.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    NONCES = 32
};

int idem__queue_init(struct idem_queue *queue, struct idem_store *store)
{
    memset(queue, 0, sizeof(*queue));
    queue->store = store;
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
    *ret_queue = queue;
    return 0;
}

static void enter(struct idem_queue *queue, struct idem_op *op)
{
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

enum idem_cancel idem__queue_cancel(struct idem_queue *queue,
                                    struct idem_op *op)
{
    enum idem_cancel how;

    /* A detached op may be freed at once: it leaves the list before. */
    (void)pthread_mutex_lock(&queue->mutex);
    leave(queue, op);
    (void)pthread_mutex_unlock(&queue->mutex);
    how = queue->store->ops->cancel(queue->store, op);
    if (how == IDEM_CANCEL_ANSWERED) {
        (void)pthread_mutex_lock(&queue->mutex);
        enter(queue, op);
        (void)pthread_mutex_unlock(&queue->mutex);
    } else if (how == IDEM_CANCEL_TAKEN_BACK) {
        __atomic_store_n(&op->state, IDEM_OP_IDLE, __ATOMIC_RELEASE);
    }
    return how;
}

/* Takes back what is pending, lets go of what is running, frees what is
 * answered. Nobody submits or reaps any more. */
static void abandon(struct idem_queue *queue)
{
    while (queue->submitted > 0) {
        struct idem_op *op = queue->members;

        switch (idem__queue_cancel(queue, op)) {
        case IDEM_CANCEL_TAKEN_BACK:
            idem_op_destroy(op);
            break;
        case IDEM_CANCEL_DETACHED:
            break;
        case IDEM_CANCEL_ANSWERED:
            /* It is in the queue, or will be in a moment. */
            idem_op_destroy(idem_queue_reap(queue, -1));
            break;
        }
    }
}

void idem_queue_destroy(struct idem_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    if (queue->store->pid == idem__process()) {
        abandon(queue);
    } else {
        queue->submitted = 0; /* The parent's; see idem_close(). */
    }
    idem__queue_finish(queue);
    idem__free(queue);
}

/* Makes the descriptor readable exactly while there is something to do. */
static void arm(struct idem_queue *queue)
{
    bool should = queue->answered != NULL || queue->poked;
    uint64_t value = 1;
    ssize_t n = 0;

    if (queue->fd < 0 || queue->held || queue->armed == should) {
        return;
    }
    if (should) {
        n = write(queue->fd, &value, sizeof(value));
    } else {
        n = read(queue->fd, &value, sizeof(value));
    }
    (void)n; /* A counter of 0 or 1 neither blocks nor overflows. */
    queue->armed = should;
}

/* A descriptor that is readable when either of the two is. */
static int watch_both(int a, int b)
{
    struct epoll_event event = {.events = EPOLLIN};
    int both = epoll_create1(EPOLL_CLOEXEC);

    if (both >= 0 && (epoll_ctl(both, EPOLL_CTL_ADD, a, &event) != 0 ||
                      epoll_ctl(both, EPOLL_CTL_ADD, b, &event) != 0)) {
        (void)close(both);
        both = -1;
    }
    return both;
}

/* With the mutex held. */
static int make_fd(struct idem_queue *queue)
{
    struct idem_store *store = queue->store;

    if (queue->fd < 0) {
        queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        queue->armed = false;
        arm(queue);
    }
    if (queue->fd < 0 || store->ops->fd == NULL) {
        return queue->fd;
    }
    if (queue->both < 0) {
        int fd = store->ops->fd(store);

        queue->both = fd < 0 ? -1 : watch_both(queue->fd, fd);
    }
    return queue->both;
}

int idem_queue_fd(struct idem_queue *queue)
{
    int fd;

    (void)pthread_mutex_lock(&queue->mutex);
    fd = make_fd(queue);
    (void)pthread_mutex_unlock(&queue->mutex);
    return fd >= 0 ? fd : IDEM_EUNAVAILABLE;
}

/* The call to the kernel comes after the unlock, so that a sleeper never wakes up
 * only to wait for the mutex. A queue for one call may be gone by then. */
static void wake_and_unlock(struct idem_queue *queue)
{
    bool wake = queue->sleepers > 0;

    arm(queue);
    if (wake) {
        __atomic_store_n(&queue->bell, queue->bell + 1, __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&queue->mutex);
    if (wake) {
        idem__futex_wake(&queue->bell, IDEM__FUTEX_PROCESS);
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
        __atomic_store_n(&op->state, IDEM_OP_IDLE, __ATOMIC_RELEASE);
    }
    if (op == NULL) {
        queue->poked = false; /* Whoever reaps is about to drive. */
        queue->held = false;
    }
    *ret_submitted = queue->submitted;
    arm(queue);
    (void)pthread_mutex_unlock(&queue->mutex);
    return op;
}

bool idem_queue_ready(struct idem_queue *queue)
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

void idem_queue_sleep(struct idem_queue *queue, int64_t deadline_ms)
{
    bool late = false;

    (void)pthread_mutex_lock(&queue->mutex);
    queue->sleepers++;
    while (!late && queue->answered == NULL && !queue->poked) {
        uint32_t seen = queue->bell;

        (void)pthread_mutex_unlock(&queue->mutex);
        late = !idem__futex_wait(&queue->bell, seen, idem__time_ns(deadline_ms),
                                 IDEM__FUTEX_PROCESS);
        (void)pthread_mutex_lock(&queue->mutex);
    }
    queue->sleepers--;
    queue->poked = false;
    arm(queue);
    (void)pthread_mutex_unlock(&queue->mutex);
}

void idem_queue_poke(struct idem_queue *queue)
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

/* A nonce of its own, which is kept when the op is submitted again. */
static int give_nonce(const struct idem_store *store, struct idem_op *op)
{
    const struct idem_host *host = &store->options.host;

    if (!op->has_nonce &&
        host->random(host->ctx, op->nonce, sizeof(op->nonce)) != 0) {
        return idem_op_fail(op, IDEM_EUNAVAILABLE,
                            "the random source does not answer");
    }
    op->has_nonce = true;
    return 0;
}

/* Only what may write needs a nonce, and random numbers are dear. But a caller
 * with a source of its own may give that of an earlier claim, which a look must
 * recognise: the keeper of idem run does. */
static bool may_come_later(const struct idem_store *store)
{
    return store->ops->peek != NULL &&
           idem__host_has_our_random(&store->options.host);
}

/* What every op gets before the store sees it: the moment from which a lease
 * counts, which is kept when the op is submitted again, and a deadline. */
static int prepare(struct idem_queue *queue, struct idem_op *op)
{
    const struct idem_open_options *options = &queue->store->options;
    struct idem_clock_reading reading;

    if (options->observe != NULL) {
        op->submitted_ns = idem__mono_ns();
    }
    memset(&op->error, 0, sizeof(op->error));
    op->has_record = false;
    op->verdict = (enum idem_verdict)0;
    op->takeover = false;
    op->lease_left_ms = 0;
    if (!op->has_nonce && may_come_later(queue->store)) {
        memset(op->nonce, 0, sizeof(op->nonce));
    } else if (give_nonce(queue->store, op) != 0) {
        return op->error.code;
    }
    if (op->asked_boot_ms == 0 || op->verb == IDEM_OP_RENEW) {
        if (options->host.clock(options->host.ctx, &reading) != 0) {
            return idem_op_fail(op, IDEM_EUNAVAILABLE,
                                "the clock does not answer");
        }
        op->asked_boot_ms = reading.boot_ms;
    }
    op->deadline_ms = idem__time_add(idem__mono_ms(), options->timeout_ms);
    op->store = queue->store;
    op->queue = queue;
    return 0;
}

/* May @op be submitted? What is under way is not touched. */
static int check_op(const struct idem_op *op, struct idem_error *error)
{
    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != IDEM_OP_IDLE) {
        return idem__error(error, IDEM_EINVALID, "the op is under way");
    }
    if (op->key.len == 0 && op->verb != IDEM_OP_LIST &&
        op->verb != IDEM_OP_PURGE && op->verb != IDEM_OP_COUNT &&
        op->verb != IDEM_OP_LIMIT) {
        return idem__error(error, IDEM_EINVALID,
                           "the op gave its attempt away: make a new one");
    }
    return 0;
}

/* It counts from here on, and is pending. */
static int admit(struct idem_queue *queue, struct idem_op *op,
                 struct idem_error *error)
{
    int rc = check_op(op, error);

    if (rc != 0) {
        return rc;
    }
    rc = prepare(queue, op);
    if (rc != 0) {
        idem__queue_observe(queue->store, op);
        *error = op->error;
        return rc;
    }
    (void)pthread_mutex_lock(&queue->mutex);
    enter(queue, op);
    (void)pthread_mutex_unlock(&queue->mutex);
    __atomic_store_n(&op->state, IDEM_OP_PENDING, __ATOMIC_RELEASE);
    return 0;
}

/* To ask the system for many takes hardly longer than for one. Where it fails,
 * each op asks for itself. @n is at most NONCES. */
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

/* @op was admitted, and is its caller's again. */
static void give_back(struct idem_queue *queue, struct idem_op *op,
                      struct idem_error *error)
{
    (void)pthread_mutex_lock(&queue->mutex);
    leave(queue, op);
    (void)pthread_mutex_unlock(&queue->mutex);
    __atomic_store_n(&op->state, IDEM_OP_IDLE, __ATOMIC_RELEASE);
    idem__queue_observe(queue->store, op);
    *error = op->error;
}

/* What the store took may be gone when this returns. */
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

/* Puts @op, which is at @i, behind the @refused before it. */
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
    size_t refused = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (admit(queue, ops[i], error) != 0) {
            refused = refuse(ops, i, refused);
        }
    }
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

/* The store has them, or they are the caller's again. */
static size_t hand_over(struct idem_queue *queue, struct idem_op **ops,
                        size_t n, struct idem_error *error)
{
    size_t i = n > 0 ? submit_to_store(queue->store, ops, n) : 0;
    size_t refused = 0;

    IDEM__CRASH_POINT("queue/submitted");
    for (; i < n; i++) {
        (void)idem_op_fail(ops[i], IDEM_EUNAVAILABLE,
                           "too many operations are queued");
        give_back(queue, ops[i], error);
        refused = refuse(ops, i, refused);
    }
    return refused;
}

/* Those that are refused move to the front; @error is of the last. */
static size_t submit_all(struct idem_queue *queue, struct idem_op **ops,
                         size_t n, struct idem_error *error)
{
    struct idem_store *store = queue->store;
    size_t refused = admit_all(queue, ops, n, error);
    size_t left = n - refused;

    if (store->ops->peek != NULL && left > 0) {
        store->ops->peek(store, ops + refused, &left);
    }
    n = refused + left;
    refused += give_all_nonces(queue, ops + refused, n - refused, error);
    refused += hand_over(queue, ops + refused, n - refused, error);
    return refused;
}

int idem_queue_submit(struct idem_queue *queue, struct idem_op *op,
                      struct idem_error *ret_error)
{
    struct idem_error error;
    int rc = idem__store_check(queue->store, ret_error);

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

    if (idem__store_check(queue->store, ret_error) != 0) {
        return n;
    }
    (void)pthread_mutex_lock(&queue->mutex);
    queue->held = true;
    (void)pthread_mutex_unlock(&queue->mutex);
    refused = submit_all(queue, ops, n, &error);
    if (refused > 0 && ret_error != NULL) {
        *ret_error = error;
    }
    return refused;
}

struct idem_op *idem_queue_reap(struct idem_queue *queue, int64_t timeout_ms)
{
    struct idem_store *store = queue->store;
    int64_t deadline_ms = timeout_ms < 0
                              ? IDEM_NEVER
                              : idem__time_add(idem__mono_ms(), timeout_ms);
    bool first = true;

    if (store->pid != idem__process()) {
        return NULL;
    }
    for (;;) {
        size_t submitted;
        struct idem_op *op = pop(queue, &submitted);

        if (op != NULL) {
            idem__queue_observe(store, op);
        }
        if (op != NULL || submitted == 0 ||
            (!first && idem__mono_ms() >= deadline_ms)) {
            IDEM__CRASH_POINT("queue/reaped");
            return op;
        }
        store->ops->drive(store, queue, deadline_ms);
        first = false;
    }
}
