/* The services of the host: the time, a timer, random bytes, and the folder
 * of this user. */
#include "process/host.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

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

int64_t io_now_ms(void)
{
    return read_ms(CLOCK_BOOTTIME);
}

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

int cli_random(void *buf, size_t len)
{
    return getrandom(buf, len, 0) == (ssize_t)len ? 0 : -1;
}

char *cli_state_path(const char *name)
{
    const char *home = secure_getenv("XDG_STATE_HOME");
    const char *below = "";
    char *path;

    if (home == NULL || home[0] != '/') { /* The standard wants it absolute. */
        home = geteuid() == 0 ? "/var/lib" : NULL;
    }
    if (home == NULL) {
        home = secure_getenv("HOME");
        below = "/.local/state";
    }
    if (home == NULL || home[0] != '/') {
        errno = ENOENT;
        return NULL;
    }
    if (asprintf(&path, "%s%s/idem/%s", home, below, name) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    return path;
}

int cli_make_directories(char *path)
{
    char *slash;

    for (slash = strchr(path + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            return -1;
        }
        *slash = '/';
    }
    return 0;
}
