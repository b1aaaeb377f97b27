/* Decides how long a leader waits for other callers before it runs a batch.
 *
 * Callers that have just got their answers come back with their next op, but later than
 * the next leader is ready. Without a wait, the callers split into two halves that take
 * turns, and each flush carries half as many ops as it could. So the leader waits until
 * as many ops are queued as last time, but no longer than half the time of a batch, or
 * 0.1 ms. After a wait in vain it waits less often. A lone caller expects no other, and
 * never waits. */
#include "store/shared/group.h"

#include "base/host.h"
#include "base/wait.h"

#include <stdbool.h>
#include <string.h>

enum {
    WAIT_MAX_NS = 100 * 1000,
    EXPECTED_MAX = 512,
    MISSES_MAX = 64,
    SMOOTH = 8 /* batch_ns is the mean of about so many batches. */
};

void idem__gather_init(struct idem__gather *gather)
{
    memset(gather, 0, sizeof(*gather));
    gather->wait_max_ns = WAIT_MAX_NS;
}

/* True if this batch should run at once. */
static bool is_skipped(struct idem__gather *gather, size_t pending)
{
    if (pending >= gather->expected) {
        return true;
    }
    /* The last waits were in vain, so some batches run without one. */
    if (gather->skip > 0) {
        gather->skip--;
        return true;
    }
    return false;
}

static int64_t patience_ns(const struct idem__gather *gather)
{
    int64_t ns = gather->batch_ns / 2;

    return ns < gather->wait_max_ns ? ns : gather->wait_max_ns;
}

static void learn(struct idem__gather *gather, bool came)
{
    if (came) {
        gather->misses /= 2;
    } else if (gather->misses < MISSES_MAX) {
        gather->misses = 2 * gather->misses + 1;
    }
    gather->skip = gather->misses;
}

void idem__gather_wait(struct idem__gather *gather, const size_t *pending,
                       pthread_mutex_t *mutex)
{
    int64_t until_ns;
    bool late = false;

    if (is_skipped(gather, *pending)) {
        return;
    }
    until_ns = idem__mono_ns() + patience_ns(gather);
    gather->wanted = gather->expected;
    while (!late && *pending < gather->wanted) {
        /* Read under the mutex: an op that comes after the unlock changes the word, and the
         * wait ends at once. */
        uint32_t heard = gather->wake_word;

        (void)pthread_mutex_unlock(mutex);
        late = !idem__futex_wait(&gather->wake_word, heard, until_ns,
                                 IDEM__FUTEX_PROCESS);
        (void)pthread_mutex_lock(mutex);
    }
    learn(gather, *pending >= gather->wanted);
    gather->wanted = 0;
}

void idem__gather_came(struct idem__gather *gather, size_t pending)
{
    if (gather->wanted > 0 && pending >= gather->wanted) {
        (void)__atomic_add_fetch(&gather->wake_word, 1, __ATOMIC_RELEASE);
        idem__futex_wake(&gather->wake_word, IDEM__FUTEX_PROCESS);
    }
}

void idem__gather_ran(struct idem__gather *gather, size_t len, size_t pending,
                      int64_t took_ns)
{
    /* The callers that were answered come back soon, and the pending ops are here already. */
    size_t expected = len + pending;

    gather->expected = expected < EXPECTED_MAX ? expected : EXPECTED_MAX;
    gather->batch_ns += (took_ns - gather->batch_ns) / SMOOTH;
}
