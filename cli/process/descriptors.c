/* Descriptors that a command must not inherit from us: libcurl makes some without
 * close-on-exec, and knows no way to be told. */
#include "process/descriptors.h"

#include <errno.h>
#include <fcntl.h>

void cli_descriptors_note(struct cli_descriptors *ret_noted)
{
    int fd;

    for (fd = 0; fd < CLI_DESCRIPTORS; fd++) {
        ret_noted->open[fd] = fcntl(fd, F_GETFD) >= 0;
    }
}

void cli_descriptors_keep(const struct cli_descriptors *noted)
{
    int fd;

    for (fd = 0; fd < CLI_DESCRIPTORS; fd++) {
        int flags = noted->open[fd] ? -1 : fcntl(fd, F_GETFD);

        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) {
            (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
        }
    }
}

/* Opened the wrong way round on purpose: reading from a standard input that was
 * closed must fail, and so must writing to such an output. */
void cli_open_std_fds(void)
{
    int fd;

    for (fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }
}
