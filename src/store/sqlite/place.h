/* The place of a store on disk: its path and options, from its URL, its lock file, and
 * its reserve of disk. */
#ifndef IDEM_STORE_SQLITE_PLACE_H
#define IDEM_STORE_SQLITE_PLACE_H

#include <idem.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* SQLite refuses longer paths. */
#define IDEM__PATH_MAX 480

/* The longest last part of a path: it leaves room for "-journal", the longest suffix of
 * the names of the files beside it. */
#define IDEM__NAME_MAX 247

/* A store's URL after "sqlite:", parsed, and what is at its path. */
struct idem__place {
    char path[IDEM__PATH_MAX + 1];
    gid_t gid;      /* "group=NAME"; (gid_t)-1: not given. */
    bool network;   /* "network=yes": a network file system is accepted. */
    bool no_create; /* "create=no": a missing store is not created. */
    bool exists;    /* The file exists. */
    bool test;      /* The locks of its file system must be tested. */
};

/* Parses "PATH[?OPTION[&OPTION]]". A group may be given by its number.
 *
 * IDEM_EINVALID  Something else follows the "?".
 * IDEM_ECONFIG   The path is too long, or the group does not exist.
 */
int idem__path_split(const char *text, struct idem__place *ret_place,
                     struct idem_error *error);

/* The directory that @path is in. */
void idem__path_directory(const char *path,
                          char ret_directory[IDEM__PATH_MAX + 1]);

/* Checks the path, the file at it, and the file system. Sets the rest of @place.
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
    uid_t uid;   /* (uid_t)-1: the user that makes it. */
    gid_t gid;   /* (gid_t)-1: the group of that user. */
};

/* Sets owner and mode for the files beside @path: those of @path itself if it exists,
 * else shared with @gid.
 *
 * IDEM_ECONFIG  It is there, and not shared with @gid.
 * IDEM_EDENIED  It is not there, and the caller is not in the group.
 */
int idem__path_share(const char *path, gid_t gid, struct idem__share *ret_share,
                     struct idem_error *error);

/* Opens @path, and creates it as @share says if it is missing. Returns a descriptor, or
 * -1 with errno. */
int idem__path_open(const char *path, const struct idem__share *share);

/* Creates an empty file if it is missing. */
int idem__path_create(const char *path, const struct idem__share *share,
                      struct idem_error *error);

/* Gives the files beside @path its group: SQLite creates them with the mode of @path, but
 * with the group of the process. It opens no descriptor, because closing one would drop
 * the locks of the process. */
void idem__path_share_rest(const char *path);

/* ---- The lock file: lock.c ---- */

/* The lock between processes. It is held for every write transaction, opening and
 * recovery of a store, and for each checkpoint but the copy beside writers
 * (checkpoint.c). */

/* A lock file. A process opens it only once, for all its handles of the store, because
 * closing any descriptor of a file drops all record locks of the process on it. */
struct idem__lock;

/* Opens the lock file @path, and creates it as @share says if it is missing.
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

/* Does the same. Once *@ends (atomic) is true, the caller ends or renews an attempt, and
 * does not wait for a long line. */
int idem__lock_acquire_for(struct idem__lock *lock, int64_t deadline_ms,
                           const bool *ends, struct idem_error *error);

/* Releases the lock. False: the lock file was deleted meanwhile. */
bool idem__lock_release(struct idem__lock *lock);

/* True if the lock file was deleted before the lock was taken. The caller holds the lock.
 * This costs no call, because taking the lock inspects the file anyway. */
bool idem__lock_is_deleted(const struct idem__lock *lock);

/* True if @st describes the lock file, whatever name it was found under. */
bool idem__lock_is_file(const struct idem__lock *lock, const struct stat *st);

/* The number of this turn among those of all processes, for the holder of the lock. It
 * wraps around, and does not change while no order is kept. */
uint32_t idem__lock_turn(const struct idem__lock *lock);

/* True if another process has truncated the lock file since the last call. The caller
 * holds the lock. */
bool idem__lock_was_emptied(struct idem__lock *lock);

/* Tests the file system that the lock file is on: idem__lock_test_file(). */
int idem__lock_test(const struct idem__lock *lock, struct idem_error *error);

/* The generation of the completed records, and its change: ticket_lock.h. */
uint64_t idem__lock_generation(const struct idem__lock *lock, off_t len);
void idem__lock_change(struct idem__lock *lock, bool begins);

/* The descriptor of the lock file, which no other code may open or close. */
int idem__lock_fd(const struct idem__lock *lock);

/* ---- The reserve of disk: reserve.c ---- */

/* Disk space that is reserved for ending attempts. PATH-reserve is a file of blocks that
 * hold no data. A claim is made only while the reserve is whole. If an end finds the disk
 * full, the store first copies the log into the file, so that the log's blocks can be
 * used again, and then gives slices of the reserve back to the file system until the end
 * is written. When there is space again, the next claim first fills the reserve. */

enum {
    IDEM__RESERVE_LEN = 4 << 20,
    IDEM__RESERVE_SLICES = 8,
    IDEM__RESERVE_PART = 16, /* At most 1/16 of a small file system. */
};

/* Zero, but for fd: -1, before its first use. The holder of the store's lock uses it. */
struct idem__reserve {
    int fd;       /* -1: not opened yet. */
    int64_t len;  /* Length of the whole reserve. 0: none is possible here. */
    bool lacking; /* The reserve is not whole. */
};

/* Fills the reserve of the store at @path. False: the disk is too full. */
bool idem__reserve_fill(struct idem__reserve *reserve, const char *path,
                        const struct idem__share *share);

/* Gives a slice back to the file system. False: no slice is left. */
bool idem__reserve_give(struct idem__reserve *reserve, const char *path,
                        const struct idem__share *share);

void idem__reserve_close(struct idem__reserve *reserve);

#endif
