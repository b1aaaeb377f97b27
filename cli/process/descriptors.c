/* Descriptors that a command must not inherit from us: libcurl makes some without
 * close-on-exec, and knows no way to be told. */
#include "process/descriptors.h"

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
