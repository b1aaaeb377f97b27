/* A disk that fails when a test says so. */
#ifndef TEST_VFS_FAIL_H
#define TEST_VFS_FAIL_H

#include "vfs.h"

#include <stdbool.h>

/* Makes it the disk of every connection that is opened from now on. */
void vfs_fail_install(void);

/* The @call that comes @n after this (0: the next) answers the SQLite result
 * @sqlite_rc; with @on, so does every one after it. */
void vfs_fail(enum vfs_call call, long n, bool on, int sqlite_rc);

/* Once @vfs_fail() has failed one, the same @n calls later fails too. */
void vfs_fail_again(long n);

/* How often the database itself (not its log) was flushed since vfs_fail(). */
long vfs_fail_flushes(void);

/* How often the log was cut off since vfs_fail(): the end of its being carried
 * over. */
long vfs_fail_cuts(void);

/* True if a call is to fail that did not come yet. */
bool vfs_fail_pending(void);

/* Everything succeeds again. True if a call failed since vfs_fail(). */
bool vfs_fail_never(void);

#endif
