/* Keeps a reserve of the disk for ending attempts; place.h explains it. */
#include "store/sqlite/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The bytes that the file holds on the disk. It may be longer than its blocks. */
static int64_t held(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? (int64_t)st.st_blocks * 512 : -1;
}

/* The space that this user may still write. */
static int64_t room(int fd, int64_t *ret_all)
{
    struct statvfs fs;
    uint64_t blocks;

    if (fstatvfs(fd, &fs) != 0) {
        return -1;
    }
    *ret_all = (int64_t)fs.f_blocks * (int64_t)fs.f_frsize;
    blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
    return (int64_t)(blocks * fs.f_frsize);
}

/* Opens the file of the reserve. 0; or -1: it cannot be opened now. */
static int open_file(struct idem__reserve *reserve, const char *path,
                     const struct idem__share *share)
{
    char name[IDEM__PATH_MAX + 16];
    int64_t all;

    if (reserve->fd >= 0) {
        return 0;
    }
    (void)snprintf(name, sizeof(name), "%s-reserve", path);
    reserve->fd = idem__path_open(name, share);
    if (reserve->fd < 0) {
        return -1;
    }
    reserve->len = IDEM__RESERVE_LEN;
    if (room(reserve->fd, &all) >= 0 &&
        all / IDEM__RESERVE_PART < reserve->len) {
        reserve->len = all / IDEM__RESERVE_PART;
    }
    return 0;
}

/* Allocates the missing blocks. Looks for room first, because a call that fails may have
 * taken all that was left. */
static bool take(struct idem__reserve *reserve, int64_t have)
{
    int64_t all;
    int64_t left = room(reserve->fd, &all);

    if (left >= 0 && left < reserve->len - have) {
        return false;
    }
    if (fallocate(reserve->fd, 0, 0, (off_t)reserve->len) == 0) {
        return true;
    }
    if (errno != ENOSPC && errno != EDQUOT && errno != EINTR) {
        reserve->len = 0; /* The file system cannot do that. */
        return true;
    }
    return false;
}

bool idem__reserve_fill(struct idem__reserve *reserve, const char *path,
                        const struct idem__share *share)
{
    int64_t have;

    if (open_file(reserve, path, share) != 0) {
        /* A full disk cannot hold the file either. No other reason is worth refusing
         * work. */
        reserve->lacking = errno == ENOSPC || errno == EDQUOT;
        return !reserve->lacking;
    }
    have = held(reserve->fd);
    reserve->lacking = have >= 0 && have < reserve->len && !take(reserve, have);
    return !reserve->lacking;
}

bool idem__reserve_give(struct idem__reserve *reserve, const char *path,
                        const struct idem__share *share)
{
    int64_t have = open_file(reserve, path, share) == 0 ? held(reserve->fd) : 0;
    int64_t slice = reserve->len / IDEM__RESERVE_SLICES;
    struct stat st;
    int64_t rest;

    reserve->lacking = true;
    if (have <= 0 || reserve->len <= 0 || fstat(reserve->fd, &st) != 0) {
        return false;
    }
    /* A file frees whole blocks only: a smaller slice would free nothing, and a caller
     * that repeats this until there is room would never end. */
    slice = slice > st.st_blksize ? slice : st.st_blksize;
    rest = have > slice ? have - slice : 0;
    rest -= rest % st.st_blksize;
    return ftruncate(reserve->fd, (off_t)rest) == 0 && held(reserve->fd) < have;
}

void idem__reserve_close(struct idem__reserve *reserve)
{
    if (reserve->fd >= 0) {
        (void)close(reserve->fd);
    }
    reserve->fd = -1;
}
