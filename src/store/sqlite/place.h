/* The place of a store, from its URL: its path, and the options after "?"; its lock file,
 * and its reserve of disk. */
#ifndef IDEM_STORE_SQLITE_PLACE_H
#define IDEM_STORE_SQLITE_PLACE_H

#include <idem.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* SQLite refuses longer ones. */
#define IDEM__PATH_MAX 480

/* Of its last part: it leaves room for "-journal", the longest suffix of the
 * names of the files beside it. */
#define IDEM__NAME_MAX 247

/* A store's URL after "sqlite:", taken apart, and what lies there. */
struct idem__place {
    char path[IDEM__PATH_MAX + 1];
    gid_t gid;      /* "group=NAME": (gid_t)-1 without. */
    bool network;   /* "network=yes": a network file system is taken too. */
    bool no_create; /* "create=no": a store is there already. */
    bool exists;    /* There is a file. */
    bool test;      /* The locks of its file system must be tested. */
};

/* Takes "PATH[?OPTION[&OPTION]]" apart; a number may be the name of a group.
 *
 * IDEM_EINVALID  A "?" that is followed by something else.
 * IDEM_ECONFIG   The path is too long, or the group does not exist.
 */
int idem__path_split(const char *text, struct idem__place *ret_place,
                     struct idem_error *error);

/* The directory that @path is in. */
void idem__path_directory(const char *path,
                          char ret_directory[IDEM__PATH_MAX + 1]);

/* Checks the form of the path, what lies there, and the file system; fills in
 * the rest of @place.
 *
 * IDEM_ECONFIG  Empty or too long, no such directory, a network file system, a
 *               file with several names.
 * IDEM_EDENIED  Not a regular file, or one that anyone may write to.
 */
int idem__path_check(struct idem__place *place, struct idem_error *error);

/* Makes the path absolute: the process may leave the directory that it is in.
 *
 * IDEM_ECONFIG  It is too long then, or the directory is not there any more.
 */
int idem__path_absolute(struct idem__place *place, struct idem_error *error);

/* Owner and mode of a file of the store when it is created. */
struct idem__share {
    mode_t mode; /* 0600, or 0660 for a group. */
    uid_t uid;   /* (uid_t)-1: whoever makes it. */
    gid_t gid;   /* (gid_t)-1: likewise. */
};

/* How the files beside @path are shared: like @path itself if it is there, else
 * with @gid.
 *
 * IDEM_ECONFIG  It is there, and not shared with @gid.
 * IDEM_EDENIED  It is not there, and the caller is not in the group.
 */
int idem__path_share(const char *path, gid_t gid, struct idem__share *ret_share,
                     struct idem_error *error);

/* Opens @path, and makes it as @share says if it is not there. Returns a
 * descriptor, or -1 with errno. */
int idem__path_open(const char *path, const struct idem__share *share);

/* Makes an empty file if there is none. */
int idem__path_create(const char *path, const struct idem__share *share,
                      struct idem_error *error);

/* Gives the files beside @path its group: SQLite creates them with the mode of @path, but
 * with the group of the process. It opens no descriptor, because closing one would drop
 * the locks of the process. */
void idem__path_share_rest(const char *path);

/* ---- The lock file: lock.c ---- */

/* The lock between processes: held around every write transaction, checkpoint,
 * opening and recovery of a store. */

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

/* The same. Once *@ends is true (atomic), the caller ends or renews something, and does
 * not wait for a long line. */
int idem__lock_acquire_for(struct idem__lock *lock, int64_t deadline_ms,
                           const bool *ends, struct idem_error *error);

/* False: the lock file was deleted before it was released. */
bool idem__lock_release(struct idem__lock *lock);

/* True: the lock file was deleted before it was acquired. The caller holds the lock.
 * Acquiring looks at the file anyway, so that this costs no call. */
bool idem__lock_is_deleted(const struct idem__lock *lock);

/* True: @st is of the lock file, under whatever name it was found. */
bool idem__lock_is_file(const struct idem__lock *lock, const struct stat *st);

/* The number of this turn among those of all processes; for the holder of the lock. It
 * wraps around, and does not change while no order is kept. */
uint32_t idem__lock_turn(const struct idem__lock *lock);

/* True, once, if another process has truncated the lock file; for the holder of the
 * lock. */
bool idem__lock_was_emptied(struct idem__lock *lock);

/* Tests the file system that the lock file is on: idem__lock_test_file(). */
int idem__lock_test(const struct idem__lock *lock, struct idem_error *error);

/* The generation of the completed records, and a change of them: ticket_lock.h. */
uint64_t idem__lock_generation(const struct idem__lock *lock);
void idem__lock_change(struct idem__lock *lock, bool begins);

/* The descriptor of the lock file, which no one else may open or close. */
int idem__lock_fd(const struct idem__lock *lock);

/* ---- The reserve of disk: reserve.c ---- */

/* Space on the disk that is kept for ending attempts. PATH-reserve is a file of blocks
 * that nobody uses. A claim is made only while it is whole. If an end finds the disk
 * full, it gives slices of the reserve back to the file system until the end is
 * written; by then the log has been copied into the file too, and its blocks are free
 * to be reused. When there is space again, the next claim first fills the reserve.
 */

enum {
    IDEM__RESERVE_LEN = 4 << 20,
    IDEM__RESERVE_SLICES = 8,
    IDEM__RESERVE_PART = 16, /* Of a small file system no more than 1/16. */
};

/* Zeroed, but for fd: -1, before its first use. All under the store's lock. */
struct idem__reserve {
    int fd;       /* -1: not opened yet. */
    int64_t len;  /* Of the whole reserve. 0: there can be none here. */
    bool lacking; /* It was not whole when it was last filled. */
};

/* Makes the reserve of the store in @path whole. False: the disk is too full. */
bool idem__reserve_fill(struct idem__reserve *reserve, const char *path,
                        const struct idem__share *share);

/* Gives a slice back to the file system. False: there is none left. */
bool idem__reserve_give(struct idem__reserve *reserve, const char *path,
                        const struct idem__share *share);

void idem__reserve_close(struct idem__reserve *reserve);

#endif
