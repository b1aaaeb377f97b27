/* Runs a store: whoever drives and finds no leader becomes it, waits for
 * answers on behalf of all, and hands leadership on when its own answer is
 * there. Or a thread, or a foreign event loop. */
#include "base/host.h"
#include "base/thread.h"
#include "store/remote/run.h"

#include <idem/queue.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define CLOSE_MS 1000

/* ---- The queue ---- */

int idem__remote_submit(struct idem_store *base, struct idem_op *op)
{
    struct idem__remote *remote = (struct idem__remote *)base;
    struct idem_queue *queue = op->queue;
    bool led;

    (void)pthread_mutex_lock(&remote->mutex);
    if (idem__run_is_full(remote)) {
        (void)pthread_mutex_unlock(&remote->mutex);
        return IDEM_EUNAVAILABLE;
    }
    idem_pending_append(&remote->pending, op);
    led = remote->led;
    if (remote->threaded) {
        (void)pthread_cond_signal(&remote->wake);
    }
    (void)pthread_mutex_unlock(&remote->mutex);
    if (led) {
        remote->ops->wake(remote);
    } else if (!remote->threaded) {
        idem_queue_poke(queue);
    }
    return 0;
}

enum idem_cancel idem__remote_cancel(struct idem_store *base,
                                     struct idem_op *op)
{
    struct idem__remote *remote = (struct idem__remote *)base;
    enum idem_cancel how;

    (void)pthread_mutex_lock(&remote->mutex);
    how = idem_pending_cancel(&remote->pending, op);
    (void)pthread_mutex_unlock(&remote->mutex);
    return how;
}

/* ---- In a foreign event loop ---- */

