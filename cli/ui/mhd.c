/* libmicrohttpd, loaded when it is needed, and the socket that it answers on. */
#include "text/error.h"
#include "ui/request.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <unistd.h>

/* ---- libmicrohttpd ---- */

static struct ui_mhd functions;

static bool find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);

    memcpy(slot, &function, sizeof(function));
    return function != NULL;
}

static bool find_all(void *library)
{
#define X(name)                                                                \
    if (!find(library, "MHD_" #name, &functions.name)) {                       \
        return false;                                                          \
    }
    UI_MHD_MAP(X)
#undef X
    return true;
}

const struct ui_mhd *ui_mhd(void)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        cli_say("libmicrohttpd is needed for this and is not installed: apt "
                "install libmicrohttpd12");
        return NULL;
    }
    if (!find_all(library)) {
        cli_say("libmicrohttpd cannot be used: it lacks a function");
        return NULL;
    }
    return &functions;
}

/* ---- The socket ---- */

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
