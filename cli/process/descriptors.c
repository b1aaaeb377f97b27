/* Writing to descriptors, copying them, files in memory, and which descriptors a
 * command inherits. */
#include "process/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

int io_write_all(int fd, const void *bytes, size_t len)
{
    const char *p = bytes;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n >= 0) {
            p += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd full = {.fd = fd, .events = POLLOUT};

            (void)poll(&full, 1, -1);
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

bool io_is_writable(int fd)
{
    struct pollfd sink = {.fd = fd, .events = POLLOUT};

    return poll(&sink, 1, 0) == 1;
}

int io_copy(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void io_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

int memory_file_open(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}

int memory_file_of(const char *name, const void *bytes, size_t len)
{
    int fd = memory_file_open(name);

    if (fd >= 0 &&
        (io_write_all(fd, bytes, len) != 0 || lseek(fd, 0, SEEK_SET) != 0)) {
        io_close(&fd);
    }
    return fd;
}

/* libcurl opens some descriptors without close-on-exec, and has no option for it. */
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

/* They are opened the wrong way round on purpose: reading a standard input that was
 * closed must fail, and so must writing to a closed output. */
void cli_open_std_fds(void)
{
    int fd;

    for (fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }
}
