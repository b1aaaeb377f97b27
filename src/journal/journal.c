/* A journal: opened, closed, and entries put into it. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/process.h"
#include "core/error.h"
#include "core/outcome.h"
#include "core/token.h"
#include "journal/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct idem_journal_entry {
    int directory; /* A descriptor of its own: the journal may be closed. */
    int fd;
    bool named;    /* By its last name. */
    bool replaces; /* One that was there, with the same content. */
    unsigned part;
    uint64_t len;
    char name[IDEM__JOURNAL_NAME_MAX + 1];
};

/* ---- Opening ---- */

static int check_options(const struct idem_journal_options *options,
                         struct idem_error *error)
{
    if (options->size != sizeof(*options)) {
        return idem__error(error, IDEM_EINVALID,
                           "options: begin with IDEM_JOURNAL_OPTIONS_INIT");
    }
    if ((options->flags & ~(unsigned)IDEM_JOURNAL_CREATE) != 0) {
        return idem__error(error, IDEM_EINVALID, "options: no such flag");
    }
    if (options->entries_max < 1 || options->bytes_max < 1) {
        return idem__error(error, IDEM_EINVALID,
                           "options: a journal without room is none");
    }
    return 0;
}

static int make(const char *directory, struct idem_error *error)
{
    if (mkdir(directory, 0700) == 0 || errno == EEXIST) {
        return 0;
    }
    if (errno == ENOENT) {
        return idem__error(error, IDEM_ECONFIG,
                           "cannot make the journal %.120s: make the directory "
                           "above it first",
                           directory);
    }
    return idem__journal_errno(error, "make", directory);
}

/* Its entries are believed, and will be told to stores. */
static int check_owner(int fd, const char *directory, struct idem_error *error)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return idem__journal_errno(error, "look at", directory);
    }
    if (st.st_uid != geteuid()) {
        return idem__error(error, IDEM_EDENIED,
                           "the journal %.120s belongs to another user (%lu)",
                           directory, (unsigned long)st.st_uid);
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return idem__error(error, IDEM_EDENIED,
                           "others may write to the journal %.120s: chmod 700 "
                           "it",
                           directory);
    }
    return 0;
}

