/* Lets callers of this process sleep until a record changes.
 *
 * Waiters sleep in buckets by id, and a change wakes one bucket. A waiter takes a mark,
 * reads the record, and then sleeps with that mark. A change between the read and the
 * sleep has moved the mark, so the sleep ends at once: no wake-up is lost. A change of
 * another id in the same bucket wakes it for nothing, and it reads again.
 */
#include "queue/queue.h"

#include "base/heap.h"
#include "base/host.h"

#include <pthread.h>
#include <time.h>

enum {
    BUCKETS = 64
};

struct bucket {
    pthread_cond_t cond;
    uint64_t changes;
    unsigned sleepers;
};

struct idem_waiters {
    pthread_mutex_t mutex;
    struct bucket buckets[BUCKETS];
};

struct idem_waiters *idem__waiters_create(void)
{
    struct idem_waiters *waiters = idem__zalloc(sizeof(*waiters));
    pthread_condattr_t attr;
    size_t i;

    if (waiters == NULL) {
        return NULL;
    }
    if (pthread_condattr_init(&attr) != 0) {
        idem__free(waiters);
        return NULL;
    }
    /* None of these can fail on Linux once the attribute is there. */
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&waiters->mutex, NULL);
    for (i = 0; i < BUCKETS; i++) {
        (void)pthread_cond_init(&waiters->buckets[i].cond, &attr);
    }
    (void)pthread_condattr_destroy(&attr);
    return waiters;
}

void idem__waiters_destroy(struct idem_waiters *waiters)
{
    size_t i;

    if (waiters == NULL) {
        return;
    }
    for (i = 0; i < BUCKETS; i++) {
        (void)pthread_cond_destroy(&waiters->buckets[i].cond);
    }
    (void)pthread_mutex_destroy(&waiters->mutex);
    idem__free(waiters);
}

static struct bucket *bucket_of(struct idem_waiters *waiters, const uint8_t *id)
{
    return &waiters->buckets[id[0] % BUCKETS];
}

uint64_t idem__waiters_mark(struct idem_waiters *waiters, const uint8_t *id)
{
    uint64_t mark;

    (void)pthread_mutex_lock(&waiters->mutex);
    mark = bucket_of(waiters, id)->changes;
    (void)pthread_mutex_unlock(&waiters->mutex);
    return mark;
}

void idem__waiters_sleep(struct idem_waiters *waiters, const uint8_t *id,
                         uint64_t mark, int64_t ms)
{
    struct bucket *bucket = bucket_of(waiters, id);
    int64_t end_ms = idem__time_add(idem__mono_ms(), ms);
    struct timespec until = {
        .tv_sec = (time_t)(end_ms / 1000),
        .tv_nsec = (long)(end_ms % 1000) * 1000000,
    };
    int rc = 0;

    (void)pthread_mutex_lock(&waiters->mutex);
    bucket->sleepers++;
    /* If the mark has moved, the record changed after the read: do not sleep. */
    while (bucket->changes == mark && rc == 0) {
        rc = pthread_cond_timedwait(&bucket->cond, &waiters->mutex, &until);
    }
    bucket->sleepers--;
    (void)pthread_mutex_unlock(&waiters->mutex);
}

void idem__store_changed(struct idem_store *store, const uint8_t *id)
{
    struct idem_waiters *waiters = store->waiters;
    struct bucket *bucket;

    if (waiters == NULL) {
        return;
    }
    bucket = bucket_of(waiters, id);
    (void)pthread_mutex_lock(&waiters->mutex);
    bucket->changes++;
    if (bucket->sleepers > 0) {
        (void)pthread_cond_broadcast(&bucket->cond);
    }
    (void)pthread_mutex_unlock(&waiters->mutex);
}
