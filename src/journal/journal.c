/* A journal: opened, measured, closed, and entries put into it. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "core/outcome.h"
#include "journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A journal leaves so much of its file system free, or this part where that is less; so
 * many times as much is little room. */
enum {
    LEFT_BYTES = 16 << 20,
    LEFT_PART = 64,
    NEAR = 16,
};

struct idem_journal_entry {
    int directory; /* A descriptor of its own: the journal may be closed. */
    int fd;
    char name[IDEM__JOURNAL_NAME_MAX + 1];
};

static void close_if_open(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* ---- Opening ---- */

/* Opens the directory. Its entries are believed, and will be told to stores: so it is
 * this user's alone. */
static int open_directory(struct idem_journal *journal, bool make,
                          struct idem_error *error)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const char *directory = journal->directory;
    struct stat st;

    journal->fd = open(directory, how);
    if (journal->fd < 0 && errno == ENOENT && make) {
        if (mkdir(directory, 0700) != 0 && errno == ENOENT) {
            return idem__error(
                error, IDEM_ECONFIG,
                "cannot create the journal %.120s: create its parent directory "
                "first",
                directory);
        }
        journal->fd = open(directory, how);
    }
    if (journal->fd < 0) {
        return errno == ENOENT ? idem__error(error, IDEM_ENOTFOUND,
                                             "no journal in %.120s", directory)
                               : idem__journal_errno(error, "open", directory);
    }
    if (fstat(journal->fd, &st) != 0) {
        return idem__journal_errno(error, "look at", directory);
    }
    if (st.st_uid != geteuid()) {
        return idem__error(error, IDEM_EDENIED,
                           "the journal %.120s belongs to another user (%lu)",
                           directory, (unsigned long)st.st_uid);
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return idem__error(
            error, IDEM_EDENIED,
            "the journal %.120s is writable by others: chmod 700 it",
            directory);
    }
    return 0;
}

int idem_journal_open(const char *directory, bool create,
                      struct idem_journal **ret_journal,
                      struct idem_error *ret_error)
{
    struct idem_journal *journal =
        idem__zalloc(sizeof(*journal) + strlen(directory) + 1);
    int rc;

    if (journal == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    (void)strcpy(journal->directory, directory);
    rc = open_directory(journal, create, ret_error);
    if (rc != 0) {
        idem_journal_close(journal);
        return rc;
    }
    *ret_journal = journal;
    return 0;
}

void idem_journal_close(struct idem_journal *journal)
{
    if (journal != NULL) {
        close_if_open(journal->fd);
        idem__free(journal);
    }
}

/* ---- Room ---- */

/* The room of the file system for entries, and whether that is little. A file system
 * without a stated size has room until a write fails. */
static int read_room(const struct idem_journal *journal, uint64_t *ret_room,
                     bool *ret_near, struct idem_error *error)
{
    struct statvfs fs;
    uint64_t available;
    uint64_t left;

    if (fstatvfs(journal->fd, &fs) != 0) {
        return idem__journal_errno(error, "look at", journal->directory);
    }
    available = (uint64_t)fs.f_bavail * fs.f_frsize;
    left = (uint64_t)fs.f_blocks * fs.f_frsize / LEFT_PART;
    left = left < LEFT_BYTES ? left : LEFT_BYTES;
    *ret_room = fs.f_blocks == 0   ? UINT64_MAX
                : available > left ? available - left
                                   : 0;
    *ret_near = *ret_room < NEAR * left;
    return 0;
}

static int check_room(const struct idem_journal *journal, uint64_t len,
                      struct idem_error *error)
{
    uint64_t room;
    bool near;
    int rc = read_room(journal, &room, &near, error);

    return rc != 0 || room >= len
               ? rc
               : idem__error(
                     error, IDEM_EFULL,
                     "the disk of the journal %.120s is full: make "
                     "room on it (idem reconcile records the waiting outcomes)",
                     journal->directory);
}

static int count_one(void *ctx, const char *name)
{
    uint64_t *entries = ctx;

    (void)name;
    ++*entries;
    return 0;
}

int idem_journal_read_usage(struct idem_journal *journal,
                            struct idem_journal_usage *ret_usage,
                            struct idem_error *ret_error)
{
    struct idem_journal_usage usage = IDEM_JOURNAL_USAGE_INIT;
    int rc;

    if (ret_usage->size != sizeof(usage)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "usage: begin with IDEM_JOURNAL_USAGE_INIT");
    }
    rc = read_room(journal, &usage.room, &usage.near, ret_error);
    if (rc == 0) {
        rc = idem__journal_walk(journal, count_one, &usage.entries, ret_error);
    }
    if (rc == 0) {
        *ret_usage = usage;
    }
    return rc;
}

/* ---- Putting ---- */

/* When @outcome was known, by the wall clock. */
static int64_t known_ms(const struct idem_outcome *outcome)
{
    int64_t ended_ms = outcome->ended_boot_ms;
    struct idem_clock_reading now = {0};
    struct idem_host host = {.ctx = NULL};

    idem__host_default(&host);
    if (host.clock(host.ctx, &now) != 0 || now.wall_ms < 0) {
        return 0;
    }
    return ended_ms == 0 || ended_ms <= -IDEM_DURATION_MAX_MS ||
                   ended_ms >= now.boot_ms ||
                   now.boot_ms - ended_ms >= now.wall_ms
               ? now.wall_ms
               : now.wall_ms - (now.boot_ms - ended_ms);
}

static int describe(const struct idem_store *store,
                    const struct idem_attempt *attempt,
                    const struct idem_outcome *outcome,
                    struct idem_journal_info *ret_entry,
                    struct idem_error *error)
{
    const struct idem_record *record = attempt->record;
    int rc = idem__outcome_check(outcome, error);