static int open_directory(const char *directory, unsigned flags, int *ret_fd,
                          struct idem_error *error)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(directory, how);
    int rc;

    if (fd < 0 && errno == ENOENT && (flags & IDEM_JOURNAL_CREATE) != 0) {
        rc = make(directory, error);
        if (rc != 0) {
            return rc;
        }
        fd = open(directory, how);
    }
    if (fd < 0 && errno == ENOENT) {
        return idem__error(error, IDEM_ENOTFOUND, "no journal in %.120s",
                           directory);
    }
    if (fd < 0) {
        return idem__journal_errno(error, "open", directory);
    }
    rc = check_owner(fd, directory, error);
    if (rc != 0) {
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

int idem_journal_open(const char *directory,
                      const struct idem_journal_options *options,
                      struct idem_journal **ret_journal,
                      struct idem_error *ret_error)
{
    static const struct idem_journal_options standard =
        IDEM_JOURNAL_OPTIONS_INIT;
    struct idem_journal *journal;
    int fd = -1;
    int rc;

    if (options == NULL) {
        options = &standard;
    }
    rc = check_options(options, ret_error);
    if (rc == 0) {
        rc = open_directory(directory, options->flags, &fd, ret_error);
    }
    if (rc != 0) {
        return rc;
    }
    journal = idem__zalloc(sizeof(*journal) + strlen(directory) + 1);
    if (journal == NULL) {
        (void)close(fd);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    (void)strcpy(journal->directory, directory);
    journal->fd = fd;
    journal->pid = idem__process();
    journal->bytes_max = options->bytes_max;
    journal->entries_max = options->entries_max;
    *ret_journal = journal;
    return 0;
}

void idem_journal_close(struct idem_journal *journal)
{
    if (journal != NULL) {
        (void)close(journal->fd);
        idem__free(journal);
    }
}

/* ---- Putting ---- */

/* The credential of @attempt, taken apart. */
static int read_attempt(const struct idem_attempt *attempt,
                        struct idem__token *ret_token, struct idem_error *error)
{
    char text[IDEM_TOKEN_MAX];
    int rc = idem_attempt_token(attempt, text);

    if (rc == IDEM_EINVALID) {
        return idem__error(error, rc,
                           "the attempt was not started: it has no outcome");
    }
    return rc == 0 ? idem__token_read(text, ret_token, error)
                   : idem__error_plain(error, rc);
}

/* When @outcome was known, by the wall clock. */
static int64_t known_ms(const struct idem_outcome *outcome)
{
    struct idem_clock_reading reading = {0};
    struct idem_host host = {.ctx = NULL};
    int64_t ago_ms;

    idem__host_default(&host);
    if (host.clock(host.ctx, &reading) != 0) {
        return 0;
    }
    ago_ms = outcome->ended_boot_ms != 0 &&
                     outcome->ended_boot_ms > -IDEM_DURATION_MAX_MS
                 ? reading.boot_ms - outcome->ended_boot_ms
                 : 0;
    return ago_ms > 0 && ago_ms < reading.wall_ms ? reading.wall_ms - ago_ms
                                                  : reading.wall_ms;
}

static int encode(const struct idem_store *store,
                  const struct idem_attempt *attempt,
                  const struct idem_outcome *outcome,
                  struct idem__entry_file *ret_file, struct idem_error *error)
{
    const char *url = idem_store_url(store);
    struct idem__token token;
    struct idem__entry entry;
    int rc = idem__outcome_check(outcome, error);

    if (rc == 0 && url == NULL) {
        rc = idem__error(error, IDEM_EINVALID,
                         "nobody could ever replay it: the store is gone when "
                         "it is closed");
    }
    if (rc == 0) {
        rc = read_attempt(attempt, &token, error);
    }
    if (rc != 0) {
        return rc;
    }
    memset(&entry, 0, sizeof(entry));
    entry.store_url = idem_str(url);
    entry.scope = token.scope;
    entry.key = token.key;
    memcpy(entry.nonce, token.nonce, sizeof(entry.nonce));
    entry.fence = token.fence;
    entry.outcome = idem__outcome_bounded(outcome, IDEM_RESULT_MAX);
    entry.written_ms = known_ms(outcome);
    rc = idem_id(token.scope, token.key, entry.id);
    if (rc == 0) {
        rc = idem__entry_encode(&entry, ret_file);
    }
    return rc == 0 ? 0 : idem__error_plain(error, rc);
}

/* ---- The file of an entry ---- */

/* The directory of @part, and the one above it: durable once the put is, which
 * flushes both. */
static int make_part(const struct idem_journal *journal, unsigned part,
                     struct idem_error *error)
{
    char path[16];

    idem__journal_part_path(part, path);
    if ((mkdirat(journal->fd, IDEM__JOURNAL_BY_RECORD, 0700) != 0 &&
         errno != EEXIST) ||
        (mkdirat(journal->fd, path, 0700) != 0 && errno != EEXIST)) {
        return idem__journal_errno(error, "make", path);
    }
    return 0;
}

static int open_new(const struct idem_journal *journal,
                    const struct idem_journal_entry *entry)
{
    return openat(journal->fd, entry->name,
                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* A new file, and locked. A process that looks in between may take it for one
 * whose writer died, and set it aside: then the next. */
static int create_one(const struct idem_journal *journal,
                      struct idem_journal_entry *entry, bool *ret_ours,
                      struct idem_error *error)
{
    int named;

    entry->fd = open_new(journal, entry);
    if (entry->fd < 0 && errno == ENOENT) {
        int rc = make_part(journal, entry->part, error);

        if (rc != 0) {
            *ret_ours = false;
            return rc;
        }
        entry->fd = open_new(journal, entry);
    }
    if (entry->fd < 0) {
        *ret_ours = false;
        return errno == EEXIST
                   ? 0 /* Of a process that had our number, and died. */
                   : idem__journal_errno(error, "make", entry->name);
    }
    while (flock(entry->fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            return idem__journal_errno(error, "lock", entry->name);
        }
    }
    named = idem__journal_is_named(journal, entry->fd, entry->name);
    if (named < 0) {
        return idem__journal_errno(error, "look at", entry->name);
    }
    *ret_ours = named == 1;
    return 0;
}

static void give_up(const struct idem_journal *journal,
                    struct idem_journal_entry *entry)
{
    if (entry->fd >= 0) {
        (void)unlinkat(journal->fd, entry->name, 0);
        (void)close(entry->fd);
    }
}

static int create(const struct idem_journal *journal, const char *name,
                  struct idem_journal_entry *entry, struct idem_error *error)
{
    static unsigned counter;
    bool ours = false;
    char path[16];

    idem__journal_part_path(entry->part, path);
    while (!ours) {
        unsigned n = __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED);
        int rc;

        (void)snprintf(entry->name, sizeof(entry->name), "%s/%s.%x%04x.new",
                       path, name, (unsigned)getpid(), n & 0xffff);
        rc = create_one(journal, entry, &ours, error);
        if (rc != 0) {
            give_up(journal, entry);
            return rc;
        }
        if (!ours && entry->fd >= 0) {
            (void)close(entry->fd);
        }
    }
    return 0;
}

static struct iovec piece(const void *base, size_t len)
{
    return (struct iovec){(void *)(uintptr_t)base, len}; /* Only read. */
}

static int write_all(int fd, const struct idem__entry_file *file,
                     const char *name, struct idem_error *error)
{
    struct iovec parts[3] = {
        piece(file->head, file->head_len),
        piece(file->result.base, file->result.len),
        piece(file->tail, sizeof(file->tail)),
    };
    struct iovec *part = parts;
    int left = 3;

    while (left > 0) {
        ssize_t n = writev(fd, part, left);

        if (n < 0 && errno != EINTR) {
            return idem__journal_errno(error, "write", name);
        }
        while (left > 0 && n >= (ssize_t)part->iov_len) {
            n -= (ssize_t)part->iov_len;
            part++;
            left--;
        }
        if (left > 0 && n > 0) {
            part->iov_base = (char *)part->iov_base + n;
            part->iov_len -= (size_t)n;
        }
    }
    return 0;
}

static int flush(int fd, const char *name, struct idem_error *error)
{
    return fsync(fd) == 0 ? 0 : idem__journal_errno(error, "flush", name);
}

/* The entries of the directory @path. */
static int flush_directory(const struct idem_journal *journal, const char *path,
                           struct idem_error *error)
{
    int fd = openat(journal->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc;

    if (fd < 0) {
        return idem__journal_errno(error, "open", path);
    }
    rc = flush(fd, path, error);
    (void)close(fd);
    return rc;
}

/* The directories that lead to the file. @durable: its own directory is there
 * after a power cut already, so only what is in it is flushed. */
static int flush_path(const struct idem_journal *journal, unsigned part,
                      bool durable, struct idem_error *error)
{
    char path[16];
    int rc;

    idem__journal_part_path(part, path);
    rc = flush_directory(journal, path, error);
    if (rc == 0 && !durable) {
        rc = flush_directory(journal, IDEM__JOURNAL_BY_RECORD, error);
    }
    if (rc == 0 && !durable) {
        rc = flush(journal->fd, "its directory", error);
    }
    if (rc == 0 && !durable) {
        idem__usage_set_durable(journal->fd, part);
    }
    return rc;
}

/* The name comes before the flush: so one commit of the file system holds both,
 * at two thirds of the price. The rest of it after a power cut fails its
 * checksum; an entry that is there already is not put at risk. */
static int settle(const struct idem_journal *journal, const char *name,
                  bool durable, struct idem_journal_entry *entry,
                  struct idem_error *error)
{
    char to[IDEM__JOURNAL_NAME_MAX + 1];
    char path[16];
    int rc = 0;

    idem__journal_part_path(entry->part, path);
    (void)snprintf(to, sizeof(to), "%s/%s.idj", path, name);
    entry->replaces = faccessat(journal->fd, to, F_OK, 0) == 0;
    if (entry->replaces) {
        rc = flush(entry->fd, entry->name, error);
    }
    if (rc != 0) {
        return rc;
    }
    if (renameat(journal->fd, entry->name, journal->fd, to) != 0) {
        return idem__journal_errno(error, "name", to);
    }
    (void)strcpy(entry->name, to);
    entry->named = true;
    IDEM__CRASH_POINT("journal/put/named");
    rc = flush(entry->fd, to, error);
    if (rc == 0) {
        rc = flush_path(journal, entry->part, durable, error);
    }
    IDEM__CRASH_POINT("journal/put/flushed");
    return rc;
}

static int store_file(const struct idem_journal *journal,
                      const struct idem__entry_file *file, bool durable,
                      struct idem_journal_entry *entry,
                      struct idem_error *error)
{
    int rc = create(journal, file->name, entry, error);

    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("journal/put/made");
    rc = write_all(entry->fd, file, entry->name, error);
    if (rc == 0) {
        IDEM__CRASH_POINT("journal/put/written");
        rc = settle(journal, file->name, durable, entry, error);
    }
    if (rc != 0) {
        if (entry->named && entry->replaces) {
            (void)close(entry->fd);
        } else {
            give_up(journal, entry);
        }
    }
    return rc;
}

static int put(const struct idem_journal *journal,
               const struct idem__entry_file *file,
               struct idem_journal_entry *entry, struct idem_error *error)
{
    bool durable;
    int rc;

    entry->part = idem__journal_part_of(file->name);
    entry->len = file->head_len + file->result.len + sizeof(file->tail);
    rc = idem__usage_add(journal, entry->part, entry->len, &durable, error);
    if (rc != 0) {
        return rc;
    }
    entry->directory = fcntl(journal->fd, F_DUPFD_CLOEXEC, 3);
    if (entry->directory < 0) {
        rc = idem__journal_errno(error, "hold", "its directory");
    } else {
        rc = store_file(journal, file, durable, entry, error);
        if (rc != 0) {
            (void)close(entry->directory);
        }
    }
    if (rc != 0 || entry->replaces) {
        idem__usage_take_off(journal->fd, entry->part, entry->len);
    }
    return rc;
}

int idem_journal_put(struct idem_journal *journal,
                     const struct idem_store *store,
                     const struct idem_attempt *attempt,
                     const struct idem_outcome *outcome,
                     struct idem_journal_entry **ret_entry,
                     struct idem_error *ret_error)
{
    struct idem_journal_entry *entry;
    struct idem__entry_file *file;
    int rc = idem__journal_check(journal, ret_error);

    if (rc != 0) {
        return rc;
    }
    entry = idem__zalloc(sizeof(*entry));
    file = idem__alloc(sizeof(*file));
    if (entry == NULL || file == NULL) {
        rc = idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    if (rc == 0) {
        rc = encode(store, attempt, outcome, file, ret_error);
    }
    if (rc == 0) {
        rc = put(journal, file, entry, ret_error);
    }
    idem__free(file);
    if (rc != 0) {
        idem__free(entry);
        return rc;
    }
    *ret_entry = entry;
    return 0;
}

/* Encodes what was decoded: the file is one of ours, whatever wrote @bytes. */
static int adopt(const struct idem_journal *journal, struct idem_slice bytes,
                 struct idem__entry_file *file, struct idem_error *error)
{
    struct idem_journal_entry held = {.fd = -1};
    char name[IDEM__ENTRY_NAME_LEN + 1];
    struct idem__entry entry;
    int rc = idem__entry_decode(bytes, &entry, name, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__entry_encode(&entry, file);
    if (rc != 0) {
        return idem__error_plain(error, rc);
    }
    rc = put(journal, file, &held, error);
    if (rc == 0) {
        (void)close(held.fd);
        (void)close(held.directory);
    }
    return rc;
}

int idem_journal_adopt(struct idem_journal *journal, struct idem_slice bytes,
                       struct idem_error *ret_error)
{
    struct idem__entry_file *file;
    int rc = idem__journal_check(journal, ret_error);

    if (rc != 0) {
        return rc;
    }
    file = idem__alloc(sizeof(*file));
    if (file == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = adopt(journal, bytes, file, ret_error);
    explicit_bzero(file, sizeof(*file));
    idem__free(file);
    return rc;
}

const char *idem_journal_entry_name(const struct idem_journal_entry *entry)
{
    return entry->name;
}

void idem_journal_remove(struct idem_journal_entry *entry)
{
    if (entry != NULL) {
        if (unlinkat(entry->directory, entry->name, 0) == 0) {
            IDEM__CRASH_POINT("journal/removed");
            idem__usage_take_off(entry->directory, entry->part, entry->len);
        }
        idem_journal_leave(entry);
    }
}

void idem_journal_leave(struct idem_journal_entry *entry)
{
    if (entry != NULL) {
        (void)close(entry->fd);
        (void)close(entry->directory);
        idem__free(entry);
    }
}
