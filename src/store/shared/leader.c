/* Chooses the leader, wakes the next one, and ends leadership. */
#include "store/shared/leader.h"

#include "base/host.h"
#include "base/process.h"

#include <idem/queue.h>

/* For how long a thread leads before it checks whether it has to stop. */
#define TURN_MS 1000

void idem__leader_init(struct idem__leader *leader,
                       const struct idem__leader_ops *ops, void *ctx)
{
    memset(leader, 0, sizeof(*leader));
    leader->ops = ops;
    leader->ctx = ctx;
    leader->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    leader->wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

void idem__leader_finish(struct idem__leader *leader)
{
    idem__pending_drop(&leader->pending);
    (void)pthread_cond_destroy(&leader->wake);
    (void)pthread_mutex_destroy(&leader->mutex);
}

enum idem_cancel idem__leader_cancel(struct idem__leader *leader,
                                     struct idem_op *op)
{
    enum idem_cancel how;

    (void)pthread_mutex_lock(&leader->mutex);
    /* A leader takes ops off under this mutex, so it has this op already, or never gets it. */
    how = idem__pending_cancel(&leader->pending, op);
    (void)pthread_mutex_unlock(&leader->mutex);
    return how;
}

bool idem__leader_has_work(const struct idem__leader *leader)
{
    return leader->pending.first != NULL || leader->running_len > 0;
}

/* ---- The next leader ---- */

void idem__leader_tell(struct idem__leader *leader, struct idem_queue *queue,
                       bool led)
{
    /* Wake the one of three that sleeps: the leader of requests in wait() of the service,
     * the thread at its condition, or a caller in its queue, which then becomes the
     * leader. */
    if (led && leader->ops->wake != NULL) {
        leader->ops->wake(leader->ctx);
    } else if (leader->threaded) {
        (void)pthread_cond_signal(&leader->wake);
    } else {
        idem__queue_poke(queue);
    }
}

bool idem__leader_call(struct idem_queue *queue, struct idem_queue **first)
{
    if (*first == NULL) {
        *first = queue;
    }
    if (!idem__queue_has_sleeper(queue)) {
        return false;
    }
    idem__queue_poke(queue);
    return true;
}

void idem__leader_call_next(struct idem__leader *leader)
{
    struct idem_queue *first = NULL;
    const struct idem_op *op;

    /* The thread looks for more work by itself. */
    if (leader->threaded) {
        return;
    }
    /* Prefer a caller whose request is in flight: it is the next to get an answer. */
    if (leader->running_len > 0 &&
        leader->ops->call_running(leader->ctx, &first)) {
        return;
    }
    /* Prefer a caller that sleeps in its queue: one that is busy elsewhere may take long
     * to come back and lead. */
    for (op = leader->pending.first; op != NULL; op = op->next) {
        bool asked = op->prev != NULL && op->prev->queue == op->queue;

        if (op->queue != NULL && !asked &&
            idem__leader_call(op->queue, &first)) {
            return;
        }
    }
    if (first != NULL) {
        idem__queue_poke(first);
    }
}

/* ---- A caller leads ---- */

/* True while the release of an unwanted claim is pending: no caller comes back for it. */
static bool has_unowned(const struct idem__leader *leader)
{
    const struct idem_op *op = leader->pending.first;

    while (op != NULL && op->queue != NULL) {
        op = op->next;
    }
    return op != NULL;
}

/* With the mutex held: @queue has an answer, and nothing is left that only this caller
 * would run. */
static bool may_leave(const struct idem__leader *leader,
                      struct idem_queue *queue)
{
    return idem__queue_ready(queue) &&
           (leader->led || !leader->ops->batches || !has_unowned(leader));
}

static void wait_for_thread(struct idem_queue *queue, int64_t deadline_ms)
{
    /* A poke may end the sleep without an answer. */
    while (!idem__queue_ready(queue) && idem__mono_ms() < deadline_ms) {
        idem__queue_sleep(queue, deadline_ms);
    }
}

void idem__leader_drive(struct idem__leader *leader, struct idem_queue *queue,
                        int64_t deadline_ms)
{
    bool late = false;

    if (leader->threaded) {
        wait_for_thread(queue, deadline_ms);
        return;
    }
    (void)pthread_mutex_lock(&leader->mutex);
    while (!late && !may_leave(leader, queue)) {
        if (!leader->led &&
            (!leader->ops->batches || idem__leader_has_work(leader))) {
            /* No thread leads: work for all callers until this one has its answer, and
             * no unwanted claim is left to release. */
            late = leader->ops->lead(leader->ctx, queue, deadline_ms);
        } else if (idem__mono_ms() < deadline_ms) {
            /* Another thread leads: sleep until it answers an op of this queue, or hands
             * the lead over. */
            (void)pthread_mutex_unlock(&leader->mutex);
            idem__queue_sleep(queue, deadline_ms);
            (void)pthread_mutex_lock(&leader->mutex);
        } else {
            late = true;
        }
    }
    /* This caller leaves while others may still wait: one of them has to lead, or their
     * ops would stay queued until the next caller comes. */
    if (!leader->led) {
        idem__leader_call_next(leader);
    }
    (void)pthread_mutex_unlock(&leader->mutex);
}

/* ---- A thread leads ---- */

static void *lead_always(void *arg)
{
    struct idem__leader *leader = arg;

    (void)pthread_mutex_lock(&leader->mutex);
    /* Ops of batches that are queued when the store is closed still run. Requests could
     * take long, so the thread leaves them: idem__remote_close() gives them a second. */
    while (!leader->stopping ||
           (leader->ops->batches && idem__leader_has_work(leader))) {
        if (idem__leader_has_work(leader)) {
            (void)leader->ops->lead(leader->ctx, /* queue= */ NULL,
                                    idem__time_add(idem__mono_ms(), TURN_MS));
        } else {
            (void)pthread_cond_wait(&leader->wake, &leader->mutex);
        }
    }
    (void)pthread_mutex_unlock(&leader->mutex);
    return NULL;
}

int idem__leader_start(struct idem__leader *leader)
{
    leader->threaded = true; /* Before the thread may read it. */
    if (idem__thread_start(&leader->thread, lead_always, leader) != 0) {
        leader->threaded = false;
        return IDEM_ENOMEM;
    }
    return 0;
}

void idem__leader_stop(struct idem__leader *leader)
{
    if (!leader->threaded) {
        return;
    }
    (void)pthread_mutex_lock(&leader->mutex);
    leader->stopping = true;
    (void)pthread_cond_signal(&leader->wake);
    (void)pthread_mutex_unlock(&leader->mutex);
    /* The thread may sleep at the service, where the condition does not reach it. */
    if (leader->ops->wake != NULL) {
        leader->ops->wake(leader->ctx);
    }
    (void)pthread_join(leader->thread, NULL);
    leader->threaded = false;
}
