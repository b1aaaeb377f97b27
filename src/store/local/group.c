/* Leader and followers.
 *
 * Whoever drives and finds no leader becomes it: takes what is queued, runs it
 * as one batch with one flush, hands leadership on and only then wakes the
 * batch, so that the next flush is under way while the callers of the last one
 * still wake up. There is no timer: the flush itself is the gathering window. A
 * lone caller never meets another thread.
 */
#include "store/local/group.h"

#include "base/crash.h"
#include "base/host.h"
#include "queue/queue.h"
#include "store/shared/verbs.h"

#include <assert.h>
#include <signal.h>

enum {
    BATCH_MAX = 512,
    BATCH_BYTES_MAX = 256 * 1024
};

static void *lead_always(void *arg);

static int start_thread(struct idem__group *group)
{
    sigset_t all;
    sigset_t old;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&group->thread, NULL, lead_always, group);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc == 0 ? 0 : IDEM_ENOMEM;
}

int idem__group_init(struct idem__group *group, struct idem_store *store,
                     const struct idem__group_ops *ops, bool threaded)
{
    memset(group, 0, sizeof(*group));
    group->store = store;
    group->ops = ops;
    group->threaded = threaded;
    if (pthread_mutex_init(&group->mutex, NULL) != 0) {
        return IDEM_ENOMEM;
    }
    if (pthread_cond_init(&group->wake, NULL) != 0) {
        (void)pthread_mutex_destroy(&group->mutex);
        return IDEM_ENOMEM;
    }
    if (threaded && start_thread(group) != 0) {
        (void)pthread_cond_destroy(&group->wake);
        (void)pthread_mutex_destroy(&group->mutex);
        return IDEM_ENOMEM;
    }
    return 0;
}

static void append(struct idem__group *group, struct idem_op *op)
{
    op->next = NULL;
    op->prev = group->pending_last;
    if (op->prev == NULL) {
        group->pending = op;
    } else {
        op->prev->next = op;
    }
    group->pending_last = op;
    group->pending_len++;
}

static void unlink_op(struct idem__group *group, struct idem_op *op)
{
    if (op->prev == NULL) {
        group->pending = op->next;
    } else {
        op->prev->next = op->next;
    }
    if (op->next == NULL) {
        group->pending_last = op->prev;
    } else {
        op->next->prev = op->prev;
    }
    op->next = NULL;
    op->prev = NULL;
    group->pending_len--;
}

void idem__group_finish(struct idem__group *group)
{
    if (group->threaded) {
        (void)pthread_mutex_lock(&group->mutex);
        group->stopping = true;
        (void)pthread_cond_signal(&group->wake);
        (void)pthread_mutex_unlock(&group->mutex);
        (void)pthread_join(group->thread, NULL);
    }
    while (group->pending != NULL) {
        struct idem_op *op = group->pending;

        assert(op->queue == NULL); /* A claim that nobody gave back. */
        unlink_op(group, op);
        idem_op_destroy(op);
    }
    (void)pthread_cond_destroy(&group->wake);
    (void)pthread_mutex_destroy(&group->mutex);
}

int idem__group_submit(struct idem__group *group, struct idem_op *op)
{
    struct idem_queue *queue = op->queue;
    int rc = 0;

    (void)pthread_mutex_lock(&group->mutex);
    if (group->pending_len == group->store->options.queue_max) {
        rc = IDEM_EUNAVAILABLE;
    } else {
        append(group, op);
        if (group->threaded) {
            (void)pthread_cond_signal(&group->wake);
        }
    }
    (void)pthread_mutex_unlock(&group->mutex);
    if (rc == 0 && !group->threaded) {
        idem_queue_poke(queue);
    }
    return rc;
}

enum idem_cancel idem__group_cancel(struct idem__group *group,
                                    struct idem_op *op)
{
    enum idem_cancel how;

    (void)pthread_mutex_lock(&group->mutex);
    if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) == IDEM_OP_PENDING) {
        unlink_op(group, op);
        how = IDEM_CANCEL_TAKEN_BACK;
    } else {
        how = idem_op_detach(op);
    }
    (void)pthread_mutex_unlock(&group->mutex);
    return how;
}

static size_t weight(const struct idem_op *op)
{
    return op->args_len;
}

/* Takes a batch off the queue: many small ops, or one large. */
static struct idem_op *take_batch(struct idem__group *group)
{
    struct idem_op *batch = NULL;
    struct idem_op **tail = &batch;
    size_t bytes = 0;
    size_t n = 0;

    while (group->pending != NULL && n < BATCH_MAX) {
        struct idem_op *op = group->pending;

        if (n > 0 && bytes + weight(op) > BATCH_BYTES_MAX) {
            break;
        }
        unlink_op(group, op);
        if (op->queue != NULL) {
            idem_op_run(op);
        }
        bytes += weight(op);
        n++;
        *tail = op;
        tail = &op->next;
    }
    return batch;
}

