/* Runs a store: whoever drives and finds no leader becomes it, waits for
 * answers on behalf of all, and hands leadership on when its own answer is
 * there. Or a thread, or a foreign event loop. */
#include "aws/dynamodb/run.h"
#include "base/host.h"
#include "queue/queue.h"

#include <idem/queue.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define CLOSE_MS 1000

/* ---- The queue ---- */

int idem__drive_submit(struct idem_store *base, struct idem_op *op)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;
    struct idem_queue *queue = op->queue;
    bool led;

    (void)pthread_mutex_lock(&store->mutex);
    if (idem__run_is_full(store)) {
        (void)pthread_mutex_unlock(&store->mutex);
        return IDEM_EUNAVAILABLE;
    }
    idem_pending_append(&store->pending, op);
    led = store->led;
    if (store->threaded) {
        (void)pthread_cond_signal(&store->wake);
    }
    (void)pthread_mutex_unlock(&store->mutex);
    if (led) {
        idem__aws_wake(store->client);
    } else if (!store->threaded) {
        idem_queue_poke(queue);
    }
    return 0;
}

enum idem_cancel idem__drive_cancel(struct idem_store *base, struct idem_op *op)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;
    enum idem_cancel how;

    (void)pthread_mutex_lock(&store->mutex);
    how = idem_pending_cancel(&store->pending, op);
    (void)pthread_mutex_unlock(&store->mutex);
    return how;
}

/* ---- In a foreign event loop ---- */

