/* Waiting for company: only for what can be expected, and less often where it was
 * in vain. */
#include "store/shared/group.h"

#include "base/host.h"
#include "test.h"
#include "threads.h"

enum {
    PATIENCE_MS = 40000,
    LONG_MS = 100000 /* So long a wait would be that nothing bounds. */
};

/* One leader's wait with @pending ops. True if it waited, for nobody. */
static bool waits(struct idem__gather *gather, size_t pending)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    unsigned before = gather->misses;
    unsigned skip = gather->skip;

    (void)pthread_mutex_lock(&mutex);
    idem__gather_wait(gather, &pending, &mutex);
    (void)pthread_mutex_unlock(&mutex);
    assert_int_equal(gather->wanted, 0);
    return gather->misses > before || (before > 0 && gather->skip > skip);
}

static struct idem__gather after(size_t len, size_t pending)
{
    struct idem__gather gather;

    idem__gather_init(&gather);
    idem__gather_ran(&gather, len, pending, 200000);
    return gather;
}

/* Whoever is alone does not wait, nor who leads the first batch of all. */
TEST(gather, leavesALoneCallerAlone)
{
    struct idem__gather gather;
    int i;

    idem__gather_init(&gather);
    assert_false(waits(&gather, 1));
    for (i = 0; i < 100; i++) {
        idem__gather_ran(&gather, 1, 0, 200000);
        assert_false(waits(&gather, 1));
    }
}

/* All that can be expected are those who were answered and those who were
 * pending; when they are there, nobody waits. */
TEST(gather, waitsForThoseWhoWereThere)
{
    struct idem__gather gather = after(4, 3);

    assert_int_equal(gather.expected, 7);
    assert_false(waits(&gather, 7));
    assert_false(waits(&gather, 9));
    assert_true(waits(&gather, 6));
}

/* What was in vain is tried less and less often, and never given up. */
TEST(gather, triesLessOftenWhatIsInVain)
{
    struct idem__gather gather = after(4, 4);
    unsigned waited = 0;
    int i;

    for (i = 0; i < 1000; i++) {
        idem__gather_ran(&gather, 4, 4, 1000);
        waited += waits(&gather, 4);
    }
    assert_true(waited > 5 && waited < 25);
}

struct company {
    struct idem__gather gather;
    pthread_mutex_t mutex;
    size_t pending;
};

static void come(void *ctx)
{
    struct company *company = ctx;

    sleep_ms(20);
    (void)pthread_mutex_lock(&company->mutex);
    company->pending++;
    idem__gather_came(&company->gather, company->pending);
    (void)pthread_mutex_unlock(&company->mutex);
}

/* Who comes ends the wait, and makes up for waits in vain. */
TEST(gather, endsWhenTheyCome)
{
    struct company company = {.gather = after(1, 1), .pending = 1};
    long long since_ms = now_ms();
    struct thread *thread;

    (void)pthread_mutex_init(&company.mutex, NULL);
    company.gather.wait_max_ns = idem__time_ns(LONG_MS);
    company.gather.batch_ns = idem__time_ns(2 * LONG_MS);
    company.gather.misses = 8;
    /* Nobody comes before the wait. */
    (void)pthread_mutex_lock(&company.mutex);
    thread = thread_start(come, &company);
    idem__gather_wait(&company.gather, &company.pending, &company.mutex);
    (void)pthread_mutex_unlock(&company.mutex);
    thread_join(thread);
    assert_int_equal(company.pending, 2);
    assert_true(now_ms() - since_ms >= 20);
    assert_in_time(now_ms() - since_ms, PATIENCE_MS);
    assert_int_equal(company.gather.misses, 4);
    (void)pthread_mutex_destroy(&company.mutex);
}

/* It waits for half of what a batch takes, or for its limit. */
TEST(gather, isBounded)
{
    struct idem__gather gather = after(2, 0);
    long long since_ms = now_ms();

    gather.batch_ns = idem__time_ns(LONG_MS);
    assert_true(waits(&gather, 1));
    assert_in_time(now_ms() - since_ms, PATIENCE_MS);
    gather = after(2, 0);
    gather.wait_max_ns = idem__time_ns(LONG_MS);
    gather.batch_ns = idem__time_ns(40);
    since_ms = now_ms();
    assert_true(waits(&gather, 1));
    assert_true(now_ms() - since_ms >= 19);
    assert_in_time(now_ms() - since_ms, PATIENCE_MS);
}
