/* A descriptor that becomes readable at a moment. */
#include "base/timer.h"

#include <idem.h>
#include <sys/timerfd.h>
#include <time.h>

int idem__timer_open(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

void idem__timer_set(int timer, int64_t due_ms)
{
    struct itimerspec at = {.it_value = {0, 0}}; /* 0 and 0: it is not set. */

    if (due_ms != IDEM_NEVER) {
        due_ms = due_ms < 1 ? 1 : due_ms;
        at.it_value.tv_sec = (time_t)(due_ms / 1000);
        at.it_value.tv_nsec = (long)(due_ms % 1000) * 1000000;
    }
    (void)timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}
