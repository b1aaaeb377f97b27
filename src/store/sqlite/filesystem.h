/* filesystem.h: checks whether a store can be in this place: whether the locks of the
 * file system can be trusted, and whether the file has one name. */
#ifndef IDEM_STORE_SQLITE_FILESYSTEM_H
#define IDEM_STORE_SQLITE_FILESYSTEM_H

#include <idem.h>

/* ---- The kind of the file system ----------------------------------------- */

/* SQLite's locks and shared memory need one kernel. */
enum idem__trust {
    IDEM__TRUST_LOCAL,   /* Known to be good. */
    IDEM__TRUST_UNKNOWN, /* To be tested: see idem__lock_test(). */
    IDEM__TRUST_NETWORK, /* Other kernels may have it mounted too. */
};

/* Facts of a file system by its number in statfs(2), and, where @name is not
 * NULL, by its name. */
enum idem__trust idem__filesystem_trust(unsigned long magic, const char *name);

/* The name in @line of /proc/self/mountinfo, if it is about the device
 * @major:@minor: its type ("fuse.sshfs"), or its source where it is only called
 * "fuse". False: the line is about another one. */
bool idem__filesystem_name(const char *line, unsigned major, unsigned minor,
                           char ret_name[64]);

/* The file system of @path: its name where the system tells ("" where it does
 * not), and what is known of it. False: it cannot be looked at. */
bool idem__filesystem_look(const char *path, char ret_name[64],
                           enum idem__trust *ret_trust);

/* Looks at the file system of @path. *@ret_test: its locks must be tested.
 *
 * IDEM_ECONFIG  It is a network file system, or @path is not there.
 */
int idem__filesystem_check(const char *path, bool *ret_test,
                           struct idem_error *error);

/* ---- One file under two names is two stores ------------------------------ */

/* Looks at the regular file @path in @directory.
 *
 * IDEM_ECONFIG  It has several names, or is mounted without its directory.
 */
int idem__names_check(const char *path, const char *directory,
                      struct idem_error *error);

/* ---- Does another process see a lock of ours on this file? --------------- */

/* Locks a byte of @fd that nothing else locks, and lets another process look. It
 * lives for a moment; nobody else can wait for it, and it raises no SIGCHLD.
 *
 * IDEM_ECONFIG       It sees nothing, or locks do not work there.
 * IDEM_EUNAVAILABLE  No process could be made.
 */
int idem__lock_test_file(int fd, struct idem_error *error);

#endif
