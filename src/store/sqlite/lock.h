/* The lock between processes: held around every write transaction, checkpoint,
 * opening and recovery of a store. */
#ifndef IDEM_STORE_SQLITE_LOCK_H
#define IDEM_STORE_SQLITE_LOCK_H

#include "store/sqlite/place.h"

/* A lock file, opened once in this process however many stores use it: closing
 * any descriptor of a file drops all of a process's record locks on it. */
struct idem__lock;

/* Opens the lock file @path, making it as @share says.
 *
 * IDEM_EDENIED  It may not be opened, or is not a regular file.
 * IDEM_EFULL, IDEM_ECONFIG, IDEM_ENOMEM
 */
int idem__lock_open(const char *path, const struct idem__share *share,
                    struct idem__lock **ret_lock, struct idem_error *error);
void idem__lock_close(struct idem__lock *lock);

/* Takes the lock. 0, or IDEM_EUNAVAILABLE when CLOCK_MONOTONIC has reached
 * @deadline_ms. */
int idem__lock_acquire(struct idem__lock *lock, int64_t deadline_ms,
                       struct idem_error *error);

/* Likewise. Once *@ends is true (atomic) the caller ends or renews something, which
 * a long line does not keep waiting. */
int idem__lock_acquire_for(struct idem__lock *lock, int64_t deadline_ms,
                           const bool *ends, struct idem_error *error);
void idem__lock_release(struct idem__lock *lock);

/* Which turn this is among those of all processes; for whoever holds the lock.
 * It wraps around, and stays where the order is not kept. */
uint32_t idem__lock_turn(const struct idem__lock *lock);

/* True, once, if the lock file had been truncated by somebody; for whoever holds
 * the lock. */
bool idem__lock_was_emptied(struct idem__lock *lock);

/* Tests the file system that the lock file is on: idem__lock_test_file(). */
int idem__lock_test(const struct idem__lock *lock, struct idem_error *error);

/* The descriptor of the lock file, which no one else may open or close. */
int idem__lock_fd(const struct idem__lock *lock);

#endif
