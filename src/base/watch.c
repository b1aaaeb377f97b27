/* One descriptor that is readable while any of several is ready. */
#include "base/watch.h"

#include <stdint.h>
#include <sys/epoll.h>

/* Linux gives the events of epoll the numbers of those of poll. */
_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT &&
                   EPOLLERR == POLLERR && EPOLLHUP == POLLHUP,
               "an event has one number");

int idem__watch_open(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

static int control(int watch, int how, int fd, short events)
{
    struct epoll_event event = {.events = (uint32_t)events, .data.fd = fd};

    return epoll_ctl(watch, how, fd, &event);
}

int idem__watch_add(int watch, int fd, short events)
{
    return control(watch, EPOLL_CTL_ADD, fd, events);
}

int idem__watch_change(int watch, int fd, short events)
{
    return control(watch, EPOLL_CTL_MOD, fd, events);
}

int idem__watch_remove(int watch, int fd)
{
    return control(watch, EPOLL_CTL_DEL, fd, 0);
}

int idem__watch_wait(int watch, struct pollfd *ret_ready, int max,
                     int timeout_ms)
{
    struct epoll_event events[IDEM__WATCH_MAX];
    int n = epoll_wait(watch, events, max, timeout_ms);
    int i;

    for (i = 0; i < n; i++) {
        ret_ready[i].fd = events[i].data.fd;
        ret_ready[i].events = 0;
        ret_ready[i].revents = (short)events[i].events;
    }
    return n < 0 ? 0 : n;
}
