/* One descriptor that is readable while any of several is ready: epoll(7). */
#ifndef IDEM_BASE_WATCH_H
#define IDEM_BASE_WATCH_H

#include <poll.h>

/* A watch of nothing, closed by exec. The caller closes it. -1, with errno. */
int idem__watch_open(void);

/* Watches @fd from now on, or changes what for: POLLIN, POLLOUT, or both. An error
 * and a hangup always count. 0, or -1 with errno. */
int idem__watch_add(int watch, int fd, short events);
int idem__watch_change(int watch, int fd, short events);

/* Does not watch @fd any more. A copy of it in a child is watched until then. */
int idem__watch_remove(int watch, int fd);

/* Waits for at most @timeout_ms (-1: without end) until one is ready. Fills in fd and
 * revents (POLLIN, POLLOUT, POLLERR, POLLHUP) of at most @max in @ret_ready, @max at
 * most IDEM__WATCH_MAX. Returns how many; 0 also where a signal came. */
int idem__watch_wait(int watch, struct pollfd *ret_ready, int max,
                     int timeout_ms);

enum {
    IDEM__WATCH_MAX = 128
};

#endif
