/* The clocks that commands read. */
#include "process/clock.h"

#include <time.h>

static int64_t read_ms(clockid_t clock)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t cli_now_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

int64_t cli_mono_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}
