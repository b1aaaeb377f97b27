/* A timer on the clock that counts suspended time. */
#include "process/boot_timer.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int boot_timer_open(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

void boot_timer_set(int fd, int64_t at_ms)
{
    struct itimerspec at = {.it_interval = {0}};

    at.it_value.tv_sec = (time_t)(at_ms / 1000);
    at.it_value.tv_nsec = (long)(at_ms % 1000) * 1000000;
    (void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void boot_timer_take(int fd)
{
    uint64_t expired;

    (void)!read(fd, &expired, sizeof(expired));
}
