/* Runs the queued ops of all callers in batches.
 *
 * The leader takes the store's lock, then the ops that are queued by then, as many as fit
 * into a batch, and runs them with one flush. It hands leadership on before it wakes the
 * callers of the batch, so that the next batch runs while they wake up. A lone caller
 * runs its op on its own thread and wakes no other. */
#include "store/shared/group.h"

#include "base/crash.h"
#include "base/host.h"
#include "contract/parts.h"
#include "queue/op.h"
#include "queue/queue.h"

#include <idem/queue.h>

enum {
    BATCH_MAX = 512,
    BATCH_BYTES_MAX = 256 * 1024
};

/* Called with the mutex held. */
static void append(struct idem__group *group, struct idem_op *op)
{
    idem__pending_append(&group->leader.pending, op);
    /* While it waits in a long line, the store's lock reads this without the mutex, and
     * then passes the line. */
    if (idem__op_is_of_owner(op)) {
        __atomic_store_n(&group->ends, true, __ATOMIC_RELAXED);
    }
}

/* Called with the mutex held after ops were taken off. While an end is queued, the lock
 * of the store lets this process pass a long line. */
static void look_for_ends(struct idem__group *group)
{
    const struct idem_op *op = group->leader.pending.first;

    while (op != NULL && !idem__op_is_of_owner(op)) {
        op = op->next;
    }
    __atomic_store_n(&group->ends, op != NULL, __ATOMIC_RELAXED);
}

/* With the mutex held: true if @op may be queued. Ends and renewals always may. They
 * count towards the length of the queue, so that claims make way for them. */
static bool has_room(const struct idem__group *group, const struct idem_op *op)
{
    return idem__op_is_of_owner(op) ||
           group->leader.pending.len < group->store->options.queue_max;
}

/* Wakes the leader only once all ops are queued, so that one batch takes them all. */
size_t idem__group_submit(struct idem__group *group, struct idem_op **ops,
                          size_t n)
{
    struct idem_queue *queue = ops[0]->queue;
    size_t taken = 0;

    (void)pthread_mutex_lock(&group->leader.mutex);
    while (taken < n && has_room(group, ops[taken])) {
        append(group, ops[taken++]);
    }
    idem__gather_came(&group->gather, group->leader.pending.len);
    (void)pthread_mutex_unlock(&group->leader.mutex);
    /* After the unlock: a thread that wakes up does not have to wait for the mutex. */
    if (taken > 0) {
        idem__leader_tell(&group->leader, queue, /* led= */ false);
    }
    return taken;
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

    while (group->leader.pending.first != NULL && n < BATCH_MAX) {
        struct idem_op *op = group->leader.pending.first;

        /* The first op always goes, however large: it would never fit otherwise. */
        if (n > 0 && bytes + weight(op) > BATCH_BYTES_MAX) {
            break;
        }
        idem__pending_run(&group->leader.pending, op);
        bytes += weight(op);
        n++;
        *tail = op;
        tail = &op->next;
    }
    return batch;
}

/* Releases a claim whose caller stopped waiting, in a later batch. If that fails, the
 * claim is held until its lease ends. */
static bool give_back(struct idem__group *group, struct idem_op *op)
{
    if (!idem__verb_unwanted(op)) {
        return false;
    }
    IDEM__CRASH_POINT("shared/group/gives-back");
    op->deadline_ms =
        idem__time_add(idem__mono_ms(), group->store->options.timeout_ms);
    (void)pthread_mutex_lock(&group->leader.mutex);
    append(group, op);
    idem__gather_came(&group->gather, group->leader.pending.len);
    (void)pthread_mutex_unlock(&group->leader.mutex);
    return true;
}

static void answer_all(struct idem__group *group, struct idem_op *batch)
{
    struct idem_op **at = &batch;

    while (*at != NULL) {
        struct idem_op *next = (*at)->next;

        /* The op is queued again, as a release, and gets no answer now. */
        if (give_back(group, *at)) {
            *at = next;
        } else {
            at = &(*at)->next;
        }
    }
    idem__op_answer_all(batch);
}

/* Takes the ops to refuse off the queue: with @late_only those whose deadline has come,
 * else all. */
static struct idem_op *take_refused(struct idem__group *group, bool late_only)
{
    int64_t now_ms = idem__mono_ms();
    struct idem_op *refused = NULL;
    struct idem_op **tail = &refused;
    struct idem_op *next;
    struct idem_op *op;

    for (op = group->leader.pending.first; op != NULL; op = next) {
        next = op->next;
        /* This op has time left, for another leader or another try. */
        if (late_only && op->deadline_ms > now_ms) {
            continue;
        }
        idem__pending_run(&group->leader.pending, op);
        *tail = op;
        tail = &op->next;
    }
    return refused;
}

