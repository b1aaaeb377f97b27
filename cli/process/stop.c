/* Signals as something to wait for: none is missed between a look and a pause. */
#include "process/stop.h"

#include "process/signal_fd.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>

int cli_stop_fd(void)
{
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    fd = signal_fd_open(&set);
    if (fd < 0) {
        (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    return fd;
}

bool cli_stop_within(int fd, int64_t ms)
{
    struct pollfd stop = {.fd = fd, .events = POLLIN};

    while (ms > 0) {
        int part = ms > INT_MAX ? INT_MAX : (int)ms;
        int n = poll(&stop, 1, part);

        if (n > 0) {
            return true;
        }
        ms -= n == 0 ? part : 0;
    }
    return false;
}
