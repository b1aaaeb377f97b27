/* A journal: opened, counted, closed, and entries put into it. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/process.h"
#include "core/error.h"
#include "core/outcome.h"
#include "core/token.h"
#include "journal/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct idem_journal_entry {
    int directory; /* A descriptor of its own: the journal may be closed. */
    int fd;
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
                           "options: entries_max and bytes_max must be at "
                           "least 1");
    }
    return 0;
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

static int open_directory(const char *directory, bool make, int *ret_fd,
                          struct idem_error *error)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(directory, how);

    if (fd < 0 && errno == ENOENT && make) {
        if (mkdir(directory, 0700) != 0 && errno == ENOENT) {
            return idem__error(error, IDEM_ECONFIG,
                               "cannot make the journal %.120s: make the "
                               "directory above it first",
                               directory);
        }
        fd = open(directory, how);
    }
    if (fd < 0) {
        return errno == ENOENT ? idem__error(error, IDEM_ENOTFOUND,
                                             "no journal in %.120s", directory)
                               : idem__journal_errno(error, "open", directory);
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
    struct idem_journal *journal = NULL;
    int fd = -1;
    int rc;

    options = options == NULL ? &standard : options;
    rc = check_options(options, ret_error);
    if (rc == 0) {
        rc = open_directory(directory,
                            (options->flags & IDEM_JOURNAL_CREATE) != 0, &fd,
                            ret_error);
    }
    if (rc == 0) {
        rc = check_owner(fd, directory, ret_error);
    }
    if (rc == 0) {
        journal = idem__zalloc(sizeof(*journal) + strlen(directory) + 1);
        rc = journal == NULL ? idem__error_plain(ret_error, IDEM_ENOMEM) : 0;
    }
    if (rc != 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    (void)strcpy(journal->directory, directory);
    (void)pthread_mutex_init(&journal->mutex, NULL);
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
        (void)pthread_mutex_destroy(&journal->mutex);
        idem__free(journal);
    }
}

/* ---- Counting ---- */

