/* Callers that wait for a record: woken by its change. */
#include "queue/queue.h"

#include "script.h"
#include "store/shared/tally.h"
#include "test.h"
#include "threads.h"

enum {
    BOUND_MS = 30000,
    LOST_MS = 60000 /* So long a sleep lasts that nothing ends. */
};

static enum script_does answer(struct script *script, struct idem_op *op)
{
    (void)script;
    (void)op;
    return SCRIPT_ANSWERS;
}

struct change {
    struct idem_store *store;
    const uint8_t *id;
};

static void change_soon(void *ctx)
{
    struct change *change = ctx;

    sleep_ms(50);
    idem__store_changed(change->store, change->id);
}

/* A change wakes who waits for that record, long before the time is over. */
TEST(waiters, areWokenByAChange)
{
    static const uint8_t id[IDEM_ID_LEN] = {7};
    struct script script;
    struct idem_store *store = script_open(&script, answer, NULL);
    struct change change = {store, id};
    long long before_ms = now_ms();
    uint64_t mark = idem__waiters_mark(store->waiters, id);
    struct thread *thread = thread_start(change_soon, &change);

    idem__waiters_sleep(store->waiters, id, mark, LOST_MS);
    thread_join(thread);
    assert_in_time(now_ms() - before_ms, BOUND_MS);
    idem_close(store);
}

/* A change after the mark and before the sleep is not lost. */
TEST(waiters, missNothing)
{
    static const uint8_t id[IDEM_ID_LEN] = {7};
    struct script script;
    struct idem_store *store = script_open(&script, answer, NULL);
    long long before_ms = now_ms();
    uint64_t mark = idem__waiters_mark(store->waiters, id);

    idem__store_changed(store, id);
    idem__waiters_sleep(store->waiters, id, mark, LOST_MS);
    assert_in_time(now_ms() - before_ms, BOUND_MS);
    idem_close(store);
}

/* Without a change the sleep lasts as long as was said. */
TEST(waiters, sleepTheirTime)
{
    static const uint8_t id[IDEM_ID_LEN] = {7};
    static const uint8_t other[IDEM_ID_LEN] = {8};
    struct script script;
    struct idem_store *store = script_open(&script, answer, NULL);
    long long before_ms = now_ms();
    uint64_t mark = idem__waiters_mark(store->waiters, id);

    idem__store_changed(store, other);
    idem__waiters_sleep(store->waiters, id, mark, 40);
    assert_true(now_ms() - before_ms >= 39);
    idem__waiters_sleep(store->waiters, id, mark, 0);
    idem_close(store);
}
