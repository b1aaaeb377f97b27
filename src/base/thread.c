/* Threads of the library's own. */
#include "base/thread.h"

#include <signal.h>

/* A thread inherits the mask that its maker has at that moment. */
int idem__thread_start(pthread_t *ret_thread, void *(*run)(void *arg),
                       void *arg)
{
    sigset_t all;
    sigset_t old;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(ret_thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}
