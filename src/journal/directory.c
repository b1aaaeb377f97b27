/* The directory of a journal: its names, its files, their locks. */
#include "journal/journal.h"

#include "base/heap.h"
#include "core/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int idem__journal_errno(struct idem_error *error, const char *doing,
                        const char *name)
{
    int why = errno;

    return idem__error(error, idem__error_code_of(why),
                       "journal: cannot %s %.120s: %s", doing, name,
                       strerror(why));
}

/* By its length and ending alone: an entry says in its content what it is called. */
enum idem_journal_state idem__journal_state_of(const char *name)
{
    const char *end = strrchr(name, '.');

    if (end == NULL || end - name <= IDEM__ENTRY_RECORD_LEN ||
        strlen(name) > IDEM__JOURNAL_NAME_MAX) {
        return 0;
    }
    return strcmp(end, ".idj") == 0    ? IDEM_JOURNAL_WAITING
           : strcmp(end, ".lost") == 0 ? IDEM_JOURNAL_LOST
           : strcmp(end, ".bad") == 0  ? IDEM_JOURNAL_DAMAGED
                                       : 0;
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
        idem__journal_release(fd);
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

static int odd(struct idem_error *error)
{
    return idem__error(error, IDEM_ECORRUPT, "not an entry of a journal");
}

/* Locks the file, which is open, and looks at it afterwards: its holder before may have
 * been done with it, or have set it aside. */
static int lock(const struct idem_journal *journal, const char *name,
                int operation, struct idem__journal_file *file,
                struct idem_error *error)
{
    struct stat there;
    struct stat ours;

    while (flock(file->fd, operation) != 0) {
        if (errno != EINTR) {
            return errno == EWOULDBLOCK
                       ? IDEM__JOURNAL_BUSY
                       : idem__journal_errno(error, "lock", name);
        }
    }
    if (fstat(file->fd, &ours) != 0 ||
        fstatat(journal->fd, name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? IDEM_ENOTFOUND
                               : idem__journal_errno(error, "look at", name);
    }
    if (there.st_ino != ours.st_ino || there.st_dev != ours.st_dev) {
        return IDEM_ENOTFOUND;
    }
    if (!S_ISREG(ours.st_mode) || ours.st_uid != geteuid()) {
        return odd(error);
    }
    file->len = (uint64_t)ours.st_size;
    file->inode = (uint64_t)ours.st_ino;
    return 0;
}

int idem__journal_hold(const struct idem_journal *journal, const char *name,
                       enum idem__journal_how how,
                       struct idem__journal_file *ret_file,
                       struct idem_error *error)
{
    /* A file that is not regular must not keep us waiting. Some file systems
     * want to write where they lock. */
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int operation = how == IDEM__JOURNAL_READ ? LOCK_SH : LOCK_EX;
    int fd;
    int rc;

    ret_file->fd = -1;
    if (idem__journal_state_of(name) == 0) {
        return odd(error);
    }
    fd = how == IDEM__JOURNAL_MAKE
             ? openat(journal->fd, name, flags | O_CREAT | O_EXCL, 0600)
             : -1;
    ret_file->made = fd >= 0;
    if (how == IDEM__JOURNAL_MAKE && fd < 0 && errno != EEXIST) {
        return idem__journal_errno(error, "make", name);
    }
    fd = fd >= 0 ? fd : openat(journal->fd, name, flags);
    if (fd < 0 && errno == ENOENT) {
        return IDEM_ENOTFOUND;
    }
    if (fd < 0) {
        return errno == ELOOP || errno == EACCES || errno == EISDIR ||
                       errno == ENXIO
                   ? odd(error)
                   : idem__journal_errno(error, "open", name);
    }
    /* A new one is waited for: whoever opened it before is done at once. */
    ret_file->fd = fd;
    rc = lock(journal, name, operation | (ret_file->made ? 0 : LOCK_NB),
              ret_file, error);
    if (rc < 0 && rc != IDEM_ENOTFOUND && ret_file->made) {
        (void)unlinkat(journal->fd, name, 0);
    }
    if (rc != 0) {
        (void)close(fd);
        ret_file->fd = -1;
    }
    return rc;
}

void idem__journal_release(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

int idem__journal_read(const struct idem__journal_file *file,
                       uint8_t **ret_bytes, struct idem_error *error)
{
    size_t len = (size_t)file->len;
    uint8_t *bytes;
    ssize_t n;

    if (len > IDEM__ENTRY_LEN_MAX) {
        return idem__error(error, IDEM_ECORRUPT,
                           "the entry cannot be trusted: it is too long");
    }
    bytes = idem__alloc(len);
    if (bytes == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    n = pread(file->fd, bytes, len, 0);
    if (n != (ssize_t)len) {
        idem__free(bytes);
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "journal: an entry cannot be read: %s",
                           n < 0 ? strerror(errno) : "it became shorter");
    }
    *ret_bytes = bytes;
    return 0;
}
