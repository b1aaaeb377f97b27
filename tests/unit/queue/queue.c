/* Queues: answers come back on the thread that reaps them, in the order in which
 * they were given, and nothing is lost, done twice or done for nobody. */
#include "queue/queue.h"

#include "queue/op.h"
#include "script.h"
#include "test.h"
#include "threads.h"

#include <idem/queue.h>
#include <unistd.h>

enum {
    AT_ONCE_MS = 50,
    BOUND_MS = 30000,
    LOST_MS = 60000, /* So long a wait lasts that nothing ends. */
    TRIES = 5
};

static enum script_does answer(struct script *script, struct idem_op *op)
{
    (void)script;
    (void)op;
    return SCRIPT_ANSWERS;
}

static enum script_does keep(struct script *script, struct idem_op *op)
{
    (void)script;
    (void)op;
    return SCRIPT_KEEPS;
}

static enum script_does leave_waiting(struct script *script, struct idem_op *op)
{
    (void)script;
    (void)op;
    return SCRIPT_WAITS;
}

static struct idem_queue *make_queue(struct idem_store *store)
{
    struct idem_queue *queue;

    assert_ok(idem_queue_create(store, &queue, &why));
    return queue;
}

/* A test on a @store whose @script serves ops by @serves, and on a @queue of it. */
#define TEST_ON(suite, condition, serves)                                      \
    static void suite##_##condition##_on(struct script *, struct idem_store *, \
                                         struct idem_queue *);                 \
    TEST(suite, condition)                                                     \
    {                                                                          \
        struct script script;                                                  \
        struct idem_store *store = script_open(&script, serves, NULL);         \
        struct idem_queue *queue = make_queue(store);                          \
                                                                               \
        suite##_##condition##_on(&script, store, queue);                       \
        idem_queue_destroy(queue);                                             \
        idem_close(store);                                                     \
    }                                                                          \
    static void suite##_##condition##_on(                                      \
        __attribute__((unused)) struct script *script,                         \
        __attribute__((unused)) struct idem_store *store,                      \
        __attribute__((unused)) struct idem_queue *queue)

static struct idem_op *make_op(const char *key)
{
    struct idem_op *op;

    assert_ok(idem_op_get(idem_str(""), idem_str(key), &op, &why));
    return op;
}

static void submit(struct idem_queue *queue, struct idem_op *op)
{
    assert_ok(idem_queue_submit(queue, op, &why));
}

/* ---- Reaping ---- */

/* The answer that was given first is reaped first. */
TEST_ON(reap, givesTheOldestAnswer, answer)
{
    static const char *const keys[] = {"a", "b", "c", "d"};
    size_t i;

    for (i = 0; i < COUNT(keys); i++) {
        submit(queue, make_op(keys[i]));
    }
    assert_int_equal(idem_queue_len(queue), 4);
    for (i = 0; i < COUNT(keys); i++) {
        struct idem_op *op = idem_queue_reap(queue, 0);

        assert_non_null(op);
        assert_text(op->key, keys[i]);
        assert_int_equal(idem_queue_len(queue), 3 - i);
        idem_op_destroy(op);
    }
    assert_null(idem_queue_reap(queue, 0));
}

/* It waits as long as it was told, and not at all if told so. A busy machine is
 * asked again. */
TEST_ON(reap, endsAtItsTimeout, leave_waiting)
{
    long long took_ms = AT_ONCE_MS;
    long long before_ms;
    int i;

    submit(queue, make_op("a"));
    for (i = 0; i < TRIES && took_ms >= AT_ONCE_MS; i++) {
        before_ms = now_ms();
        assert_null(idem_queue_reap(queue, 0));
        assert_null(idem_queue_reap(queue, 0));
        took_ms = now_ms() - before_ms;
    }
    assert_in_time(took_ms, AT_ONCE_MS);
    before_ms = now_ms();
    assert_null(idem_queue_reap(queue, 60));
    assert_true(now_ms() - before_ms >= 60);
    assert_int_equal(idem_queue_len(queue), 1);
}

/* ---- The descriptor ---- */

static struct idem_queue *asked;
static bool was_locked;

static int own_fd(struct idem_store *store)
{
    (void)store;
    was_locked = pthread_mutex_trylock(&asked->mutex) != 0;
    if (!was_locked) {
        (void)pthread_mutex_unlock(&asked->mutex);
    }
    return STDIN_FILENO;
}

/* A store is asked for its own without the queue's lock, which it takes itself
 * while it gives answers under its own. */
