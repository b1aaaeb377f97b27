/* wait.h: ways to wait: a descriptor that a thread or the time makes readable, one
 * descriptor for several, and a word that changes. */
#ifndef IDEM_BASE_WAIT_H
#define IDEM_BASE_WAIT_H

#include <idem.h>

#include <poll.h>
#include <stdint.h>

/* ---- A descriptor that threads make readable: eventfd(2) ----------------- */

/* Opens a non-blocking descriptor that is not readable yet and that exec closes. The
 * caller closes it. Returns -1 if descriptors or memory ran out. */
int idem__event_open(void);

/* Makes @event readable until it is cleared. Any thread may call this. */
void idem__event_set(int event);

/* Makes @event unreadable, however often it was set. */
void idem__event_clear(int event);

/* ---- A descriptor that becomes readable at a moment: timerfd(2) ---------- */

/* Opens a timer that is not set and that exec closes. The caller closes it. Returns -1
 * with errno. */
int idem__timer_open(void);

/* Makes @timer readable from @due_ms of idem__mono_ms() on, or never at IDEM_NEVER.
 * Replaces the earlier setting. */
void idem__timer_set(int timer, int64_t due_ms);

/* ---- A descriptor that is readable while any of several is ready: epoll(7) */

/* Opens an empty watch, which exec closes. The caller closes it. Returns -1 with
 * errno. */
int idem__watch_open(void);

/* Start watching @fd for POLLIN, POLLOUT or both, or change that. Errors and hangups
 * always count. They return 0, or -1 with errno. */
int idem__watch_add(int watch, int fd, short events);
int idem__watch_change(int watch, int fd, short events);

/* Stops watching @fd. Call it before closing @fd: a copy in a child keeps the watch
 * alive. */
int idem__watch_remove(int watch, int fd);

/* Waits until a descriptor is ready, or for @timeout_ms (-1: without limit). Sets fd
 * and revents (POLLIN, POLLOUT, POLLERR, POLLHUP) of at most @max items of @ret_ready;
 * @max is at most IDEM__WATCH_MAX. Returns how many; 0 also after a signal. */
int idem__watch_wait(int watch, struct pollfd *ret_ready, int max,
                     int timeout_ms);

enum {
    IDEM__WATCH_MAX = 128
};

/* ---- Sleeping until a word changes: futex(2) ----------------------------- */

/* Which processes may wake each other. */
enum idem__futex_reach {
    IDEM__FUTEX_PROCESS, /* The threads of this process. */
    IDEM__FUTEX_HOST,    /* All processes that have mapped the file. */
};

/* Sleeps if *@word is still @seen, until it is woken or CLOCK_MONOTONIC reaches
 * @deadline_ns (IDEM_NEVER: no deadline). May return early without a reason. Returns
 * false if the deadline was reached. */
bool idem__futex_wait(const uint32_t *word, uint32_t seen, int64_t deadline_ns,
                      enum idem__futex_reach reach);

/* Wakes all sleepers on @word, which the caller has changed. The word is not read: its
 * memory may be gone by now. */
void idem__futex_wake(const uint32_t *word, enum idem__futex_reach reach);

#endif