/* Gives an unwanted claim back. Best effort. */
static bool give_back(struct idem__group *group, struct idem_op *op)
{
    if (!idem__verb_unwanted(op)) {
        return false;
    }
    IDEM__CRASH_POINT("local/group/gives-back");
    (void)pthread_mutex_lock(&group->mutex);
    append(group, op);
    (void)pthread_mutex_unlock(&group->mutex);
    return true;
}

static void answer_all(struct idem__group *group, struct idem_op *batch)
{
    while (batch != NULL) {
        struct idem_op *next = batch->next;

        batch->next = NULL;
        if (!give_back(group, batch)) {
            idem_op_answer(batch);
        }
        batch = next;
    }
}

/* Moves from *@batch to *@late those that are not waited for any longer, with
 * @error: whose deadline has come, or, where it came before the first deadline,
 * all of them. */
static void split_late(struct idem_op **batch, struct idem_op **late,
                       const struct idem_error *error)
{
    int64_t now_ms = idem__mono_ms();
    bool timed_out =
        error->code == IDEM_EUNAVAILABLE && (*batch)->deadline_ms <= now_ms;

    while (*batch != NULL) {
        struct idem_op *op = *batch;

        if (timed_out && op->deadline_ms > now_ms) {
            batch = &op->next;
            continue;
        }
        *batch = op->next;
        op->error = *error;
        op->next = *late;
        *late = op;
    }
}

/* Runs @batch; what could not begin before its deadline is refused. */
static struct idem_op *run_batch(struct idem__group *group,
                                 struct idem_op *batch)
{
    struct idem_error error = {0, ""};
    struct idem_op *done = NULL;
    struct idem_op **tail = &done;

    while (batch != NULL) {
        if (group->ops->enter(group->store, batch->deadline_ms, &error) == 0) {
            group->ops->run(group->store, batch);
            break;
        }
        split_late(&batch, &done, &error);
    }
    while (*tail != NULL) {
        tail = &(*tail)->next;
    }
    *tail = batch;
    return done;
}

/* Wakes a caller that can lead what is pending; the descriptor of the oldest
 * op's queue becomes readable when nobody sleeps. Called with the mutex held. */
static void call_next_leader(struct idem__group *group)
{
    struct idem_queue *first = NULL;
    struct idem_op *op;

    if (group->pending == NULL || group->threaded) {
        return;
    }
    for (op = group->pending; op != NULL; op = op->next) {
        bool asked = op->prev != NULL && op->prev->queue == op->queue;

        if (op->queue == NULL || asked) {
            continue;
        }
        first = first == NULL ? op->queue : first;
        if (idem__queue_has_sleeper(op->queue)) {
            idem_queue_poke(op->queue);
            return;
        }
    }
    if (first != NULL) {
        idem_queue_poke(first);
    }
}

/* With the mutex held; it is released while the batch runs. */
static void lead(struct idem__group *group)
{
    struct idem_op *batch = take_batch(group);

    group->led = true;
    (void)pthread_mutex_unlock(&group->mutex);
    IDEM__CRASH_POINT("local/group/leads");
    batch = run_batch(group, batch);
    IDEM__CRASH_POINT("local/group/ran");
    (void)pthread_mutex_lock(&group->mutex);
    group->led = false;
    call_next_leader(group);
    (void)pthread_mutex_unlock(&group->mutex);
    IDEM__CRASH_POINT("local/group/handed-over");
    answer_all(group, batch);
    (void)pthread_mutex_lock(&group->mutex);
}

static void *lead_always(void *arg)
{
    struct idem__group *group = arg;

    (void)pthread_mutex_lock(&group->mutex);
    for (;;) {
        if (group->pending != NULL) {
            lead(group);
        } else if (group->stopping) {
            break;
        } else {
            (void)pthread_cond_wait(&group->wake, &group->mutex);
        }
    }
    (void)pthread_mutex_unlock(&group->mutex);
    return NULL;
}

void idem__group_drive(struct idem__group *group, struct idem_queue *queue,
                       int64_t deadline_ms)
{
    (void)pthread_mutex_lock(&group->mutex);
    while (!idem_queue_ready(queue)) {
        if (!group->threaded && !group->led && group->pending != NULL) {
            lead(group);
            continue;
        }
        if (idem__mono_ms() >= deadline_ms) {
            break;
        }
        (void)pthread_mutex_unlock(&group->mutex);
        idem_queue_sleep(queue, deadline_ms);
        (void)pthread_mutex_lock(&group->mutex);
    }
    if (!group->led) {
        call_next_leader(group);
    }
    (void)pthread_mutex_unlock(&group->mutex);
}
