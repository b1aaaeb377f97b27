/* Implements the ways to wait: a descriptor that a thread or the time makes readable,
 * one descriptor for several, and a word that changes. */
#include "base/wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* ---- Descriptors that threads or the time make readable ------------------ */

int idem__event_open(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* The write fails only if the count would overflow, and then it is readable already. */
void idem__event_set(int event)
{
    const uint64_t one = 1;

    (void)!write(event, &one, sizeof(one));
}

/* The read fails only if the count is 0 already. */
void idem__event_clear(int event)
{
    uint64_t count;

    (void)!read(event, &count, sizeof(count));
}

int idem__timer_open(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

void idem__timer_set(int timer, int64_t due_ms)
{
    struct itimerspec at = {.it_value = {0, 0}}; /* 0 and 0: it is not set. */

    if (due_ms != IDEM_NEVER) {
        due_ms = due_ms < 1 ? 1 : due_ms;
        at.it_value.tv_sec = (time_t)(due_ms / 1000);
        at.it_value.tv_nsec = (long)(due_ms % 1000) * 1000000;
    }
    (void)timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- One descriptor for several ------------------------------------------ */

/* Linux uses the same numbers for the events of epoll and of poll. */
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

/* ---- A word that changes ------------------------------------------------- */

/* On a platform whose long has 32 bits, the older call reads 32-bit seconds, but time_t
 * has 64 bits: it would take half of the seconds for the nanoseconds. */
#ifdef SYS_futex_time64
#define CALL SYS_futex_time64
#else
#define CALL SYS_futex
#endif

static int operation(int base, enum idem__futex_reach reach)
{
    return reach == IDEM__FUTEX_PROCESS ? base | FUTEX_PRIVATE_FLAG : base;
}

bool idem__futex_wait(const uint32_t *word, uint32_t seen, int64_t deadline_ns,
                      enum idem__futex_reach reach)
{
    const struct timespec until = {
        .tv_sec = (time_t)(deadline_ns / 1000000000),
        .tv_nsec = (long)(deadline_ns % 1000000000),
    };

    /* FUTEX_WAIT_BITSET takes a point of CLOCK_MONOTONIC, FUTEX_WAIT a duration. */
    return syscall(CALL, word, operation(FUTEX_WAIT_BITSET, reach), seen,
                   deadline_ns == IDEM_NEVER ? NULL : &until, NULL,
                   FUTEX_BITSET_MATCH_ANY) == 0 ||
           errno != ETIMEDOUT;
}

void idem__futex_wake(const uint32_t *word, enum idem__futex_reach reach)
{
    (void)syscall(CALL, word, operation(FUTEX_WAKE, reach), INT_MAX);
}
