/* The directory of a journal: its names, its files, their locks. */
#include "journal/directory.h"

#include "base/heap.h"
#include "base/process.h"
#include "core/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- Names ---- */

/* Whether @name has the form of STORE-ID-STATUS-DIGEST, whatever follows. */
static bool is_of_form(const char *name)
{
    static const char form[] = "xxxxxxxx-xxxxxxxxxxxxxxxx-s-xxxxxxxxxxxxxxxx";
    size_t i;

    for (i = 0; i < IDEM__ENTRY_NAME_LEN; i++) {
        char c = name[i];
        bool fits = form[i] == 'x'   ? strchr("0123456789abcdef", c) != NULL
                    : form[i] == 's' ? c >= '2' && c <= '5'
                                     : c == form[i];

        if (c == '\0' || !fits) {
            return false;
        }
    }
    return true;
}

const char *idem__journal_base(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash != NULL ? slash + 1 : name;
}

enum idem__journal_kind idem__journal_kind_of(const char *name)
{
    const char *base = idem__journal_base(name);
    const char *end = base + IDEM__ENTRY_NAME_LEN;
    const char *dot;

    if (!is_of_form(base)) {
        return IDEM__JOURNAL_FOREIGN;
    }
    if (strcmp(end, ".idj") == 0) {
        return IDEM__JOURNAL_PENDING;
    }
    if (strcmp(end, ".lost") == 0) {
        return IDEM__JOURNAL_LOST;
    }
    if (strcmp(end, ".bad") == 0) {
        return IDEM__JOURNAL_BAD;
    }
    dot = end[0] == '.' ? strchr(end + 1, '.') : NULL;
    return dot != NULL && strcmp(dot, ".new") == 0 ? IDEM__JOURNAL_NEW
                                                   : IDEM__JOURNAL_FOREIGN;
}

/* ---- Parts ---- */

