/* Calls to the system that fail, or kill, when a test says so. The linker puts
 * these before the system's own (--wrap), for libidem and the test alike. */
#ifndef UNIT_JOURNAL_CALLS_H
#define UNIT_JOURNAL_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum calls_do {
    CALLS_FAIL,        /* With an errno, without being made. */
    CALLS_KILL_BEFORE, /* SIGKILL to ourselves instead of the call ... */
    CALLS_KILL_AFTER,  /* ... or once it was made. */
    CALLS_SHORT,       /* A write takes half of its bytes. */
};

/* The call that comes @n after this (0: the next) fails with @why; with @on, so
 * does every one after it, but that unlinkat() still can. */
void calls_fail(enum calls_do what, long n, bool on, int why);

/* How many flushes there were since calls_fail(). */
unsigned calls_flushes(void);

/* How many calls were made since calls_fail(), and how many of them read a name of
 * a directory. */
long calls_made(void);
long calls_names(void);

/* What the disk says of itself. */
void calls_disk(uint64_t all, uint64_t available);
void calls_disk_is_real(void);

/* All is well again. True if something was done since calls_fail(). */
bool calls_fail_never(void);

#endif
