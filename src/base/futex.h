/* Sleeping until a word changes: futex(2). */
#ifndef IDEM_BASE_FUTEX_H
#define IDEM_BASE_FUTEX_H

#include <idem.h>

/* The processes that may wake each other. */
enum idem__futex_reach {
    IDEM__FUTEX_PROCESS, /* The threads of this process. */
    IDEM__FUTEX_HOST,    /* All that have mapped the same file. */
};

/* Sleeps if *@word is still @seen, until it is woken or CLOCK_MONOTONIC has
 * reached @deadline_ns (IDEM_NEVER: it does not). May return early for no reason.
 * False at the deadline. */
bool idem__futex_wait(const uint32_t *word, uint32_t seen, int64_t deadline_ns,
                      enum idem__futex_reach reach);

/* Wakes all who sleep on @word, which the caller has changed. The word itself is
 * not touched: it may be gone by now. */
void idem__futex_wake(const uint32_t *word, enum idem__futex_reach reach);

#endif