void idem__journal_part_path(unsigned part, char ret_path[16])
{
    if (part == IDEM__JOURNAL_FLAT) {
        (void)strcpy(ret_path, ".");
    } else {
        (void)snprintf(ret_path, 16, IDEM__JOURNAL_BY_RECORD "/%02x",
                       part & 0xff);
    }
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number that two hex digits are, or FLAT if they are none. */
static unsigned hex_part(const char *digits)
{
    int high = hex(digits[0]);
    int low = high < 0 ? -1 : hex(digits[1]);

    return low < 0 ? IDEM__JOURNAL_FLAT : (unsigned)(high << 4 | low);
}

unsigned idem__journal_part_of(const char *base)
{
    return is_of_form(base) ? hex_part(base + IDEM__ENTRY_STORE_LEN + 1)
                            : IDEM__JOURNAL_FLAT;
}

void idem__journal_file_path(unsigned part, const char *base,
                             char ret_name[IDEM__JOURNAL_NAME_MAX + 1])
{
    char path[16] = "";

    if (part != IDEM__JOURNAL_FLAT) {
        idem__journal_part_path(part, path);
    }
    (void)snprintf(ret_name, IDEM__JOURNAL_NAME_MAX + 1, "%s%s%.63s", path,
                   path[0] != '\0' ? "/" : "", base);
}

/* A stream of its own: that of one reader has one position. */
static DIR *open_stream(const struct idem_journal *journal, const char *path)
{
    int fd = openat(journal->fd, path,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream;

    if (fd < 0) {
        return NULL;
    }
    stream = fdopendir(fd);
    if (stream == NULL) {
        int why = errno;

        (void)close(fd);
        errno = why;
    }
    return stream;
}

static bool is_ours(const char *name)
{
    return strcmp(name, IDEM__JOURNAL_BY_RECORD) == 0 ||
           strcmp(name, IDEM__JOURNAL_USAGE) == 0;
}

/* Calls @each for what is in @path, as idem__journal_walk() has it. */
static int walk(const struct idem_journal *journal, const char *path,
                idem__journal_name_fn *each, void *ctx,
                struct idem_error *error)
{
    bool flat = strcmp(path, ".") == 0;
    DIR *stream = open_stream(journal, path);
    char name[IDEM__JOURNAL_NAME_MAX + 1];
    struct dirent *found;
    size_t at = 0; /* Where the name of each file begins in @name. */
    int rc = 0;

    if (stream == NULL) {
        return errno == ENOENT
                   ? 0
                   : idem__journal_errno(error, "read", "its directory");
    }
    if (!flat) {
        at = (size_t)snprintf(name, sizeof(name), "%s/", path);
    }
    errno = 0;
    while (rc == 0 && (found = readdir(stream)) != NULL) {
        if (strcmp(found->d_name, ".") != 0 &&
            strcmp(found->d_name, "..") != 0 &&
            !(flat && is_ours(found->d_name))) {
            size_t len = strnlen(found->d_name, sizeof(name) - at - 1);

            memcpy(name + at, found->d_name, len);
            name[at + len] = '\0';
            rc = each(ctx, name, error);
        }
        errno = 0;
    }
    if (rc == 0 && errno != 0) {
        rc = idem__journal_errno(error, "read", "its directory");
    }
    (void)closedir(stream);
    return rc;
}

int idem__journal_walk(const struct idem_journal *journal, unsigned part,
                       idem__journal_name_fn *each, void *ctx,
                       struct idem_error *error)
{
    char path[16];

    idem__journal_part_path(part, path);
    return walk(journal, path, each, ctx, error);
}

static int note_part(void *ctx, const char *name, struct idem_error *error)
{
    const char *base = idem__journal_base(name);
    bool *there = ctx;

    (void)error;
    if (strlen(base) == 2) {
        there[hex_part(base)] = true;
    }
    return 0;
}

int idem__journal_parts(const struct idem_journal *journal,
                        bool ret_there[IDEM__JOURNAL_PARTS],
                        struct idem_error *error)
{
    memset(ret_there, 0, IDEM__JOURNAL_PARTS * sizeof(ret_there[0]));
    ret_there[IDEM__JOURNAL_FLAT] = true;
    return walk(journal, IDEM__JOURNAL_BY_RECORD, note_part, ret_there, error);
}

/* ---- Lists of names ---- */

struct choice {
    struct idem__journal_names *names;
    const char *prefix;
    size_t seen;
};

static int grow(struct idem__journal_names *names)
{
    size_t room = names->room == 0 ? 64 : names->room * 2;
    void *more = idem__realloc(names->names, room * sizeof(names->names[0]));

    if (more == NULL) {
        return IDEM_ENOMEM;
    }
    names->names = more;
    names->room = room;
    return 0;
}

static int choose(void *ctx, const char *name, struct idem_error *error)
{
    struct choice *choice = ctx;
    struct idem__journal_names *names = choice->names;

    choice->seen++;
    if (strncmp(idem__journal_base(name), choice->prefix,
                strlen(choice->prefix)) != 0) {
        return 0;
    }
    if (names->len == names->room && grow(names) != 0) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    (void)strcpy(names->names[names->len++], name);
    return 0;
}

int idem__journal_names(const struct idem_journal *journal, unsigned part,
                        const char *prefix, struct idem__journal_names *names,
                        size_t *ret_seen, struct idem_error *error)
{
    struct choice choice = {.names = names, .prefix = prefix};
    int rc = idem__journal_walk(journal, part, choose, &choice, error);

    if (ret_seen != NULL) {
        *ret_seen = choice.seen;
    }
    return rc;
}

static int compare(const void *a, const void *b)
{
    return strcmp(idem__journal_base(a), idem__journal_base(b));
}

void idem__journal_names_sort(struct idem__journal_names *names)
{
    if (names->len > 0) {
        qsort(names->names, names->len, sizeof(names->names[0]), compare);
    }
}

void idem__journal_names_finish(struct idem__journal_names *names)
{
    idem__free(names->names);
    memset(names, 0, sizeof(*names));
}

/* ---- Files ---- */

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

static enum idem__journal_hold lock(int fd, const char *name, bool alone,
                                    struct idem_error *error)
{
    while (flock(fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            return IDEM__JOURNAL_BUSY;
        }
        if (errno != EINTR) {
            (void)idem__journal_errno(error, "lock", name);
            return IDEM__JOURNAL_ERROR;
        }
    }
    return IDEM__JOURNAL_HELD;
}

static enum idem__journal_hold look_at(const struct idem_journal *journal,
                                       const char *name, bool alone, int fd,
                                       uint64_t *ret_len,
                                       struct idem_error *error)
{
    enum idem__journal_hold hold;
    struct stat st;
    int named;

    if (fstat(fd, &st) != 0) {
        (void)idem__journal_errno(error, "look at", name);
        return IDEM__JOURNAL_ERROR;
    }
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        return IDEM__JOURNAL_ODD;
    }
    hold = lock(fd, name, alone, error);
    if (hold != IDEM__JOURNAL_HELD) {
        return hold;
    }
    /* Its holder before may have been done with it. */
    named =
        fstat(fd, &st) != 0 ? -1 : idem__journal_is_named(journal, fd, name);
    if (named < 0) {
        (void)idem__journal_errno(error, "look at", name);
        return IDEM__JOURNAL_ERROR;
    }
    *ret_len = (uint64_t)st.st_size;
    return named ? IDEM__JOURNAL_HELD : IDEM__JOURNAL_GONE;
}

enum idem__journal_hold idem__journal_hold(const struct idem_journal *journal,
                                           const char *name, bool alone,
                                           int *ret_fd, uint64_t *ret_len,
                                           struct idem_error *error)
{
    /* A file that is not regular must not keep us waiting. Some file systems
     * want to write where they lock. */
    int fd =
        openat(journal->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    enum idem__journal_hold hold;

    if (fd < 0) {
        switch (errno) {
        case ENOENT:
            return IDEM__JOURNAL_GONE;
        case ELOOP:
        case EACCES:
        case EISDIR:
        case ENXIO:
            return IDEM__JOURNAL_ODD;
        default:
            (void)idem__journal_errno(error, "open", name);
            return IDEM__JOURNAL_ERROR;
        }
    }
    hold = look_at(journal, name, alone, fd, ret_len, error);
    if (hold == IDEM__JOURNAL_HELD) {
        *ret_fd = fd;
    } else {
        (void)close(fd);
    }
    return hold;
}

int idem__journal_read(int fd, size_t len, uint8_t **ret_bytes,
                       struct idem_error *error)
{
    uint8_t *bytes = idem__alloc(len);
    size_t at = 0;

    if (bytes == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    while (at < len) {
        ssize_t n = pread(fd, bytes + at, len - at, (off_t)at);

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
