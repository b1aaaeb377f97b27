/* Children of this process, by descriptor, and what ends with whom. */
#include "base/family.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* P_PIDFD, which older headers lack, and newer ones have as an enumerator. */
#define BY_DESCRIPTOR ((idtype_t)3)

int idem__child_open(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

bool idem__child_signal(int child, int signo)
{
#ifdef SYS_pidfd_send_signal
    if (child >= 0) {
        (void)syscall(SYS_pidfd_send_signal, child, signo, NULL, 0);
        return true;
    }
#endif
    (void)child;
    (void)signo;
    return false;
}

int idem__child_wait(int child, pid_t pid, int flags)
{
    siginfo_t info;
    int rc;

    memset(&info, 0, sizeof(info));
    do {
        rc = child < 0
                 ? waitid(P_PID, (id_t)pid, &info, WEXITED | flags)
                 : waitid(BY_DESCRIPTOR, (id_t)child, &info, WEXITED | flags);
        if (rc != 0 && errno == EINVAL && child >= 0) {
            child = -1; /* Linux before 5.4. */
            errno = EINTR;
        }
    } while (rc != 0 && errno == EINTR);
    return rc != 0 || info.si_pid != 0;
}

void idem__die_with_parent(int signo)
{
    (void)prctl(PR_SET_PDEATHSIG, (long)signo, 0L, 0L, 0L);
}

int idem__adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
}
