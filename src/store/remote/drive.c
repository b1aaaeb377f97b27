/* Runs a remote store: its leader (store/shared/leader.h) sends requests and waits for
 * answers on behalf of all callers, until its own answer is there. A thread of the store
 * or the host's event loop may lead instead. */
#include "base/heap.h"
#include "base/host.h"
#include "base/process.h"
#include "base/wait.h"
#include "core/error.h"
#include "store/remote/flights.h"
#include "store/shared/replays.h"

#include <idem/queue.h>
#include <unistd.h>

enum {
    CLOSE_MS = 1000,
    OWNER_MARGIN_MS = 2000,
};

/* ---- The queue ---- */

/* With the mutex held, for each new op: true if the leader sleeps, and this op has to
 * wake it. */
static bool is_called(struct idem__remote *remote)
{
    if (remote->leader.asleep && remote->wanted > 1) {
        remote->wanted--;
        return false;
    }
    return remote->leader.asleep;
}

int idem__remote_submit(struct idem_store *base, struct idem_op *op)
{
    struct idem__remote *remote = (struct idem__remote *)base;
    struct idem_queue *queue = op->queue;
    bool led;
    bool asleep;

    (void)pthread_mutex_lock(&remote->leader.mutex);
    if (!idem__flights_has_room(remote, op)) {
        (void)pthread_mutex_unlock(&remote->leader.mutex);
        return IDEM_EUNAVAILABLE;
    }
    idem__pending_append(&remote->leader.pending, op);
    led = remote->leader.led;
    asleep = is_called(remote);
    (void)pthread_mutex_unlock(&remote->leader.mutex);
    /* After the unlock, so that the thread that wakes does not wait for the mutex. A leader
     * at work finds the op by itself. */
    if (!led || asleep) {
        idem__leader_tell(&remote->leader, queue, led);
    }
    return 0;
}

enum idem_cancel idem__remote_cancel(struct idem_store *base,
                                     struct idem_op *op)
{
    return idem__leader_cancel(&((struct idem__remote *)base)->leader, op);
}

/* ---- In the host's event loop ---- */

/* Sets the timer, so that the descriptor becomes readable when work is due. */
static void set_timer(struct idem__remote *remote, int64_t due_ms)
{
    int64_t work_ms = remote->ops->due_ms(remote);

    if (remote->timer >= 0) {
        idem__timer_set(remote->timer, work_ms < due_ms ? work_ms : due_ms);
    }
}