    if (rc == 0 && idem_store_url(store) == NULL) {
        rc = idem__error(error, IDEM_EINVALID,
                         "cannot journal for a memory store: it does not "
                         "outlive the process");
    }
    if (rc == 0 && attempt->verdict != IDEM_STARTED) {
        rc = idem__error(error, IDEM_EINVALID,
                         "the attempt was not started: it has no outcome");
    }
    if (rc != 0) {
        return rc;
    }
    *ret_entry = (struct idem_journal_info){
        .store_url = idem_str(idem_store_url(store)),
        .scope = record->scope,
        .key = record->key,
        .fence = attempt->fence,
        .outcome = idem__outcome_bounded(outcome, IDEM_RESULT_MAX),
        .written_ms = known_ms(outcome),
    };
    memcpy(ret_entry->id, record->id, sizeof(ret_entry->id));
    memcpy(ret_entry->nonce, record->nonce, sizeof(ret_entry->nonce));
    return 0;
}

/* Whether the file holds the outcome @bytes, whenever that was put. */
static bool holds(const struct idem__journal_file *file,
                  struct idem_slice bytes)
{
    uint8_t *there = NULL;
    bool same;

    same = file->len == bytes.len &&
           idem__journal_read(file, &there, NULL) == 0 &&
           memcmp(there, bytes.base, bytes.len - IDEM__ENTRY_TAIL_LEN) == 0;
    idem__free(there);
    return same;
}

/* Takes an empty file under the first number that is free, or one that holds the
 * outcome already; locked. One that cannot be locked is passed over: another process
 * is at it, or found it empty before it was locked and deleted it. */
static int take_file(const struct idem_journal *journal,
                     const struct idem_journal_info *what,
                     struct idem_slice bytes, struct idem_journal_entry *entry,
                     bool *ret_new, struct idem_error *error)
{
    struct idem__journal_file file;
    int n;

    for (n = 0; n < IDEM__JOURNAL_NUMBERS; n++) {
        int rc;

        (void)snprintf(entry->name + IDEM__ENTRY_RECORD_LEN, 16, "%d-%d.idj",
                       (int)what->outcome.status, n);
        rc = idem__journal_hold(journal, entry->name, IDEM__JOURNAL_MAKE, &file,
                                error);
        *ret_new = rc == 0 && file.made;
        if (rc == 0 && (*ret_new || holds(&file, bytes))) {
            entry->fd = file.fd;
            return 0;
        }
        if (rc == 0) {
            (void)close(file.fd);
        } else if (rc != IDEM__JOURNAL_BUSY && rc != IDEM_ECORRUPT &&
                   rc != IDEM_ENOTFOUND) {
            return rc;
        }
    }
    return idem__error(error, IDEM_EFULL,
                       "the journal keeps at most %d outcomes of one record "
                       "and status (idem reconcile makes room)",
                       IDEM__JOURNAL_NUMBERS);
}

static int write_all(int fd, struct idem_slice bytes)
{
    const char *p = bytes.base;
    size_t at = 0;

    while (at < bytes.len) {
        ssize_t n = pwrite(fd, p + at, bytes.len - at, (off_t)at);

        if (n < 0 && errno != EINTR) {
            return -1;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* The file has its last name before it is flushed, so one commit of the file system
 * holds both. The rest of it after a power cut fails its checksum. */
static int store_file(const struct idem_journal *journal,
                      const struct idem_journal_info *what,
                      struct idem_slice bytes, struct idem_journal_entry *entry,
                      struct idem_error *error)
{
    bool is_new;
    int rc = take_file(journal, what, bytes, entry, &is_new, error);

    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("journal/put/made");
    if (is_new && write_all(entry->fd, bytes) != 0) {
        rc = idem__journal_errno(error, "write", entry->name);
    }
    IDEM__CRASH_POINT("journal/put/written");
    /* Also one that was there: its writer may have died before. */
    if (rc == 0 && (fsync(entry->fd) != 0 || fsync(journal->fd) != 0)) {
        rc = idem__journal_errno(error, "flush", entry->name);
    }
    IDEM__CRASH_POINT("journal/put/flushed");
    if (rc != 0 && is_new) {
        (void)unlinkat(journal->fd, entry->name, 0);
    }
    return rc;
}

static int put(struct idem_journal *journal,
               const struct idem_journal_info *what, struct idem_slice bytes,
               struct idem_journal_entry **ret_entry, struct idem_error *error)
{
    struct idem_journal_entry *entry = idem__zalloc(sizeof(*entry));
    int rc;

    if (entry == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    entry->fd = -1;
    entry->directory = fcntl(journal->fd, F_DUPFD_CLOEXEC, 3);
    rc = entry->directory < 0
             ? idem__journal_errno(error, "hold", journal->directory)
             : idem__entry_record_name(what->store_url, what->id, entry->name,
                                       error);
    rc = rc == 0 ? check_room(journal, bytes.len, error) : rc;
    rc = rc == 0 ? store_file(journal, what, bytes, entry, error) : rc;
    if (rc != 0) {
        idem_journal_leave(entry);
        return rc;
    }
    *ret_entry = entry;
    return 0;
}

int idem_journal_put(struct idem_journal *journal,
                     const struct idem_store *store,
                     const struct idem_attempt *attempt,
                     const struct idem_outcome *outcome,
                     struct idem_journal_entry **ret_entry,
                     struct idem_error *ret_error)
{
    struct idem__buffer file = {0};
    struct idem_journal_info what;
    int rc = describe(store, attempt, outcome, &what, ret_error);

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
    struct idem_journal_info what = {.name = NULL};
    int rc = idem__entry_decode(bytes, &what, ret_error);

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
        close_if_open(entry->fd);
        close_if_open(entry->directory);
        idem__free(entry);
    }
}
