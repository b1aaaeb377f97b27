/* Sleeping until a word changes. */
#include "base/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Where long has 32 bits, the elder call takes seconds of 32 bits, and time_t has
 * 64: it would take one half of them for the nanoseconds. */
#ifdef SYS_futex_time64
#define CALL SYS_futex_time64
#else
#define CALL SYS_futex
#endif

static int operation(int base, enum idem__futex_reach reach)
{
    return reach == IDEM__FUTEX_PROCESS ? base | FUTEX_PRIVATE_FLAG : base;
}

bool idem__futex_wait(const uint32_t *word, uint32_t seen, int64_t deadline_ns,
                      enum idem__futex_reach reach)
{
    const struct timespec until = {
        .tv_sec = (time_t)(deadline_ns / 1000000000),
        .tv_nsec = (long)(deadline_ns % 1000000000),
    };

    /* With a bitset the time is a point of CLOCK_MONOTONIC, not a length. */
    return syscall(CALL, word, operation(FUTEX_WAIT_BITSET, reach), seen,
                   deadline_ns == IDEM_NEVER ? NULL : &until, NULL,
                   FUTEX_BITSET_MATCH_ANY) == 0 ||
           errno != ETIMEDOUT;
}

void idem__futex_wake(const uint32_t *word, enum idem__futex_reach reach)
{
    (void)syscall(CALL, word, operation(FUTEX_WAKE, reach), INT_MAX);
}
