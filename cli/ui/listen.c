/* The socket of the page. */
#include "ui/mhd.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <unistd.h>

enum {
    BACKLOG = 32
};

union any {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int bind_to(int fd, const struct sockaddr *address, unsigned *ret_port)
{
    bool is_v6 = address->sa_family == AF_INET6;
    union any got;
    socklen_t len = is_v6 ? sizeof(got.v6) : sizeof(got.v4);
    int yes = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, address, len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, &got.any, &len) != 0) {
        return -1;
    }
    *ret_port = ntohs(is_v6 ? got.v6.sin6_port : got.v4.sin_port);
    return 0;
}

int ui_listen(const struct sockaddr *address, unsigned *ret_port)
{
    int fd = socket(address->sa_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error;

    if (fd >= 0 && bind_to(fd, address, ret_port) != 0) {
        error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}
