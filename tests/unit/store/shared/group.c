/* Leader and followers: what is queued runs in batches, each once, and nobody
 * waits for a leader that does not come. */
#include "store/shared/group.h"

#include "base/host.h"
#include "queue/queue.h"
#include "test.h"
#include "threads.h"

#include <idem/queue.h>
#include <poll.h>
#include <signal.h>

enum {
    RUNS_MAX = 4096,
    PATIENCE_MS = 60000,
};

/* A store whose ops do nothing, and which notes how they were run. */
struct store {
    struct idem_store base;
    struct idem__group group;
    int enter_code;  /* What enter() answers, with its time used up ... */
    bool at_once;    /* ... or not. */
    long pause_ms;   /* Each batch takes as long. */
    bool can_refuse; /* refuse() has an answer. */
    void (*entering)(void *ctx); /* Called in enter(), if it is set. */
    void (*running)(void *ctx);  /* Likewise in run(). */
    bool starts;                 /* Each begin is a claim. */
    void *ctx;
    bool asked_for_chore;
    bool saw_ends; /* What the last enter() was told of ends. */
    unsigned released;
    unsigned entered;
    unsigned left;
    unsigned runs;
    unsigned lens[RUNS_MAX]; /* Ops of each batch. */
    pthread_t runner;        /* Of the last batch. */
    sigset_t blocked;        /* In that thread. */
};

static struct store *store_of(struct idem_store *base)
{
    return (struct store *)base;
}

static int enter(struct idem_store *base, int64_t deadline_ms, const bool *ends,
                 struct idem_error *ret_error)
{
    struct store *store = store_of(base);

    store->saw_ends = __atomic_load_n(ends, __ATOMIC_RELAXED);
    store->entered++;
    if (store->entering != NULL) {
        store->entering(store->ctx);
    }
    if (store->enter_code == IDEM_EUNAVAILABLE && !store->at_once) {
        while (now_ms() < deadline_ms) {
            sleep_ms(1);
        }
    }
    if (store->enter_code != 0) {
        ret_error->code = store->enter_code;
        (void)snprintf(ret_error->text, sizeof(ret_error->text), "no entry");
    }
    return store->enter_code;
}

static void run(struct idem_store *base, struct idem_op *batch)
{
    struct store *store = store_of(base);
    unsigned len = 0;

    for (; batch != NULL; batch = batch->next) {
        batch->verdict = IDEM_BUSY;
        if (store->starts && batch->verb == IDEM_OP_BEGIN) {
            assert_ok(idem__op_set_record(batch, &(struct idem_record){0}));
            batch->verdict = IDEM_STARTED;
        }
        store->released += batch->verb == IDEM_OP_END;
        len++;
    }
    if (store->runs < RUNS_MAX) {
        store->lens[store->runs] = len;
    }
    store->runner = pthread_self();
    (void)pthread_sigmask(SIG_SETMASK, NULL, &store->blocked);
    (void)__atomic_add_fetch(&store->runs, 1, __ATOMIC_ACQ_REL);
    if (store->running != NULL) {
        store->running(store->ctx);
    }
    if (store->pause_ms > 0) {
        sleep_ms(store->pause_ms);
    }
}

static void leave(struct idem_store *base)
{
    store_of(base)->left++;
}

static bool refuse(struct idem_store *base, struct idem_op *op)
{
    op->verdict = IDEM_REPLAY;
    return store_of(base)->can_refuse;
}

static bool take_chore(struct idem_store *base)
{
    store_of(base)->asked_for_chore = true;
    return false;
}

static const struct idem__group_ops group_ops = {
    .enter = enter,
    .run = run,
    .leave = leave,
    .refuse = refuse,
    .take_chore = take_chore,
};

static size_t submit_all(struct idem_store *base, struct idem_op **ops,
                         size_t n)
{
    return idem__group_submit(&store_of(base)->group, ops, n);
}

static enum idem_cancel cancel(struct idem_store *base, struct idem_op *op)
{
    return idem__leader_cancel(&store_of(base)->group.leader, op);
}

static void drive(struct idem_store *base, struct idem_queue *queue,
                  int64_t deadline_ms)
{
    idem__leader_drive(&store_of(base)->group.leader, queue, deadline_ms);
}

static void close_store(struct idem_store *base)
{
    idem__group_finish(&store_of(base)->group);
    idem__store_finish(base);
}

static const struct idem_store_ops store_ops = {
    .name = "group",
    .submit_all = submit_all,
    .cancel = cancel,
    .drive = drive,
    .close = close_store,
};

