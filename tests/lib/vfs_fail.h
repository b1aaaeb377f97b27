/* A disk that fails on demand. */
#ifndef TEST_VFS_FAIL_H
#define TEST_VFS_FAIL_H

#include "vfs.h"

#include <stdbool.h>

/* Makes it the disk of every connection that is opened from now on. */
void vfs_fail_install(void);

/* The @call that comes @n after this (0: the next) answers the SQLite result
 * @sqlite_rc; with @on, so does every one after it. */
void vfs_fail(enum vfs_call call, long n, bool on, int sqlite_rc);

/* After vfs_fail() has failed a call, the same call fails again @n calls later. */
void vfs_fail_again(long n);

/* Returns how often the database itself (not its log) was flushed since vfs_fail(). */
long vfs_fail_flushes(void);

/* Returns how often the log was truncated since vfs_fail(), which ends a checkpoint. */
long vfs_fail_cuts(void);

/* Whether the call that is to fail has not come yet. */
bool vfs_fail_pending(void);

/* Lets all calls succeed again. Returns whether a call failed since vfs_fail(). */
bool vfs_fail_never(void);

#endif
