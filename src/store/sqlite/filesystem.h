/* Checks whether a store can be in this place: whether the locks of the file system can
 * be trusted, and whether the file has one name. */
#ifndef IDEM_STORE_SQLITE_FILESYSTEM_H
#define IDEM_STORE_SQLITE_FILESYSTEM_H

#include <idem.h>

/* ---- The kind of the file system ----------------------------------------- */

/* Whether a file system can hold a store: SQLite's locks and shared memory work under one
 * kernel only. */
enum idem__trust {
    IDEM__TRUST_LOCAL,   /* Known to be good. */
    IDEM__TRUST_UNKNOWN, /* To be tested: see idem__lock_test(). */
    IDEM__TRUST_NETWORK, /* Other kernels may have it mounted too. */
};

/* Judges a file system by its number in statfs(2) and, unless @name is NULL, by its
 * name. */
enum idem__trust idem__filesystem_trust(unsigned long magic, const char *name);

/* Finds the name in @line of /proc/self/mountinfo, if the line is about the device
 * @major:@minor: the type ("fuse.sshfs"), or the source if the type is only "fuse".
 * False: the line is about another device. */
bool idem__filesystem_name(const char *line, unsigned major, unsigned minor,
                           char ret_name[64]);

/* Finds the name of the file system of @path ("" if the system does not tell it), and
 * whether it is trusted. False: it cannot be inspected. */
bool idem__filesystem_look(const char *path, char ret_name[64],
                           enum idem__trust *ret_trust);

/* Checks the file system of @path. *@ret_test: its locks must be tested.
 *
 * IDEM_ECONFIG  It is a network file system, or @path is not there.
 */
int idem__filesystem_check(const char *path, bool *ret_test,
                           struct idem_error *error);

/* ---- One file under two names is two stores ------------------------------ */

/* Checks that the regular file @path in @directory has one name.
 *
 * IDEM_ECONFIG  It has several names, or is mounted without its directory.
 */
int idem__names_check(const char *path, const char *directory,
                      struct idem_error *error);

/* ---- Does another process see a lock of ours on this file? --------------- */

/* Locks a byte of @fd that is used for nothing else, and has another process check that
 * it sees the lock. That process lives for a moment, no other code can wait for it, and
 * it raises no SIGCHLD.
 *
 * IDEM_ECONFIG       It does not see the lock, or locks do not work there.
 * IDEM_EUNAVAILABLE  No process could be made.
 */
int idem__lock_test_file(int fd, struct idem_error *error);

#endif
