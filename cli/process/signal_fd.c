/* Signals as reads of a descriptor. */
#include "process/signal_fd.h"

#include <sys/signalfd.h>
#include <unistd.h>

int signal_fd_open(const sigset_t *set)
{
    return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signal_fd_next(int fd)
{
    struct signalfd_siginfo info;

    if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return 0;
    }
    return (int)info.ssi_signo;
}
