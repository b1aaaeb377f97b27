/* Blocking signals around calls of libcurl. */
#include "aws/client/quiet.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

void idem__quiet_begin(struct idem__quiet *quiet)
{
    sigset_t all;

    (void)sigfillset(&all);
    quiet->blocked = pthread_sigmask(SIG_SETMASK, &all, &quiet->before) == 0;
}

void idem__quiet_end(struct idem__quiet *quiet)
{
    static const struct timespec at_once = {0, 0};
    sigset_t pipe;

    if (!quiet->blocked) {
        return;
    }
    /* If it was not blocked before, it was not pending before. */
    if (sigismember(&quiet->before, SIGPIPE) == 0) {
        (void)sigemptyset(&pipe);
        (void)sigaddset(&pipe, SIGPIPE);
        while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}
