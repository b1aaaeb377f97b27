/* The sockets of a client, kept registered while they are idle. */
#include "aws/client/sockets.h"

#include "base/heap.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

int idem__sockets_open(struct idem__sockets *sockets, size_t max)
{
    struct epoll_event event = {.events = EPOLLIN};

    memset(sockets, 0, sizeof(*sockets));
    sockets->epoll = epoll_create1(EPOLL_CLOEXEC);
    sockets->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    /* Two addresses of a host may be tried at once. */
    sockets->kept = idem__alloc(2 * max * sizeof(*sockets->kept));
    event.data.fd = sockets->wake;
    if (sockets->epoll < 0 || sockets->wake < 0 || sockets->kept == NULL ||
        epoll_ctl(sockets->epoll, EPOLL_CTL_ADD, sockets->wake, &event) != 0) {
        return IDEM_ENOMEM;
    }
    sockets->kept_cap = 2 * max;
    return 0;
}

void idem__sockets_close(struct idem__sockets *sockets)
{
    if (sockets->epoll >= 0) {
        (void)close(sockets->epoll);
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
    /* Closing alone is not enough where a child holds a copy. */
    if (kept->registered != 0) {
        (void)epoll_ctl(sockets->epoll, EPOLL_CTL_DEL, fd, NULL);
    }
    *kept = sockets->kept[sockets->kept_len - 1];
    sockets->kept_len--;
}

static int control(struct idem__sockets *sockets, int how, int fd,
                   uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    return epoll_ctl(sockets->epoll, how, fd, &event);
}

int idem__sockets_want(struct idem__sockets *sockets, int fd, uint32_t wanted,
                       bool is_new)
{
    struct idem__socket *kept = find(sockets, fd);
    int how = EPOLL_CTL_MOD;

    if (kept == NULL) {
        how = wanted == 0 ? EPOLL_CTL_DEL : is_new ? EPOLL_CTL_ADD : how;
        return control(sockets, how, fd, wanted);
    }
    kept->wanted = wanted;
    if (wanted == 0 || wanted == kept->registered) {
        return 0;
    }
    how = kept->registered == 0 ? EPOLL_CTL_ADD : how;
    kept->registered = wanted;
    return control(sockets, how, fd, wanted);
}

/* Whatever it says, it says it too early. Once it is shut down nothing can come that
 * is not an error, so that after this it has ended for every reader. */
static void end(int fd)
{
    char bytes[4096];

    (void)shutdown(fd, SHUT_RDWR);
    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
    }
}

/* False: nobody waits for it. It has ended, and is not reported any more. */
static bool is_wanted(struct idem__sockets *sockets, int fd)
{
    struct idem__socket *kept = find(sockets, fd);

    if (kept == NULL || kept->wanted != 0) {
        return true;
    }
    end(fd);
    (void)control(sockets, EPOLL_CTL_DEL, fd, 0);
    kept->registered = 0;
    return false;
}

int idem__sockets_ready(struct idem__sockets *sockets,
                        struct epoll_event *events, int max)
{
    int n = epoll_wait(sockets->epoll, events, max, 0);
    int ready = 0;
    int i;

    for (i = 0; i < n; i++) {
        if (events[i].data.fd == sockets->wake ||
            is_wanted(sockets, events[i].data.fd)) {
            events[ready++] = events[i];
        }
    }
    return ready;
}
