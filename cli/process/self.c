/* This process, as the kernel knows it. */
#include "process/self.h"

#include <sys/prctl.h>
#include <unistd.h>

void self_set_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name);
}

void self_end_with(pid_t parent, int signo)
{
    (void)prctl(PR_SET_PDEATHSIG, signo);
    /* A parent that ended before the request sends nothing. */
    if (getppid() != parent) {
        _exit(128 + signo);
    }
}