/* Lets the descriptor become readable when it is time. */
static void set_timer(struct idem__remote *remote, int64_t due_ms)
{
    int64_t work_ms = remote->ops->due_ms(remote);
    struct itimerspec at = {.it_value = {0, 0}};

    if (remote->timer < 0) {
        return;
    }
    due_ms = work_ms < due_ms ? work_ms : due_ms;
    if (due_ms != IDEM_NEVER) {
        due_ms = due_ms < 1 ? 1 : due_ms;
        at.it_value.tv_sec = (time_t)(due_ms / 1000);
        at.it_value.tv_nsec = (long)(due_ms % 1000) * 1000000;
    }
    (void)timerfd_settime(remote->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static int make_watch(struct idem__remote *remote)
{
    struct epoll_event event = {.events = EPOLLIN};

    remote->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    remote->watch = epoll_create1(EPOLL_CLOEXEC);
    if (remote->timer >= 0 && remote->watch >= 0 &&
        epoll_ctl(remote->watch, EPOLL_CTL_ADD, remote->timer, &event) == 0 &&
        epoll_ctl(remote->watch, EPOLL_CTL_ADD, remote->ops->fd(remote),
                  &event) == 0) {
        return 0;
    }
    if (remote->timer >= 0) {
        (void)close(remote->timer);
    }
    if (remote->watch >= 0) {
        (void)close(remote->watch);
    }
    remote->timer = -1;
    remote->watch = -1;
    return IDEM_EUNAVAILABLE;
}

int idem__remote_fd(struct idem_store *base)
{
    struct idem__remote *remote = (struct idem__remote *)base;
    int rc = 0;

    (void)pthread_mutex_lock(&remote->mutex);
    if (remote->watch < 0) {
        rc = make_watch(remote);
    }
    (void)pthread_mutex_unlock(&remote->mutex);
    return rc == 0 ? remote->watch : rc;
}

/* ---- Leading ---- */

/* With the mutex held, which is let go meanwhile. Leads until @queue (NULL: none)
 * has an answer, or @deadline_ms. At least one round is done. */
static void lead(struct idem__remote *remote, struct idem_queue *queue,
                 int64_t deadline_ms)
{
    int64_t due_ms;

    remote->led = true;
    (void)pthread_mutex_unlock(&remote->mutex);
    for (;;) {
        bool idle;

        due_ms = idem__run_round(remote);

        if ((queue != NULL && idem_queue_ready(queue)) ||
            idem__mono_ms() >= deadline_ms) {
            break;
        }
        (void)pthread_mutex_lock(&remote->mutex);
        idle = remote->running == NULL && remote->pending.first == NULL;
        (void)pthread_mutex_unlock(&remote->mutex);
        if (idle) {
            break;
        }
        remote->ops->wait(remote, due_ms < deadline_ms ? due_ms : deadline_ms);
    }
    (void)pthread_mutex_lock(&remote->mutex);
    set_timer(remote, due_ms);
    remote->led = false;
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
static void call_next_leader(struct idem__remote *remote)
{
    struct idem_queue *first = NULL;
    struct idem_queue *queue;
    struct idem__flight *flight;
    struct idem_op *op;

    for (flight = remote->running; flight != NULL; flight = flight->link) {
        queue = queue_of(flight->op);
        first = first == NULL ? queue : first;
        if (queue != NULL && idem_queue_has_sleeper(queue)) {
            idem_queue_poke(queue);
            return;
        }
    }
    for (op = remote->pending.first; op != NULL; op = op->next) {
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

void idem__remote_drive(struct idem_store *base, struct idem_queue *queue,
                        int64_t deadline_ms)
{
    struct idem__remote *remote = (struct idem__remote *)base;
    bool first = true;

    (void)pthread_mutex_lock(&remote->mutex);
    while (!idem_queue_ready(queue)) {
        if (!first && idem__mono_ms() >= deadline_ms) {
            break;
        }
        first = false;
        if (!remote->threaded && !remote->led) {
            lead(remote, queue, deadline_ms);
            continue;
        }
        (void)pthread_mutex_unlock(&remote->mutex);
        idem_queue_sleep(queue, deadline_ms);
        (void)pthread_mutex_lock(&remote->mutex);
    }
    if (!remote->threaded && !remote->led) {
        call_next_leader(remote);
    }
    (void)pthread_mutex_unlock(&remote->mutex);
}

/* ---- The thread, and the end ---- */

static void *lead_always(void *arg)
{
    struct idem__remote *remote = arg;

    (void)pthread_mutex_lock(&remote->mutex);
    while (!remote->stopping) {
        if (remote->pending.first != NULL || remote->running != NULL) {
            /* A moment at a time, so that it can be told to stop. */
            lead(remote, NULL, idem__time_add(idem__mono_ms(), CLOSE_MS));
        } else {
            (void)pthread_cond_wait(&remote->wake, &remote->mutex);
        }
    }
    (void)pthread_mutex_unlock(&remote->mutex);
    return NULL;
}

int idem__remote_start_thread(struct idem__remote *remote)
{
    remote->threaded = true; /* Before the thread may look. */
    remote->threaded =
        idem__thread_start(&remote->thread, lead_always, remote) == 0;
    return remote->threaded ? 0 : IDEM_ENOMEM;
}

static void stop_thread(struct idem__remote *remote)
{
    (void)pthread_mutex_lock(&remote->mutex);
    remote->stopping = true;
    (void)pthread_cond_signal(&remote->wake);
    (void)pthread_mutex_unlock(&remote->mutex);
    remote->ops->wake(remote);
    (void)pthread_join(remote->thread, NULL);
    remote->threaded = false;
}

void idem__remote_stop(struct idem__remote *remote)
{
    if (remote->threaded) {
        stop_thread(remote);
    }
    (void)pthread_mutex_lock(&remote->mutex);
    if (remote->running != NULL || remote->pending.first != NULL) {
        lead(remote, NULL, idem__time_add(idem__mono_ms(), CLOSE_MS));
    }
    (void)pthread_mutex_unlock(&remote->mutex);
    idem__run_drop(remote);
}

/* ---- The head ---- */

void idem__remote_init(struct idem__remote *remote,
                       const struct idem__remote_ops *ops)
{
    remote->ops = ops;
    remote->watch = -1;
    remote->timer = -1;
    remote->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    remote->wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

void idem__remote_finish(struct idem__remote *remote)
{
    if (remote->watch >= 0) {
        (void)close(remote->watch);
        (void)close(remote->timer);
    }
    (void)pthread_cond_destroy(&remote->wake);
    (void)pthread_mutex_destroy(&remote->mutex);
}