static struct idem_queue *open_store(struct store *store, bool threaded)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_queue *queue;

    memset(store, 0, sizeof(*store));
    options.queue_max = 4096;
    options.timeout_ms = 200;
    assert_ok(idem__store_init(&store->base, &store_ops, &options, &why));
    assert_ok(
        idem__group_init(&store->group, &store->base, &group_ops, threaded));
    assert_ok(idem_queue_create(&store->base, &queue, &why));
    return queue;
}

static void finish(struct store *store, struct idem_queue *queue)
{
    idem_queue_destroy(queue);
    idem_close(&store->base);
}

/* A test that is given a store, and a queue of it. */
#define TEST_STORE(suite, condition, threaded)                                 \
    static void suite##_##condition##_in(struct store *, struct idem_queue *); \
    TEST(suite, condition)                                                     \
    {                                                                          \
        struct store store;                                                    \
        struct idem_queue *queue = open_store(&store, threaded);               \
                                                                               \
        suite##_##condition##_in(&store, queue);                               \
        finish(&store, queue);                                                 \
    }                                                                          \
    static void suite##_##condition##_in(                                      \
        __attribute__((unused)) struct store *store, struct idem_queue *queue)

static struct idem_op *make_op(size_t input_len)
{
    static char input[1 << 20];
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_op *op;

    request.key = idem_str("k");
    request.on_expired_lease = IDEM_HOLD;
    request.input = idem_bytes(input, input_len);
    assert_ok(idem_op_begin(&request, &op, &why));
    return op;
}

static void submit(struct idem_queue *queue, size_t input_len)
{
    assert_ok(idem_queue_submit(queue, make_op(input_len), &why));
}

