/* Does another process see a lock of ours on this file? */
#ifndef IDEM_STORE_SQLITE_LOCK_TEST_H
#define IDEM_STORE_SQLITE_LOCK_TEST_H

#include <idem.h>

/* Locks a byte of @fd that nothing else locks, and lets another process look. It
 * lives for a moment; nobody else can wait for it, and it raises no SIGCHLD.
 *
 * IDEM_ECONFIG       It sees nothing, or locks do not work there.
 * IDEM_EUNAVAILABLE  No process could be made.
 */
int idem__lock_test_file(int fd, struct idem_error *error);

#endif