static void refuse_all(struct idem__group *group, struct idem_op *op,
                       const struct idem_error *error)
{
    for (; op != NULL; op = op->next) {
        /* A replay needs no lock, so it is answered even now. */
        if (!group->ops->refuse(group->store, op)) {
            op->error = *error;
        }
    }
}

/* With the mutex held: true if another thread sleeps until one of these ops is answered.
 * The leader does not sleep. */
static bool has_company(const struct idem_op *op)
{
    for (; op != NULL; op = op->next) {
        struct idem_queue *queue = idem__op_awaited_in(op);

        if (queue != NULL && idem__queue_has_sleeper(queue)) {
            return true;
        }
    }
    return false;
}

/* Called with the mutex held. */
static bool take_chore(struct idem__group *group, const struct idem_op *batch)
{
    /* The chore keeps this thread from leading, so take it only if another thread is
     * there to lead. The store's own thread is the only one that leads. */
    return group->ops->take_chore != NULL && !group->leader.threaded &&
           (has_company(batch) || has_company(group->leader.pending.first)) &&
           group->ops->take_chore(group->store);
}

static size_t count(const struct idem_op *op)
{
    size_t n = 0;

    for (; op != NULL; op = op->next) {
        n++;
    }
    return n;
}

/* Called with the mutex held, and releases it during long steps. Returns the ops that
 * were run, or refused. */
static struct idem_op *run_batch(struct idem__group *group)
{
    int64_t deadline_ms = group->leader.pending.first->deadline_ms;
    struct idem_error error = {0, ""};
    struct idem_op *batch;
    int rc;

    (void)pthread_mutex_unlock(&group->leader.mutex);
    /* Callers queue further ops meanwhile, and cancel() may take any back. */
    rc = group->ops->enter(group->store, deadline_ms, &group->ends, &error);
    (void)pthread_mutex_lock(&group->leader.mutex);
    /* Take the ops only now: those that came while we waited for the lock join the
     * batch. If the wait took until the first deadline, only ops whose time is up are
     * refused. */
    batch = rc == 0 ? take_batch(group)
                    : take_refused(group, rc == IDEM_EUNAVAILABLE &&
                                              idem__mono_ms() >= deadline_ms);
    look_for_ends(group);
    (void)pthread_mutex_unlock(&group->leader.mutex);
    if (rc != 0) {
        refuse_all(group, batch, &error);
    } else if (batch != NULL) {
        /* The batch is durable, and the lock released, when this returns. */
        group->ops->run(group->store, batch);
    } else {
        group->ops->leave(group->store); /* Callers have cancelled all ops. */
    }
    (void)pthread_mutex_lock(&group->leader.mutex);
    return batch;
}

/* Runs one batch, and hands leadership on before it answers. Called with the mutex held
 * and something pending. */
static bool lead(void *ctx, struct idem_queue *queue, int64_t deadline_ms)
{
    struct idem__group *group = ctx;
    struct idem_op *batch = NULL;
    int64_t start_ns;
    bool chore;

    (void)queue;
    (void)deadline_ms;
    group->leader.led = true;
    IDEM__CRASH_POINT("shared/group/leads");
    idem__gather_wait(&group->gather, &group->leader.pending.len,
                      &group->leader.mutex);
    if (group->leader.pending.first != NULL) {
        start_ns = idem__mono_ns();
        batch = run_batch(group);
        IDEM__CRASH_POINT("shared/group/ran");
        idem__gather_ran(&group->gather, count(batch),
                         group->leader.pending.len, idem__mono_ns() - start_ns);
    }
    /* From here on another thread may lead; the answers are still ours to give. */
    group->leader.led = false;
    chore = take_chore(group, batch);
    idem__leader_call_next(&group->leader);
    (void)pthread_mutex_unlock(&group->leader.mutex);
    IDEM__CRASH_POINT("shared/group/handed-over");
    answer_all(group, batch);
    if (chore) {
        group->ops->do_chore(group->store);
    }
    (void)pthread_mutex_lock(&group->leader.mutex);
    return false; /* Each op has a deadline of its own. */
}

static const struct idem__leader_ops leader_ops = {
    .batches = true,
    .lead = lead,
};

int idem__group_init(struct idem__group *group, struct idem_store *store,
                     const struct idem__group_ops *ops, bool threaded)
{
    memset(group, 0, sizeof(*group));
    group->store = store;
    group->ops = ops;
    idem__gather_init(&group->gather);
    idem__leader_init(&group->leader, &leader_ops, group);
    return threaded ? idem__leader_start(&group->leader) : 0;
}

void idem__group_finish(struct idem__group *group)
{
    idem__leader_stop(&group->leader);
    idem__leader_finish(&group->leader);
}
