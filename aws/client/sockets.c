/* The sockets of a client, which stay registered while they are idle. */
#include "aws/client/client.h"

#include "base/heap.h"
#include "base/wait.h"

#include <sys/socket.h>
#include <unistd.h>

int idem__sockets_open(struct idem__sockets *sockets, size_t max)
{
    memset(sockets, 0, sizeof(*sockets));
    sockets->watch = idem__watch_open();
    sockets->wake = idem__event_open();
    /* libcurl may try two addresses of a host at once. */
    sockets->kept = idem__alloc(2 * max * sizeof(*sockets->kept));
    if (sockets->watch < 0 || sockets->wake < 0 || sockets->kept == NULL ||
        idem__watch_add(sockets->watch, sockets->wake, POLLIN) != 0) {
        return IDEM_ENOMEM;
    }
    sockets->kept_cap = 2 * max;
    return 0;
}

void idem__sockets_close(struct idem__sockets *sockets)
{
    if (sockets->watch >= 0) {
        (void)close(sockets->watch);
    }
    if (sockets->wake >= 0) {
        (void)close(sockets->wake);
    }
    idem__free(sockets->kept);
}

static struct idem__socket *find(struct idem__sockets *sockets, int fd)
{
    size_t i;

    for (i = 0; i < sockets->kept_len; i++) {
        if (sockets->kept[i].fd == fd) {
            return &sockets->kept[i];
        }
    }
    return NULL;
}

void idem__sockets_opened(struct idem__sockets *sockets, int fd)
{
    struct idem__socket *kept = &sockets->kept[sockets->kept_len];

    if (sockets->kept_len < sockets->kept_cap) {
        kept->fd = fd;
        kept->wanted = 0;
        kept->registered = 0;
        sockets->kept_len++;
    }
}

void idem__sockets_closing(struct idem__sockets *sockets, int fd)
{
    struct idem__socket *kept = find(sockets, fd);

    if (kept == NULL) {
        return;
    }
    /* Closing does not end the registration if a child holds a copy of the descriptor. */
    if (kept->registered != 0) {
        (void)idem__watch_remove(sockets->watch, fd);
    }
    *kept = sockets->kept[sockets->kept_len - 1];
    sockets->kept_len--;
}

int idem__sockets_want(struct idem__sockets *sockets, int fd, short wanted,
                       bool is_new)
{
    struct idem__socket *kept = find(sockets, fd);
    bool adds = kept == NULL ? is_new : kept->registered == 0;

    if (kept == NULL && wanted == 0) {
        return idem__watch_remove(sockets->watch, fd);
    }
    if (kept != NULL) {
        kept->wanted = wanted;
        if (wanted == 0 || wanted == kept->registered) {
            return 0;
        }
        kept->registered = wanted;
    }
    return adds ? idem__watch_add(sockets->watch, fd, wanted)
                : idem__watch_change(sockets->watch, fd, wanted);
}

/* Ends a connection on which something came that nobody requested. After shutdown() no
 * new bytes can arrive, so once the old ones are discarded, every reader finds the end. */
static void end(int fd)
{
    char bytes[4096];

    (void)shutdown(fd, SHUT_RDWR);
    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
    }
}

/* False: libcurl does not wait for the socket, so this has ended it, and it is not
 * reported any more. */
static bool is_wanted(struct idem__sockets *sockets, int fd)
{
    struct idem__socket *kept = find(sockets, fd);

    if (kept == NULL || kept->wanted != 0) {
        return true;
    }
    end(fd);
    (void)idem__watch_remove(sockets->watch, fd);
    kept->registered = 0;
    return false;
}

int idem__sockets_ready(struct idem__sockets *sockets, struct pollfd *ret_ready,
                        int max)
{
    int n = idem__watch_wait(sockets->watch, ret_ready, max, 0);
    int ready = 0;
    int i;

    for (i = 0; i < n; i++) {
        if (ret_ready[i].fd == sockets->wake ||
            is_wanted(sockets, ret_ready[i].fd)) {
            ret_ready[ready++] = ret_ready[i];
        }
    }
    return ready;
}
