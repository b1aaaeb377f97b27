/* Whole writes to descriptors that may be anything. */
#include "process/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
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

int64_t io_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
