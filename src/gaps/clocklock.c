/* Provides pthread_mutex_clocklock() if the C library lacks it. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum {
    NS_PER_S = 1000000000,
    SLICE_NS = 100000000
};

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* pthread_mutex_timedlock() waits by the wall clock, which people can set. So this
 * waits in short slices, and only @clock decides when the wait is over. */
int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                            const struct timespec *until)
{
    int64_t end_ns = (int64_t)until->tv_sec * NS_PER_S + until->tv_nsec;
    struct timespec slice;
    int64_t left_ns;
    int64_t at_ns;
    int rc;

    do {
        left_ns = end_ns - now_ns(clock);
        left_ns = left_ns < SLICE_NS ? left_ns : SLICE_NS;
        at_ns = now_ns(CLOCK_REALTIME) + (left_ns > 0 ? left_ns : 0);
        slice.tv_sec = (time_t)(at_ns / NS_PER_S);
        slice.tv_nsec = (long)(at_ns % NS_PER_S);
        rc = pthread_mutex_timedlock(mutex, &slice);
    } while (rc == ETIMEDOUT && now_ns(clock) < end_ns);
    return rc;
}
