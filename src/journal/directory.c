/* The directory of a journal: its names, its files, their locks. */
#include "journal/directory.h"

#include "base/heap.h"
#include "base/process.h"
#include "core/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int idem__journal_check(const struct idem_journal *journal,
                        struct idem_error *error)
{
    if (journal->pid == idem__process()) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "the journal was opened by process %ld and this is its "
                       "child: open it anew after fork()",
                       journal->pid);
}

static int code_of(int why)
{
    switch (why) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return IDEM_EFULL;
    case ENOMEM:
        return IDEM_ENOMEM;
    case ENOENT:
        return IDEM_ENOTFOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENOTDIR:
        return IDEM_EDENIED;
    default:
        return IDEM_EUNAVAILABLE;
    }
}

int idem__journal_errno(struct idem_error *error, const char *doing,
                        const char *name)
{
    int why = errno;

    return idem__error(error, code_of(why), "journal: cannot %s %.120s: %s",
                       doing, name, strerror(why));
}

enum idem__journal_kind idem__journal_kind_of(const char *name)
{
    const char *end = name + strcspn(name, ".");
    const char *last;
    int len = 0;

    (void)sscanf(name, "%*8[0-9a-f]-%*16[0-9a-f]-%*1[23458]-%*3[0-9]%n", &len);
    if (len <= IDEM__ENTRY_RECORD_LEN + 2 || name + len != end ||
        *end == '\0') {
        return IDEM__JOURNAL_FOREIGN;
    }
    if (strcmp(end, ".idj") == 0) {
        return IDEM__JOURNAL_PENDING;
    }
    last = strrchr(end + 1, '.');
    if (last != NULL && strcmp(last, ".lost") == 0) {
        return IDEM__JOURNAL_LOST;
    }
    return last != NULL && strcmp(last, ".bad") == 0 ? IDEM__JOURNAL_BAD
                                                     : IDEM__JOURNAL_FOREIGN;
}

int idem__journal_walk(const struct idem_journal *journal,
                       idem__journal_name_fn *each, void *ctx,
                       struct idem_error *error)
{
    /* A stream of its own: that of one reader has one position. */
    int fd = openat(journal->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *found;
    int rc = 0;

    if (stream == NULL) {
        rc = idem__journal_errno(error, "read", journal->directory);
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    errno = 0;
    while (rc == 0 && (found = readdir(stream)) != NULL) {
        if (strcmp(found->d_name, ".") != 0 &&
            strcmp(found->d_name, "..") != 0) {
            rc = each(ctx, found->d_name);
        }
        errno = 0;
    }
    if (rc == 0 && errno != 0) {
        rc = idem__journal_errno(error, "read", journal->directory);
    }
    (void)closedir(stream);
    return rc;
}

int idem__journal_is_named(const struct idem_journal *journal, int fd,
                           const char *name)
{
    struct stat there;
    struct stat ours;

    if (fstatat(journal->fd, name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : -1;
    }
    if (fstat(fd, &ours) != 0) {
        return -1;
    }
    return there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

/* Locks the file, which is open; once it has the lock, the file may be gone: its
 * holder before may have been done with it. */
static enum idem__journal_hold lock(const struct idem_journal *journal,
                                    const char *name, bool alone,
                                    struct idem__journal_file *file)
{
    struct stat st;
    int named;

    if (fstat(file->fd, &st) != 0) {
        return IDEM__JOURNAL_ERROR;
    }
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        return IDEM__JOURNAL_ODD;
    }
    while (flock(file->fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
        if (errno != EINTR) {
            return errno == EWOULDBLOCK ? IDEM__JOURNAL_BUSY
                                        : IDEM__JOURNAL_ERROR;
        }
    }
    named = fstat(file->fd, &st) != 0
                ? -1
                : idem__journal_is_named(journal, file->fd, name);
    file->len = (uint64_t)st.st_size;
    file->inode = (uint64_t)st.st_ino;
    return named < 0    ? IDEM__JOURNAL_ERROR
           : named == 0 ? IDEM__JOURNAL_GONE
                        : IDEM__JOURNAL_HELD;
}

enum idem__journal_hold idem__journal_hold(const struct idem_journal *journal,
                                           const char *name, bool alone,
                                           struct idem__journal_file *ret_file,
                                           struct idem_error *error)
{
    enum idem__journal_hold hold = IDEM__JOURNAL_ERROR;

    /* A file that is not regular must not keep us waiting. Some file systems
     * want to write where they lock. */
    ret_file->fd =
        openat(journal->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (ret_file->fd >= 0) {
        hold = lock(journal, name, alone, ret_file);
    } else if (errno == ENOENT) {
        hold = IDEM__JOURNAL_GONE;
    } else if (errno == ELOOP || errno == EACCES || errno == EISDIR ||
               errno == ENXIO) {
        hold = IDEM__JOURNAL_ODD;
    }
    if (hold == IDEM__JOURNAL_ERROR) {
        (void)idem__journal_errno(error, "open and lock", name);
    }
    if (hold != IDEM__JOURNAL_HELD && ret_file->fd >= 0) {
        (void)close(ret_file->fd);
    }
    return hold;
}

int idem__journal_read(const struct idem__journal_file *file,
                       uint8_t **ret_bytes, struct idem_error *error)
{
    size_t len = (size_t)file->len;
    uint8_t *bytes;
    size_t at = 0;

    if (len > IDEM__ENTRY_LEN_MAX) {
        return idem__error(error, IDEM_ECORRUPT,
                           "the entry cannot be trusted: it is too long");
    }
    bytes = idem__alloc(len);
    if (bytes == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    while (at < len) {
        ssize_t n = pread(file->fd, bytes + at, len - at, (off_t)at);

        if (n > 0) {
            at += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            idem__free(bytes);
            return idem__error(error, IDEM_EUNAVAILABLE,
                               "journal: an entry cannot be read: %s",
                               n == 0 ? "it became shorter" : strerror(errno));
        }
    }
    *ret_bytes = bytes;
    return 0;
}