static void reap_all(struct idem_queue *queue, size_t want)
{
    struct idem_op *op;

    while ((op = idem_queue_reap(queue, PATIENCE_MS)) != NULL) {
        idem_op_destroy(op);
        want--;
    }
    assert_int_equal(want, 0);
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* ---- Batches ---- */

/* What is queued runs together, on the thread that reaps. */
TEST_STORE(group, runsTogetherWhatIsQueued, false)
{
    int i;

    for (i = 0; i < 100; i++) {
        submit(queue, 0);
    }
    assert_int_equal(store->runs, 0);
    reap_all(queue, 100);
    assert_int_equal(store->runs, 1);
    assert_int_equal(store->entered, 1);
    assert_int_equal(store->lens[0], 100);
    assert_true(pthread_equal(store->runner, pthread_self()) != 0);
}

/* And in bytes: what is large runs alone. */
TEST_STORE(group, runsLargeOpsAlone, false)
{
    static const size_t lens[] = {10, 1 << 20, 300000, 20, 30, 100000, 200000};
    static const unsigned batches[] = {1, 1, 1, 3, 1};
    size_t i;

    for (i = 0; i < COUNT(lens); i++) {
        submit(queue, lens[i]);
    }
    reap_all(queue, COUNT(lens));
    assert_int_equal(store->runs, COUNT(batches));
    for (i = 0; i < COUNT(batches); i++) {
        assert_int_equal(store->lens[i], batches[i]);
    }
}

/* What is submitted together runs together, also where a thread stands ready: it
 * hears of the first when the last is there. */
TEST_STORE(group, takesAllOfATurn, true)
{
    struct idem_op *ops[40];
    unsigned round;

    for (round = 0; round < 50; round++) {
        EACH(op, ops) {
            *op = make_op(0);
        }
        assert_int_equal(idem_queue_submit_all(queue, ops, COUNT(ops), &why),
                         0);
        reap_all(queue, COUNT(ops));
        assert_int_equal(store->runs, round + 1);
        assert_int_equal(store->lens[round], COUNT(ops));
    }
}

/* ---- Entering ---- */

static void submit_one_more(void *ctx)
{
    submit(ctx, 0);
}

/* Who comes while the leader waits to enter is in the batch. */
TEST_STORE(group, takesWhoCameWhileItEntered, false)
{
    store->entering = submit_one_more;
    store->ctx = queue;
    submit(queue, 0);
    idem_op_destroy(idem_queue_reap(queue, -1));
    assert_int_equal(store->runs, 1);
    assert_int_equal(store->lens[0], 2);
    store->entering = NULL;
    reap_all(queue, 1);
    assert_int_equal(store->left, 0);
}

static void destroy_other(void *ctx)
{
    idem_queue_destroy(ctx);
}

/* Where all were taken back meanwhile it leaves again, and runs nothing. */
TEST_STORE(group, leavesWhenAllWereTakenBack, false)
{
    struct idem_queue *other;

    assert_ok(idem_queue_create(&store->base, &other, &why));
    submit(other, 0);
    store->entering = destroy_other;
    store->ctx = other;
    idem__leader_drive(&store->group.leader, queue, now_ms());
    assert_int_equal(store->entered, 1);
    assert_int_equal(store->left, 1);
    assert_int_equal(store->runs, 0);
}

/* ---- Callers that stop waiting ---- */

static void destroy_other_once(void *ctx)
{
    struct idem_queue **other = ctx;

    idem_queue_destroy(*other);
    *other = NULL;
}

static void end_call(void *ctx)
{
    struct idem_queue *queue = ctx;
    struct idem_store *store = queue->store;

    idem__queue_abandon(queue, queue->members);
    idem__queue_finish(queue);
    assert_ok(idem__queue_init(queue, store)); /* Of the next call. */
    queue->sleepers = 1;
}

/* The queue of a call that gave up is gone when its batch has run: the leader does not
 * look at what is in its place. */
TEST_STORE(group, leavesTheQueueOfACallThatGaveUp, false)
{
    struct idem_queue call;

    assert_ok(idem__queue_init(&call, &store->base));
    submit(&call, 0);
    submit(queue, 0);
    store->running = end_call;
    store->ctx = &call;
    reap_all(queue, 1);
    assert_int_equal(store->lens[0], 2);
    assert_false(store->asked_for_chore);
    idem__queue_finish(&call);
}

/* A claim that nobody waits for any more is given back though no caller comes: by the
 * leader, before it leaves. */
TEST_STORE(group, givesBackBeforeTheLeaderLeaves, false)
{
    struct idem_queue *other;

    assert_ok(idem_queue_create(&store->base, &other, &why));
    submit(other, 0);
    submit(queue, 0);
    store->starts = true;
    store->running = destroy_other_once;
    store->ctx = &other;
    idem_op_destroy(idem_queue_reap(queue, PATIENCE_MS));
    assert_int_equal(store->lens[0], 2);
    assert_int_equal(store->released, 1);
    assert_int_equal(store->runs, 2);
}

/* ---- Ends ---- */

static struct idem_op *make_end(void)
{
    static const struct idem_outcome done = {.status = IDEM_STATUS_COMPLETED};
    struct idem_op *op = make_op(0);

    op->verb = IDEM_OP_END;
    op->fence = 1;
    op->u.end = done;
    return op;
}

/* A store is told while it is entered that something of its queue ends an attempt,
 * and no longer once that was run. */
TEST_STORE(group, tellsOfEnds, false)
{
    submit(queue, 0);
    reap_all(queue, 1);
    assert_false(store->saw_ends);
    submit(queue, 0);
    assert_ok(idem_queue_submit(queue, make_end(), &why));
    reap_all(queue, 2);
    assert_true(store->saw_ends);
    submit(queue, 0);
    reap_all(queue, 1);
    assert_false(store->saw_ends);
}

/* ---- Lateness and refusal ---- */

/* Another refusal, or one that does not wait for its time, is everybody's answer
 * at once: to ask again would be to ask without a pause. */
TEST(group, passesARefusalOn)
{
    static const int codes[] = {IDEM_ECONFIG, IDEM_EUNAVAILABLE};

    EACH(code, codes) {
        struct store store;
        struct idem_queue *queue = open_store(&store, false);
        int i;

        store.enter_code = *code;
        store.at_once = true;
        for (i = 0; i < 3; i++) {
            submit(queue, 0);
        }
        for (i = 0; i < 3; i++) {
            struct idem_op *op = idem_queue_reap(queue, -1);

            assert_code(*code, idem_op_code(op));
            idem_op_destroy(op);
        }
        assert_int_equal(store.entered, 1);
        finish(&store, queue);
    }
}

/* ---- Threads ---- */

enum {
    CALLERS = 16,
    CALLS = 60,
    FEW = CALLERS * CALLS / 4, /* Batches, if they share them. */
    TRIES = 3                  /* Who wakes late has a batch of its own. */
};

struct callers {
    struct store *store;
    unsigned failed;
};

static void call_often(void *ctx, size_t i)
{
    struct callers *callers = ctx;
    struct idem_queue *queue;
    int n;

    (void)i;
    if (idem_queue_create(&callers->store->base, &queue, NULL) != 0) {
        return;
    }
    for (n = 0; n < CALLS; n++) {
        struct idem_request request = IDEM_REQUEST_INIT;
        struct idem_op *op = NULL;
        bool good;

        request.key = idem_str("k");
        request.on_expired_lease = IDEM_HOLD;
        good = idem_op_begin(&request, &op, NULL) == 0 &&
               idem_queue_submit(queue, op, NULL) == 0 &&
               idem_queue_reap(queue, PATIENCE_MS) == op &&
               idem_op_verdict(op) == IDEM_BUSY;
        if (!good) {
            (void)__atomic_add_fetch(&callers->failed, 1, __ATOMIC_RELAXED);
            return;
        }
        idem_op_destroy(op);
    }
    idem_queue_destroy(queue);
}

/* Lets @n callers call, and finishes the store; how many batches they had. */
static unsigned call_all(struct store *store, struct idem_queue *queue,
                         size_t n, long pause_ms)
{
    struct callers callers = {.store = store};

    store->pause_ms = pause_ms;
    threads_run(n, call_often, &callers);
    assert_int_equal(callers.failed, 0);
    finish(store, queue);
    return store->runs;
}

static void assert_batches_are_shared(bool thread)
{
    unsigned runs = FEW;
    int tries;

    for (tries = 0; tries < TRIES && runs >= FEW; tries++) {
        struct store store;
        struct idem_queue *queue = open_store(&store, thread);

        runs = call_all(&store, queue, CALLERS, /* pause_ms= */ 1);
        assert_true(runs >= CALLS);
    }
    assert_true(runs < FEW);
}

/* Callers on threads of their own lead each other: all are answered, and those
 * that came while a batch was under way share the next one. */
TEST(group, handsLeadershipOn)
{
    assert_batches_are_shared(/* thread= */ false);
}

/* Callers that come back at once share all batches, and do not take turns in two
 * halves. */
TEST(group, waitsForThoseWhoComeBack)
{
    /* In two halves they would need two for each call. */
    const unsigned few = CALLS * 3 / 2;
    unsigned runs = few;
    int tries;

    for (tries = 0; tries < TRIES && runs >= few; tries++) {
        struct store store;
        struct idem_queue *queue = open_store(&store, false);

        /* A busy machine may take longer to wake a thread than it would pay to
         * wait for. */
        store.group.gather.wait_max_ns = idem__time_ns(1000);
        runs = call_all(&store, queue, 4, /* pause_ms= */ 10);
    }
    assert_true(runs < few);
}

struct other_caller {
    struct idem_queue *queue;
    struct idem_op *reaped;
};

static void reap_other(void *ctx)
{
    struct other_caller *other = ctx;

    other->reaped = idem_queue_reap(other->queue, PATIENCE_MS);
}

/* A caller that is asked to lead next, and is answered in the same moment, does
 * not leave its other op waiting: its descriptor says that there is work. */
TEST_STORE(group, forgetsNoOpOfACallerThatIsAnswered, false)
{
    struct other_caller other = {.reaped = NULL};
    int fd = idem_queue_fd(queue);
    struct thread *thread;

    store->pause_ms = 100;
    assert_ok(idem_queue_create(&store->base, &other.queue, &why));
    submit(queue, 0);
    submit(other.queue, 0);
    thread = thread_start(reap_other, &other);
    while (__atomic_load_n(&store->runs, __ATOMIC_ACQUIRE) == 0) {
        sleep_ms(1);
    }
    submit(queue, 0);
    idem_op_destroy(idem_queue_reap(queue, PATIENCE_MS));
    thread_join(thread);
    idem_op_destroy(other.reaped);
    assert_int_equal(idem_queue_len(queue), 1);
    assert_true(readable(fd));
    reap_all(queue, 1);
    idem_queue_destroy(other.queue);
}

/* With a thread of its own a store works while nobody reaps, on that thread
 * alone, and no signal is ever handled there. */
TEST_STORE(thread, doesTheWork, true)
{
    struct idem_op *op;
    int n = 0;

    submit(queue, 0);
    while (!idem__queue_ready(queue) && n++ < 2000) {
        sleep_ms(1);
    }
    op = idem_queue_reap(queue, 0);
    assert_non_null(op);
    idem_op_destroy(op);
    assert_int_equal(pthread_equal(store->runner, pthread_self()), 0);
    assert_int_equal(sigismember(&store->blocked, SIGTERM), 1);
    assert_int_equal(sigismember(&store->blocked, SIGUSR1), 1);
}

/* From the moment when a claim is found to be wanted it cannot be left any more: its
 * caller gets it, or it is given back. */
TEST(group, aClaimIsGivenToItsCallerOrGivenBack)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    int left;

    request.key = idem_str("k");
    request.owner = idem_str("ann");
    request.on_expired_lease = IDEM_HOLD;
    for (left = 0; left < 2; left++) {
        struct idem_record record = {0};
        struct idem_op *op;

        assert_ok(idem_op_begin(&request, &op, &why));
        idem__op_run(op);
        op->verdict = IDEM_STARTED;
        assert_ok(idem__op_set_record(op, &record));
        if (left != 0) {
            assert_int_equal(idem__op_detach(op), IDEM_CANCEL_DETACHED);
        }
        assert_int_equal(idem__verb_unwanted(op), left != 0);
        if (left == 0) {
            assert_int_equal(idem__op_detach(op), IDEM_CANCEL_ANSWERED);
        }
        idem_op_destroy(op);
    }
}
