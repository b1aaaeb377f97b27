/* pthread_mutex_clocklock() for builds with the thread sanitizer, which does not know it
 * (in gcc 12 and clang 14), and reports each unlock after it as one by another thread. It
 * does know pthread_mutex_timedlock(), which waits by another clock. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

static int64_t ns_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                            const struct timespec *until)
{
    struct timespec now;
    struct timespec wall;
    int64_t end_ns;

    if (clock_gettime(clock, &now) != 0 ||
        clock_gettime(CLOCK_REALTIME, &wall) != 0) {
        return EINVAL;
    }
    end_ns = ns_of(&wall) + ns_of(until) - ns_of(&now);
    wall.tv_sec = (time_t)(end_ns / 1000000000);
    wall.tv_nsec = (long)(end_ns % 1000000000);
    return pthread_mutex_timedlock(mutex, &wall);
}