static int count_one(void *ctx, const char *name)
{
    struct idem_journal *journal = ctx;
    struct stat st;

    if (fstatat(journal->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        journal->entries++;
        journal->bytes += (uint64_t)st.st_size;
    }
    return 0;
}

/* Counts, where that was not done within @age_ms. Under the mutex. */
static int count(struct idem_journal *journal, uint64_t age_ms,
                 struct idem_error *error)
{
    int64_t now_ms = idem__mono_ms();
    int rc;

    if (journal->counted_ms != 0 &&
        (uint64_t)(now_ms - journal->counted_ms) < age_ms) {
        return 0;
    }
    journal->entries = 0;
    journal->bytes = 0;
    rc = idem__journal_walk(journal, count_one, journal, error);
    journal->counted_ms = rc == 0 ? now_ms : 0;
    return rc;
}

/* Where a decision rests on them the numbers are this fresh: at once for a few
 * entries, and of many, which take long, not again and again. */
static uint64_t fresh_ms(const struct idem_journal *journal)
{
    return journal->entries / 100;
}

static bool has_room(const struct idem_journal *journal, uint64_t len)
{
    return journal->entries < journal->entries_max &&
           journal->bytes + len <= journal->bytes_max;
}

/* Makes room for @len bytes. What others put and removed since the last count is
 * not known: so it is done again after a while, and before no is said. 100,000
 * entries take about half a second. */
static int reserve(struct idem_journal *journal, uint64_t len,
                   struct idem_error *error)
{
    int rc;

    (void)pthread_mutex_lock(&journal->mutex);
    rc = count(journal, 1000 + journal->entries / 2, error);
    if (rc == 0 && !has_room(journal, len)) {
        rc = count(journal, fresh_ms(journal), error);
    }
    if (rc == 0 && !has_room(journal, len)) {
        rc = idem__error(error, IDEM_EFULL,
                         "the journal is full (idem reconcile makes room): "
                         "%.120s holds %llu of %llu outcomes, %llu of %llu "
                         "bytes",
                         journal->directory,
                         (unsigned long long)journal->entries,
                         (unsigned long long)journal->entries_max,
                         (unsigned long long)journal->bytes,
                         (unsigned long long)journal->bytes_max);
    }
    if (rc == 0) {
        journal->entries++;
        journal->bytes += len;
    }
    (void)pthread_mutex_unlock(&journal->mutex);
    return rc;
}

int idem_journal_read_usage(struct idem_journal *journal,
                            struct idem_journal_usage *ret_usage,
                            struct idem_error *ret_error)
{
    const double told = IDEM_JOURNAL_TOLD_PERCENT / 100.0;
    struct idem_journal_usage *u = ret_usage;
    int rc = idem__journal_check(journal, ret_error);

    if (rc == 0 && u->size != sizeof(*u)) {
        rc = idem__error(ret_error, IDEM_EINVALID,
                         "usage: begin with IDEM_JOURNAL_USAGE_INIT");
    }
    if (rc != 0) {
        return rc;
    }
    (void)pthread_mutex_lock(&journal->mutex);
    rc = count(journal, fresh_ms(journal), ret_error);
    if (rc == 0) {
        u->entries = journal->entries;
        u->bytes = journal->bytes;
        u->entries_max = journal->entries_max;
        u->bytes_max = journal->bytes_max;
        u->near = (double)u->entries >= told * (double)u->entries_max ||
                  (double)u->bytes >= told * (double)u->bytes_max;
    }
    (void)pthread_mutex_unlock(&journal->mutex);
    return rc;
}

/* ---- Putting ---- */

/* When @outcome was known, by the wall clock. */
static int64_t known_ms(const struct idem_outcome *outcome)
{
    struct idem_clock_reading now = {0};
    struct idem_host host = {.ctx = NULL};
    int64_t ago_ms;

    idem__host_default(&host);
    if (host.clock(host.ctx, &now) != 0 || now.wall_ms < 0) {
        return 0;
    }
    if (outcome->ended_boot_ms == 0 ||
        outcome->ended_boot_ms <= -IDEM_DURATION_MAX_MS) {
        return now.wall_ms;
    }
    ago_ms = now.boot_ms - outcome->ended_boot_ms;
    return ago_ms > 0 && ago_ms < now.wall_ms ? now.wall_ms - ago_ms
                                              : now.wall_ms;
}

/* @ret_token holds the texts of @ret_entry. */
static int describe(const struct idem_store *store,
                    const struct idem_attempt *attempt,
                    const struct idem_outcome *outcome,
                    struct idem__token *ret_token,
                    struct idem__entry *ret_entry, struct idem_error *error)
{
    struct idem__entry *e = ret_entry;
    char text[IDEM_TOKEN_MAX];
    int rc = idem__outcome_check(outcome, error);

    if (rc == 0 && idem_store_url(store) == NULL) {
        rc = idem__error(error, IDEM_EINVALID,
                         "cannot journal for a memory store: it does not "
                         "outlive the process");
    }
    if (rc != 0) {
        return rc;
    }
    rc = idem_attempt_token(attempt, text);
    if (rc != 0) {
        return rc == IDEM_EINVALID
                   ? idem__error(error, rc,
                                 "the attempt was not started: it has no "
                                 "outcome")
                   : idem__error_plain(error, rc);
    }
    rc = idem__token_read(text, ret_token, error);
    if (rc != 0) {
        return rc;
    }
    memset(e, 0, sizeof(*e));
    e->store_url = idem_str(idem_store_url(store));
    e->scope = ret_token->scope;
    e->key = ret_token->key;
    memcpy(e->nonce, ret_token->nonce, sizeof(e->nonce));
    e->fence = ret_token->fence;
    e->outcome = idem__outcome_bounded(outcome, IDEM_RESULT_MAX);
    e->written_ms = known_ms(outcome);
    rc = idem_id(e->scope, e->key, e->id);
    return rc == 0 ? 0 : idem__error_plain(error, rc);
}

/* Whether the file holds the outcome @bytes, whenever that was put. True: it is
 * locked, and *@ret_fd is the caller's. */
static bool is_there(const struct idem_journal *journal, const char *name,
                     struct idem_slice bytes, int *ret_fd)
{
    struct idem__journal_file file;
    uint8_t *there = NULL;
    bool same;

    if (idem__journal_hold(journal, name, /* alone= */ true, &file, NULL) !=
        IDEM__JOURNAL_HELD) {
        return false;
    }
    same = file.len == bytes.len &&
           idem__journal_read(&file, &there, NULL) == 0 &&
           memcmp(there, bytes.base, bytes.len - IDEM__ENTRY_TAIL_LEN) == 0;
    if (same) {
        *ret_fd = file.fd;
    } else {
        (void)close(file.fd);
    }
    idem__free(there);
    return same;
}

/* 1: the new file is ours. 0: a process that read it before it was locked took it
 * for one whose writer died, and has set it aside. Else an error. */
static int lock_new(const struct idem_journal *journal,
                    const struct idem_journal_entry *entry,
                    struct idem_error *error)
{
    int rc;

    do {
        rc = flock(entry->fd, LOCK_EX);
    } while (rc != 0 && errno == EINTR);
    rc = rc == 0 ? idem__journal_is_named(journal, entry->fd, entry->name) : -1;
    return rc < 0 ? idem__journal_errno(error, "lock", entry->name) : rc;
}

/* A new file under the first number that is free, or one that holds the outcome
 * already; locked. */
static int take_file(const struct idem_journal *journal, const char *stem,
                     struct idem_slice bytes, struct idem_journal_entry *entry,
                     bool *ret_new, struct idem_error *error)
{
    int ours = 0;
    int n;

    for (n = 0; n < IDEM__JOURNAL_NUMBERS; n++) {
        (void)snprintf(entry->name, sizeof(entry->name), "%s-%d.idj", stem, n);
        entry->fd =
            openat(journal->fd, entry->name,
                   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        *ret_new = entry->fd >= 0;
        if (*ret_new) {
            ours = lock_new(journal, entry, error);
        } else if (errno == EEXIST) {
            ours = is_there(journal, entry->name, bytes, &entry->fd);
        } else {
            ours = idem__journal_errno(error, "make", entry->name);
        }
        if (ours == 1) {
            return 0;
        }
        if (*ret_new) {
            if (ours < 0) {
                (void)unlinkat(journal->fd, entry->name, 0);
            }
            (void)close(entry->fd);
        }
        if (ours < 0) {
            return ours;
        }
    }
    return idem__error(error, IDEM_EFULL,
                       "the journal keeps at most %d outcomes of one record "
                       "and status (idem reconcile makes room)",
                       IDEM__JOURNAL_NUMBERS);
}

static int write_all(int fd, struct idem_slice bytes, const char *name,
                     struct idem_error *error)
{
    const char *p = bytes.base;
    size_t at = 0;

    while (at < bytes.len) {
        ssize_t n = pwrite(fd, p + at, bytes.len - at, (off_t)at);

        if (n < 0 && errno != EINTR) {
            return idem__journal_errno(error, "write", name);
        }
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* The file has its last name before it is flushed, so one commit of the file system
 * holds both. The rest of it after a power cut fails its checksum. */
static int store_file(const struct idem_journal *journal, const char *stem,
                      struct idem_slice bytes, struct idem_journal_entry *entry,
                      struct idem_error *error)
{
    bool is_new = false;
    int rc = take_file(journal, stem, bytes, entry, &is_new, error);

    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("journal/put/made");
    if (is_new) {
        rc = write_all(entry->fd, bytes, entry->name, error);
    }
    IDEM__CRASH_POINT("journal/put/written");
    /* Also one that was there: its writer may have died before. */
    if (rc == 0 && (fsync(entry->fd) != 0 || fsync(journal->fd) != 0)) {
        rc = idem__journal_errno(error, "flush", entry->name);
    }
    IDEM__CRASH_POINT("journal/put/flushed");
    if (rc != 0) {
        if (is_new) {
            (void)unlinkat(journal->fd, entry->name, 0);
        }
        (void)close(entry->fd);
    }
    return rc;
}

static int put(struct idem_journal *journal, const struct idem__entry *what,
               struct idem_slice bytes, struct idem_journal_entry **ret_entry,
               struct idem_error *error)
{
    struct idem_journal_entry *entry = idem__zalloc(sizeof(*entry));
    char stem[IDEM__ENTRY_RECORD_LEN + 2];
    int rc = entry == NULL
                 ? IDEM_ENOMEM
                 : idem__entry_record_name(what->store_url, what->id, stem);

    if (rc != 0) {
        rc = idem__error_plain(error, rc);
        goto err_after_alloc;
    }
    stem[IDEM__ENTRY_RECORD_LEN] = (char)('0' + what->outcome.status);
    stem[IDEM__ENTRY_RECORD_LEN + 1] = '\0';
    rc = reserve(journal, bytes.len, error);
    if (rc != 0) {
        goto err_after_alloc;
    }
    entry->directory = fcntl(journal->fd, F_DUPFD_CLOEXEC, 3);
    if (entry->directory < 0) {
        rc = idem__journal_errno(error, "hold", journal->directory);
        goto err_after_alloc;
    }
    rc = store_file(journal, stem, bytes, entry, error);
    if (rc != 0) {
        goto err_after_open;
    }
    *ret_entry = entry;
    return 0;

err_after_open:
    (void)close(entry->directory);
err_after_alloc:
    idem__free(entry);
    return rc;
}

int idem_journal_put(struct idem_journal *journal,
                     const struct idem_store *store,
                     const struct idem_attempt *attempt,
                     const struct idem_outcome *outcome,
                     struct idem_journal_entry **ret_entry,
                     struct idem_error *ret_error)
{
    struct idem__buffer file = {0};
    struct idem__token token;
    struct idem__entry what;
    int rc = idem__journal_check(journal, ret_error);

    if (rc == 0) {
        rc = describe(store, attempt, outcome, &token, &what, ret_error);
    }
    if (rc != 0) {
        return rc;
    }
    rc = idem__entry_encode(&what, &file);
    rc = rc != 0 ? idem__error_plain(ret_error, rc)
                 : put(journal, &what, idem__buffer_slice(&file), ret_entry,
                       ret_error);
    idem__buffer_free(&file);
    return rc;
}

int idem_journal_adopt(struct idem_journal *journal, struct idem_slice bytes,
                       struct idem_error *ret_error)
{
    struct idem_journal_entry *entry = NULL;
    struct idem__entry what;
    int rc = idem__journal_check(journal, ret_error);

    if (rc == 0) {
        rc = idem__entry_decode(bytes, &what, ret_error);
    }
    if (rc == 0) {
        rc = put(journal, &what, bytes, &entry, ret_error);
    }
    idem_journal_leave(entry);
    return rc;
}

const char *idem_journal_entry_name(const struct idem_journal_entry *entry)
{
    return entry->name;
}

void idem_journal_remove(struct idem_journal_entry *entry)
{
    if (entry != NULL) {
        (void)unlinkat(entry->directory, entry->name, 0);
        IDEM__CRASH_POINT("journal/removed");
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
