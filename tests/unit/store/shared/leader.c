/* The two policies of a leader: batches are run however late it is, and all of them
 * when a store is closed; requests only until the caller's deadline, and not after
 * the stop. */
#include "store/shared/leader.h"

#include "test.h"
#include "threads.h"

#include <idem/queue.h>

enum {
    OPS = 3
};

/* A store that answers one op each time somebody leads. */
struct store {
    struct idem_store base;
    struct idem__leader leader;
    unsigned led;
    bool until_stopped; /* The first to lead waits for the stop. */
};

static bool lead(void *ctx, struct idem_queue *queue, int64_t deadline_ms)
{
    struct store *store = ctx;
    struct idem__leader *leader = &store->leader;
    struct idem_op *op = leader->pending.first;

    (void)queue;
    leader->led = true;
    store->led++;
    while (store->until_stopped && !leader->stopping) {
        (void)pthread_mutex_unlock(&leader->mutex);
        sleep_ms(1);
        (void)pthread_mutex_lock(&leader->mutex);
    }
    idem__pending_run(&leader->pending, op);
    leader->led = false;
    (void)pthread_mutex_unlock(&leader->mutex);
    idem__op_answer(op);
    (void)pthread_mutex_lock(&leader->mutex);
    return !leader->ops->batches && now_ms() >= deadline_ms;
}

static bool call_running(void *ctx, struct idem_queue **first)
{
    (void)ctx;
    (void)first;
    return false;
}

static const struct idem__leader_ops batches = {
    .batches = true,
    .lead = lead,
};

static const struct idem__leader_ops requests = {
    .batches = false,
    .lead = lead,
    .call_running = call_running,
};

static struct store *store_of(struct idem_store *base)
{
    return (struct store *)base;
}

static int submit(struct idem_store *base, struct idem_op *op)
{
    struct store *store = store_of(base);
    struct idem_queue *queue = op->queue;

    (void)pthread_mutex_lock(&store->leader.mutex);
    idem__pending_append(&store->leader.pending, op);
    (void)pthread_mutex_unlock(&store->leader.mutex);
    idem__leader_tell(&store->leader, queue, /* led= */ false);
    return 0;
}

static enum idem_cancel cancel(struct idem_store *base, struct idem_op *op)
{
    return idem__leader_cancel(&store_of(base)->leader, op);
}

static void drive(struct idem_store *base, struct idem_queue *queue,
                  int64_t deadline_ms)
{
    idem__leader_drive(&store_of(base)->leader, queue, deadline_ms);
}

static void close_store(struct idem_store *base)
{
    idem__leader_stop(&store_of(base)->leader);
    idem__leader_finish(&store_of(base)->leader);
    idem__store_finish(base);
}

static const struct idem_store_ops store_ops = {
    .name = "leader",
    .submit = submit,
    .cancel = cancel,
    .drive = drive,
    .close = close_store,
};

static void open_store(struct store *store, const struct idem__leader_ops *ops)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;

    memset(store, 0, sizeof(*store));
    idem__leader_init(&store->leader, ops, store);
    assert_ok(idem__store_init(&store->base, &store_ops, &options, &why));
}

static struct idem_queue *queue_with_op(struct store *store)
{
    struct idem_queue *queue;
    struct idem_op *op;

    assert_ok(idem_queue_create(&store->base, &queue, &why));
    assert_ok(idem_op_get(idem_str(""), idem_str("k"), &op, &why));
    assert_ok(idem_queue_submit(queue, op, &why));
    return queue;
}

/* How many ops are led by a caller whose time is over, and who is last in line. */
static unsigned led_when_late(const struct idem__leader_ops *ops)
{
    struct store store;
    struct idem_queue *queues[OPS];
    unsigned led;
    size_t i;

    open_store(&store, ops);
    for (i = 0; i < OPS; i++) {
        queues[i] = queue_with_op(&store);
    }
    idem_op_destroy(idem_queue_reap(queues[OPS - 1], 0));
    led = store.led;
    for (i = 0; i < OPS; i++) {
        idem_queue_destroy(queues[i]);
    }
    idem_close(&store.base);
    return led;
}

TEST(leader, lateCallerRunsItsBatch)
{
    assert_int_equal(led_when_late(&batches), OPS);
}

TEST(leader, lateCallerLeavesRequests)
{
    assert_int_equal(led_when_late(&requests), 1);
}

/* How many ops a thread leads that is stopped while it leads the first. */
static unsigned led_when_stopped(const struct idem__leader_ops *ops)
{
    struct store store;
    struct idem_queue *queues[OPS];
    size_t i;

    open_store(&store, ops);
    store.until_stopped = true;
    assert_ok(idem__leader_start(&store.leader));
    for (i = 0; i < OPS; i++) {
        queues[i] = queue_with_op(&store);
    }
    (void)pthread_mutex_lock(&store.leader.mutex);
    while (store.led == 0) {
        (void)pthread_mutex_unlock(&store.leader.mutex);
        sleep_ms(1);
        (void)pthread_mutex_lock(&store.leader.mutex);
    }
    (void)pthread_mutex_unlock(&store.leader.mutex);
    idem_close(&store.base);
    for (i = 0; i < OPS; i++) {
        idem_queue_destroy(queues[i]); /* What was pending is refused. */
    }
    return store.led;
}

TEST(leader, threadRunsAllBatches)
{
    assert_int_equal(led_when_stopped(&batches), OPS);
}

TEST(leader, threadLeavesRequests)
{
    assert_int_equal(led_when_stopped(&requests), 1);
}