static int make_watch(struct idem__remote *remote)
{
    remote->timer = idem__timer_open();
    remote->watch = idem__watch_open();
    if (remote->timer >= 0 && remote->watch >= 0 &&
        idem__watch_add(remote->watch, remote->timer, POLLIN) == 0 &&
        idem__watch_add(remote->watch, remote->ops->fd(remote), POLLIN) == 0) {
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

    (void)pthread_mutex_lock(&remote->leader.mutex);
    if (remote->watch < 0) {
        rc = make_watch(remote);
    }
    (void)pthread_mutex_unlock(&remote->leader.mutex);
    return rc == 0 ? remote->watch : rc;
}

/* ---- Leading ---- */

/* Called with the mutex held, and releases it. Does not wait if an op became pending
 * since the last round. An op that becomes pending later wakes the leader only if it
 * could be sent, which saves a busy store a wake-up for each op. */
static void wait_for_work(struct idem__remote *remote, int64_t deadline_ms)
{
    size_t wanted =
        remote->ops->wanted == NULL ? 1 : remote->ops->wanted(remote);
    bool busy = wanted == SIZE_MAX;
    bool again = !busy && idem__flights_may_start(remote);

    /* submit() reads both under the same mutex, so an op that comes from here on wakes the
     * leader. */
    remote->wanted = wanted;
    remote->leader.asleep = !busy && !again;
    (void)pthread_mutex_unlock(&remote->leader.mutex);
    if (!again) {
        remote->ops->wait(remote, deadline_ms);
    }
}

/* Called with the mutex held, and releases it meanwhile. Leads until @queue (NULL:
 * none) has an answer, or @deadline_ms. At least one round is done. */
static bool lead(void *ctx, struct idem_queue *queue, int64_t deadline_ms)
{
    struct idem__remote *remote = ctx;
    int64_t due_ms;
    bool ready;
    bool late;

    remote->leader.led = true;
    (void)pthread_mutex_unlock(&remote->leader.mutex);
    for (;;) {
        due_ms = idem__flights_round(remote);
        ready = queue != NULL && idem__queue_ready(queue);
        late = !ready && idem__mono_ms() >= deadline_ms;
        (void)pthread_mutex_lock(&remote->leader.mutex);
        /* A caller leaves with its own answer; idem__leader_drive() calls the next leader. */
        if (ready || late || !idem__leader_has_work(&remote->leader)) {
            break;
        }
        wait_for_work(remote, due_ms < deadline_ms ? due_ms : deadline_ms);
    }
    set_timer(remote, due_ms);
    remote->leader.led = false;
    remote->leader.asleep = false;
    return late;
}

/* Wakes a caller that sleeps until the op of a started flight is answered. */
static bool call_running(void *ctx, struct idem_queue **first)
{
    const struct idem__flight *flight = ((struct idem__remote *)ctx)->running;

    for (; flight != NULL; flight = flight->link) {
        struct idem_queue *queue = idem__op_awaited_in(flight->op);

        if (queue != NULL && idem__leader_call(queue, first)) {
            return true;
        }
    }
    return false;
}

static void wake(void *ctx)
{
    struct idem__remote *remote = ctx;

    remote->ops->wake(remote);
}

static const struct idem__leader_ops leader_ops = {
    .batches = false,
    .lead = lead,
    .call_running = call_running,
    .wake = wake,
};

void idem__remote_drive(struct idem_store *base, struct idem_queue *queue,
                        int64_t deadline_ms)
{
    idem__leader_drive(&((struct idem__remote *)base)->leader, queue,
                       deadline_ms);
}

/* ---- Opening and closing ---- */

/* Frees @remote, which may be half built. */
static void finish(struct idem__remote *remote)
{
    remote->ops->finish(remote);
    if (remote->watch >= 0) {
        (void)close(remote->watch);
        (void)close(remote->timer);
    }
    idem__leader_finish(&remote->leader);
    idem__replays_destroy(remote->replays);
    idem__store_finish(&remote->base);
    idem__free(remote);
}

/* For cache_ms, as far as cache_max allows. */
static int make_replays(struct idem__remote *remote, struct idem_error *error)
{
    size_t max = remote->base.options.cache_max;

    if (remote->cache_ms == 0 || max == 0) {
        return 0;
    }
    remote->generation = 2; /* Settled; see store/shared/replays.h. */
    remote->replays = idem__replays_create(max);
    return remote->replays != NULL ? 0 : idem__error_plain(error, IDEM_ENOMEM);
}

int idem__remote_open(const struct idem__remote_ops *ops, const char *place,
                      const struct idem_open_options *options,
                      struct idem_store **ret_store,
                      struct idem_error *ret_error)
{
    bool threaded = options != NULL && (options->flags & IDEM_OPEN_THREAD) != 0;
    struct idem__remote *remote = idem__zalloc(ops->size);
    int rc;

    if (remote == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    remote->ops = ops;
    remote->watch = -1;
    remote->timer = -1;
    idem__leader_init(&remote->leader, &leader_ops, remote);
    rc = ops->set_up(remote, place, options, ret_error);
    rc = rc != 0 ? rc : make_replays(remote, ret_error);
    remote->base.remote = true;
    remote->base.margin_ms = OWNER_MARGIN_MS;
    if (rc == 0 && threaded && idem__leader_start(&remote->leader) != 0) {
        rc = idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    if (rc != 0) {
        finish(remote);
        return rc;
    }
    *ret_store = &remote->base;
    return 0;
}

void idem__remote_close(struct idem_store *base)
{
    struct idem__remote *remote = (struct idem__remote *)base;

    /* In a child of fork(), the connections belong to the parent. */
    if (base->pid != idem__process()) {
        return;
    }
    /* The releases of unwanted claims get a second to end: a claim that is left blocks its
     * key until the lease is over. */
    idem__leader_stop(&remote->leader);
    (void)pthread_mutex_lock(&remote->leader.mutex);
    if (idem__leader_has_work(&remote->leader)) {
        (void)lead(remote, /* queue= */ NULL,
                   idem__time_add(idem__mono_ms(), CLOSE_MS));
    }
    (void)pthread_mutex_unlock(&remote->leader.mutex);
    idem__flights_drop(remote);
    finish(remote);
}
