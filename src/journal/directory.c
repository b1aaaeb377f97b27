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

    if (end == NULL || end - name <= IDEM__ENTRY_PREFIX_LEN ||
        strlen(name) > IDEM__ENTRY_NAME_MAX) {
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
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    for (errno = 0; rc == 0 && (found = readdir(stream)) != NULL; errno = 0) {
        if (found->d_name[0] != '.') {
            rc = each(ctx, found->d_name);
        }
    }
    if (rc == 0 && errno != 0) {
        rc = idem__journal_errno(error, "read", journal->directory);
    }
    (void)closedir(stream);
    return rc;
}

static const char not_an_entry[] = "it is not an entry";

/* Locks the file, which is open, and looks at it afterwards: its holder before may have
 * been done with it, or have set it aside. */
static int lock(struct idem__journal_file *file, int operation,
                struct idem_error *error)
{
    struct stat there;
    struct stat ours;

    while (flock(file->fd, operation) != 0) {
        if (errno != EINTR) {
            return errno == EWOULDBLOCK
                       ? IDEM__JOURNAL_BUSY
                       : idem__journal_errno(error, "lock", file->name);
        }
    }
    if (fstat(file->fd, &ours) != 0 ||
        fstatat(file->journal->fd, file->name, &there, AT_SYMLINK_NOFOLLOW) !=
            0) {
        return errno == ENOENT
                   ? IDEM_ENOTFOUND
                   : idem__journal_errno(error, "look at", file->name);
    }
    if (there.st_ino != ours.st_ino || there.st_dev != ours.st_dev) {
        return IDEM_ENOTFOUND;
    }
    if (!S_ISREG(ours.st_mode) || ours.st_uid != geteuid()) {
        return idem__entry_damaged(error, not_an_entry);
    }
    file->len = (uint64_t)ours.st_size;
    file->inode = (uint64_t)ours.st_ino;
    return 0;
}

int idem__journal_hold(struct idem__journal_file *file, int operation,
                       bool make, struct idem_error *error)
{
    /* A file that is not regular must not keep us waiting. Some file systems
     * want to write where they lock. */
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int directory = file->journal->fd;
    int rc;

    file->fd = -1;
    if (idem__journal_state_of(file->name) == 0) {
        return idem__entry_damaged(error, not_an_entry);
    }
    if (make) {
        file->fd =
            openat(directory, file->name, flags | O_CREAT | O_EXCL, 0600);
        if (file->fd < 0 && errno != EEXIST) {
            return idem__journal_errno(error, "make", file->name);
        }
    }
    file->made = file->fd >= 0;
    if (!file->made) {
        file->fd = openat(directory, file->name, flags);
    }
    if (file->fd < 0) {
        return errno == ENOENT ? IDEM_ENOTFOUND
               : errno == ELOOP || errno == EACCES || errno == EISDIR ||
                       errno == ENXIO
                   ? idem__entry_damaged(error, not_an_entry)
                   : idem__journal_errno(error, "open", file->name);
    }
    /* A new one is waited for: whoever opened it before is done at once. */
    rc = lock(file, operation | (file->made ? 0 : LOCK_NB), error);
    if (rc != 0 && !file->made) {
        idem__journal_release(file);
    }
    return rc;
}

void idem__journal_release(struct idem__journal_file *file)
{
    if (file->fd >= 0) {
        (void)close(file->fd);
        file->fd = -1;
        file->made = false;
    }
}

int idem__journal_read(const struct idem__journal_file *file,
                       uint8_t **ret_bytes, struct idem_error *error)
{
    size_t len = (size_t)file->len;
    uint8_t *bytes;
    ssize_t n;

    if (len > IDEM__ENTRY_LEN_MAX) {
        return idem__entry_damaged(error, "it is too long");
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