/* Lets the descriptor become readable when it is time. */
static void set_timer(struct idem__dynamodb_store *store, int64_t due_ms)
{
    int64_t aws_ms = idem__aws_due_ms(store->client);
    struct itimerspec at = {.it_value = {0, 0}};

    if (store->timer < 0) {
        return;
    }
    due_ms = aws_ms < due_ms ? aws_ms : due_ms;
    if (due_ms != IDEM_NEVER) {
        due_ms = due_ms < 1 ? 1 : due_ms;
        at.it_value.tv_sec = (time_t)(due_ms / 1000);
        at.it_value.tv_nsec = (long)(due_ms % 1000) * 1000000;
    }
    (void)timerfd_settime(store->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static int make_watch(struct idem__dynamodb_store *store)
{
    struct epoll_event event = {.events = EPOLLIN};

    store->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    store->watch = epoll_create1(EPOLL_CLOEXEC);
    if (store->timer >= 0 && store->watch >= 0 &&
        epoll_ctl(store->watch, EPOLL_CTL_ADD, store->timer, &event) == 0 &&
        epoll_ctl(store->watch, EPOLL_CTL_ADD, idem__aws_fd(store->client),
                  &event) == 0) {
        return 0;
    }
    if (store->timer >= 0) {
        (void)close(store->timer);
    }
    if (store->watch >= 0) {
        (void)close(store->watch);
    }
    store->timer = -1;
    store->watch = -1;
    return IDEM_EUNAVAILABLE;
}

int idem__drive_fd(struct idem_store *base)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;
    int rc = 0;

    (void)pthread_mutex_lock(&store->mutex);
    if (store->watch < 0) {
        rc = make_watch(store);
    }
    (void)pthread_mutex_unlock(&store->mutex);
    return rc == 0 ? store->watch : rc;
}

/* ---- Leading ---- */

/* With the mutex held, which is let go meanwhile. Leads until @queue (NULL: none)
 * has an answer, or @deadline_ms. At least one round is done. */
static void lead(struct idem__dynamodb_store *store, struct idem_queue *queue,
                 int64_t deadline_ms)
{
    int64_t due_ms;

    store->led = true;
    (void)pthread_mutex_unlock(&store->mutex);
    for (;;) {
        bool idle;

        due_ms = idem__run_round(store);

        if ((queue != NULL && idem_queue_ready(queue)) ||
            idem__mono_ms() >= deadline_ms) {
            break;
        }
        (void)pthread_mutex_lock(&store->mutex);
        idle = store->running == NULL && store->pending.first == NULL;
        (void)pthread_mutex_unlock(&store->mutex);
        if (idle) {
            break;
        }
        idem__aws_wait(store->client,
                       due_ms < deadline_ms ? due_ms : deadline_ms);
    }
    (void)pthread_mutex_lock(&store->mutex);
    set_timer(store, due_ms);
    store->led = false;
}

/* @op's queue, if somebody waits there for it. */
static struct idem_queue *queue_of(const struct idem_op *op)
{
    return op->queue == NULL || __atomic_load_n(&op->state, __ATOMIC_ACQUIRE) ==
                                    IDEM_OP_DETACHED
               ? NULL
               : op->queue;
}

/* Wakes a caller that can lead; the descriptor of some queue becomes readable if
 * nobody sleeps. Called with the mutex held. */
static void call_next_leader(struct idem__dynamodb_store *store)
{
    struct idem_queue *first = NULL;
    struct idem_queue *queue;
    struct idem__task *task;
    struct idem_op *op;

    for (task = store->running; task != NULL; task = task->link) {
        queue = queue_of(task->op);
        first = first == NULL ? queue : first;
        if (queue != NULL && idem_queue_has_sleeper(queue)) {
            idem_queue_poke(queue);
            return;
        }
    }
    for (op = store->pending.first; op != NULL; op = op->next) {
        queue = queue_of(op);
        first = first == NULL ? queue : first;
        if (queue != NULL && idem_queue_has_sleeper(queue)) {
            idem_queue_poke(queue);
            return;
        }
    }
    if (first != NULL) {
        idem_queue_poke(first);
    }
}

void idem__drive(struct idem_store *base, struct idem_queue *queue,
                 int64_t deadline_ms)
{
    struct idem__dynamodb_store *store = (struct idem__dynamodb_store *)base;
    bool first = true;

    (void)pthread_mutex_lock(&store->mutex);
    while (!idem_queue_ready(queue)) {
        if (!first && idem__mono_ms() >= deadline_ms) {
            break;
        }
        first = false;
        if (!store->threaded && !store->led) {
            lead(store, queue, deadline_ms);
            continue;
        }
        (void)pthread_mutex_unlock(&store->mutex);
        idem_queue_sleep(queue, deadline_ms);
        (void)pthread_mutex_lock(&store->mutex);
    }
    if (!store->threaded && !store->led) {
        call_next_leader(store);
    }
    (void)pthread_mutex_unlock(&store->mutex);
}

/* ---- The thread, and the end ---- */

static void *lead_always(void *arg)
{
    struct idem__dynamodb_store *store = arg;

    (void)pthread_mutex_lock(&store->mutex);
    while (!store->stopping) {
        if (store->pending.first != NULL || store->running != NULL) {
            /* A moment at a time, so that it can be told to stop. */
            lead(store, NULL, idem__time_add(idem__mono_ms(), CLOSE_MS));
        } else {
            (void)pthread_cond_wait(&store->wake, &store->mutex);
        }
    }
    (void)pthread_mutex_unlock(&store->mutex);
    return NULL;
}

int idem__drive_start_thread(struct idem__dynamodb_store *store)
{
    sigset_t all;
    sigset_t old;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    store->threaded = true;
    rc = pthread_create(&store->thread, NULL, lead_always, store);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    store->threaded = rc == 0;
    return rc == 0 ? 0 : IDEM_ENOMEM;
}

static void stop_thread(struct idem__dynamodb_store *store)
{
    (void)pthread_mutex_lock(&store->mutex);
    store->stopping = true;
    (void)pthread_cond_signal(&store->wake);
    (void)pthread_mutex_unlock(&store->mutex);
    idem__aws_wake(store->client);
    (void)pthread_join(store->thread, NULL);
    store->threaded = false;
}

void idem__drive_stop(struct idem__dynamodb_store *store)
{
    if (store->threaded) {
        stop_thread(store);
    }
    (void)pthread_mutex_lock(&store->mutex);
    if (store->running != NULL || store->pending.first != NULL) {
        lead(store, NULL, idem__time_add(idem__mono_ms(), CLOSE_MS));
    }
    (void)pthread_mutex_unlock(&store->mutex);
    idem__run_drop(store);
}