TEST(fd, isAskedOfTheStoreWithoutTheLock)
{
    struct script script;
    struct idem_store *store = script_open(&script, answer, NULL);
    struct idem_store_ops ops = *store->ops;

    ops.fd = own_fd;
    store->ops = &ops;
    asked = make_queue(store);
    was_locked = true;
    (void)idem_queue_fd(asked);
    assert_false(was_locked);
    idem_queue_destroy(asked);
    idem_close(store);
}

/* ---- Sleeping ---- */

static void poke_soon(void *ctx)
{
    sleep_ms(30);
    idem__queue_poke(ctx);
}

/* A sleep ends at its deadline, at a poke, and does not begin after one. */
TEST_ON(sleep, endsAtDeadlineOrPoke, answer)
{
    long long before_ms = now_ms();
    struct thread *thread;

    idem__queue_sleep(queue, before_ms + 40);
    assert_true(now_ms() - before_ms >= 39);

    thread = thread_start(poke_soon, queue);
    idem__queue_sleep(queue, IDEM_NEVER);
    thread_join(thread);

    before_ms = now_ms();
    idem__queue_poke(queue);
    idem__queue_sleep(queue, before_ms + LOST_MS);
    assert_in_time(now_ms() - before_ms, BOUND_MS);

    idem__queue_sleep(queue, 0);
    assert_false(idem__queue_ready(queue));
    assert_false(idem__queue_has_sleeper(queue));
}

/* ---- Submitting ---- */

/* What the store does not take stays the caller's, and may be submitted later. */
TEST_ON(submit, leavesARefusedOpToItsCaller, answer)
{
    struct idem_op *op = make_op("a");
    uint8_t nonce[16];

    script->refuse = IDEM_EUNAVAILABLE;
    assert_code(IDEM_EUNAVAILABLE, idem_queue_submit(queue, op, &why));
    assert_why("too many");
    assert_int_equal(why.code, IDEM_EUNAVAILABLE);
    assert_int_equal(idem_op_code(op), IDEM_EUNAVAILABLE);
    assert_int_equal(idem_queue_len(queue), 0);
    assert_null(idem_queue_reap(queue, -1));
    memcpy(nonce, op->nonce, 16);

    script->refuse = 0;
    submit(queue, op);
    assert_ptr_equal(idem_queue_reap(queue, 0), op);
    assert_code(IDEM_OK, idem_op_code(op));
    assert_memory_equal(op->nonce, nonce, 16);
    idem_op_destroy(op);
}

/* An op that is under way cannot be submitted, to this queue or another. */
TEST_ON(submit, refusesWhatIsUnderWay, keep)
{
    struct idem_queue *other = make_queue(store);
    struct idem_op *op = make_op("a");

    submit(queue, op);
    assert_code(IDEM_EINVALID, idem_queue_submit(queue, op, &why));
    assert_why("in flight");
    assert_null(idem_queue_reap(queue, 0));
    assert_code(IDEM_EINVALID, idem_queue_submit(other, op, &why));
    assert_int_equal(idem_queue_len(queue), 1);
    assert_int_equal(idem_queue_len(other), 0);

    script_release(script);
    assert_code(IDEM_EINVALID, idem_queue_submit(queue, op, &why));
    assert_ptr_equal(idem_queue_reap(queue, 0), op);
    submit(other, op);
    assert_null(idem_queue_reap(other, 0));
    script_release(script);
    assert_ptr_equal(idem_queue_reap(other, 0), op);
    idem_op_destroy(op);
    idem_queue_destroy(other);
}

/* ---- Taking back ---- */

static int blocking_begin(struct idem_store *store)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt = NULL;
    int rc;

    request.key = idem_str("k");
    request.on_expired_lease = IDEM_HOLD;
    rc = idem_begin(store, &request, &attempt, &why);
    idem_attempt_destroy(attempt);
    return rc;
}

/* A blocking call that is not begun in time was not done, and says so. */
TEST(cancel, ofAPendingOpIsUnavailable)
{
    struct script script;
    struct idem_store *store = script_open(&script, leave_waiting, NULL);
    long long before_ms = now_ms();

    assert_code(IDEM_EUNAVAILABLE, blocking_begin(store));
    assert_why("nothing was done");
    assert_why("200 ms");
    assert_true(now_ms() - before_ms >= 200);
    assert_null(script.pending);
    idem_close(store);
}

/* A read that is not answered in time has changed nothing: it is unavailable,
 * and never unknown. */
TEST(cancel, ofARunningReadIsUnavailable)
{
    struct script script;
    struct idem_store *store = script_open(&script, keep, NULL);
    struct idem_answer *got;

    assert_code(IDEM_EUNAVAILABLE,
                idem_get(store, idem_str(""), idem_str("k"), &got, &why));
    script_release(&script);
    idem_close(store);
}
