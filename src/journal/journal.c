/* Opens a journal, measures its room, and puts entries into it. */
#include "base/crash.h"
#include "base/heap.h"
#include "core/error.h"
#include "core/outcome.h"
#include "journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A journal leaves LEFT_BYTES of its file system free, or a LEFT_PART-th of it if that
 * is less; room counts as near its end below NEAR times that. */
enum {
    LEFT_BYTES = 16 << 20,
    LEFT_PART = 64,
    NEAR = 16,
};

struct idem_journal_entry {
    struct idem__journal_file file;
    char name[IDEM__ENTRY_NAME_MAX + 1]; /* file.name points here. */
};

/* ---- Opening ---- */

/* Refuses a directory to which another user may write: a replay trusts the entries, and
 * records them in stores with the rights of this user. */
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
        return idem__error(
            error, IDEM_EDENIED,
            "the journal %.120s is writable by others: chmod 700 it",
            directory);
    }
    return 0;
}

/* Fails with the reason of open(), which is in errno, or with that of mkdir(), which is 0
 * if that was not called or created the directory. */
static int fail_open(const char *directory, bool create, int mkdir_errno,
                     struct idem_error *error)
{
    if (errno == ENOENT && !create) {
        return idem__error(error, IDEM_ENOTFOUND, "no journal in %.120s",
                           directory);
    }
    if (errno == ENOENT && mkdir_errno == ENOENT) {
        return idem__error(
            error, IDEM_ECONFIG,
            "cannot create the journal %.120s: create its parent directory "
            "first",
            directory);
    }
    if (errno == ENOENT && mkdir_errno != 0) {
        errno = mkdir_errno;
        return idem__journal_errno(error, "create", directory);
    }
    return idem__journal_errno(error, "open", directory);
}

int idem_journal_open(const char *directory, bool create,
                      struct idem_journal **ret_journal,
                      struct idem_error *ret_error)
{
    struct idem_journal *journal = NULL;
    int mkdir_errno = 0;
    int rc;
    int fd;

    /* NFS, for example, may refuse mkdir() with EACCES also where the directory exists. So
     * its reason counts only if the directory is missing. */
    if (create && mkdir(directory, 0700) != 0) {
        mkdir_errno = errno;
    }
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return fail_open(directory, create, mkdir_errno, ret_error);
    }
    rc = check_owner(fd, directory, ret_error);
    if (rc == 0) {
        journal = idem__zalloc(sizeof(*journal) + strlen(directory) + 1);
    }
    if (journal == NULL) {
        (void)close(fd);
        return rc != 0 ? rc : idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    journal->fd = fd;
    (void)strcpy(journal->directory, directory);
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

/* ---- Room ---- */

/* Reads the room that the file system has for entries, and whether that is little. A
 * file system that reports no size has room until a write fails. */
static int read_room(const struct idem_journal *journal,
                     struct idem_journal_usage *usage, struct idem_error *error)
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
    usage->room = fs.f_blocks == 0   ? UINT64_MAX
                  : available > left ? available - left
                                     : 0;
    usage->near = usage->room < NEAR * left;
    return 0;
}

static int check_room(const struct idem_journal *journal, uint64_t len,
                      struct idem_error *error)
{
    struct idem_journal_usage usage;
    int rc = read_room(journal, &usage, error);

    return rc != 0 || usage.room >= len
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
    rc = read_room(journal, &usage, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__journal_walk(journal, count_one, &usage.entries, ret_error);
    if (rc != 0) {
        return rc;
    }
    *ret_usage = usage;
    return 0;
}

/* ---- Putting ---- */

/* True if the file has the outcome @bytes. The tail does not count, because it has the
 * time at which the outcome was put. */
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

/* Takes, and locks, a new file under the first free number, or a file that has the same
 * outcome already. It skips a file that it cannot lock: another process either works on
 * it, or found it empty before this process could lock it, and has deleted it. */
static int take_file(struct idem_journal_entry *entry, struct idem_slice bytes,
                     struct idem_error *error)
{
    int n;

    for (n = 0; n < IDEM__ENTRY_NUMBERS; n++) {
        int rc;

        idem__entry_number(entry->name, n);
        rc = idem__journal_hold(&entry->file, LOCK_EX, /* make= */ true, error);
        if (rc == 0 && (entry->file.made || holds(&entry->file, bytes))) {
            return 0;
        }
        if (rc < 0 && rc != IDEM_ENOTFOUND &&
            (rc != IDEM_ECORRUPT || entry->file.made)) {
            return rc;
        }
        idem__journal_release(&entry->file);
    }
    return idem__error(error, IDEM_EFULL,
                       "the journal keeps at most %d outcomes of one record "
                       "(idem reconcile makes room)",
                       IDEM__ENTRY_NUMBERS);
}

/* Writes @bytes to a new file, and flushes the file and its name. It also flushes a
 * file that existed, because its writer may have died before its own flush. The file
 * gets its final name before the flush, so that one commit of the file system makes
 * both durable. If a power cut tears the file, its checksum fails. */
static int write_and_flush(const struct idem__journal_file *file,
                           struct idem_slice bytes)
{
    const char *p = bytes.base;
    size_t at = file->made ? 0 : bytes.len;

    while (at < bytes.len) {
        ssize_t n = pwrite(file->fd, p + at, bytes.len - at, (off_t)at);

        if (n < 0 && errno != EINTR) {
            return -1;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    IDEM__CRASH_POINT("journal/put/written");
    return fsync(file->fd) != 0 || fsync(file->journal->fd) != 0 ? -1 : 0;
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
    entry->file = (struct idem__journal_file){journal, entry->name, .fd = -1};
    rc = idem__entry_prefix(what->store_url, what->id, entry->name, error);
    rc = rc == 0 ? check_room(journal, bytes.len, error) : rc;
    rc = rc == 0 ? take_file(entry, bytes, error) : rc;
    IDEM__CRASH_POINT("journal/put/made");
    if (rc == 0 && write_and_flush(&entry->file, bytes) != 0) {
        rc = idem__journal_errno(error, "write", entry->name);
    }
    IDEM__CRASH_POINT("journal/put/flushed");
    /* A file that this call created is not an outcome: delete it. Any other file belongs
     * to an earlier put, and stays. */
    if (rc == 0) {
        *ret_entry = entry;
    } else if (entry->file.made) {
        idem_journal_remove(entry);
    } else {
        idem_journal_leave(entry);
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
    const char *url = idem_store_url(store);
    struct idem__buffer file = {0};
    struct idem_journal_info what;
    int rc = idem__outcome_check(outcome, ret_error);

    if (rc != 0) {
        return rc;
    }
    if (url == NULL) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "cannot journal for a memory store: it does not "
                           "outlive the process");
    }
    if (attempt->verdict != IDEM_STARTED) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the attempt was not started: it has no outcome");
    }
    idem__entry_fill(url, attempt, outcome, IDEM_RESULT_MAX, &what);
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
        (void)unlinkat(entry->file.journal->fd, entry->name, 0);
        IDEM__CRASH_POINT("journal/removed");
        idem_journal_leave(entry);
    }
}

void idem_journal_leave(struct idem_journal_entry *entry)
{
    if (entry != NULL) {
        idem__journal_release(&entry->file);
        idem__free(entry);
    }
}
