/* Walks the directory of a journal, and opens, locks and reads its files. */
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

/* Only length and ending count here: idem__entry_decode() compares the rest of the name
 * with the content. */
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
    /* Open the directory anew: threads that shared journal->fd would share one read
     * position, and each would miss names that another has read. */
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

/* Locks the open file, and only then checks that its name still leads to it: the
 * process that held the lock before may have deleted the file or set it aside. */
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
    /* O_NONBLOCK: a file that is not regular, such as a device, must not block this
     * open. O_RDWR: some file systems, such as NFS, grant an exclusive lock only on a
     * descriptor that may write. */
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
    /* Another process can open a new file before its creator locks it, but such a
     * process finds it empty and closes it at once. So wait for the lock of a new file,
     * and never for the lock of an old one. */
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
