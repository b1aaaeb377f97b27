/* Checks that the open files are still in their place.
 *
 * A handle may outlive its file, which is deleted, renamed, unmounted lazily, or replaced
 * by a copy while processes use it. The handle would then write into a file without a
 * name, or under a name that no process opens, and what it acknowledged would never be
 * read. So every commit is checked twice: before it, so that nothing is written in vain,
 * and after it, so that nothing is acknowledged that cannot be found again. Only the
 * second check finds a replaced log, which saves a call for each batch; and before an end
 * the check after the last commit is enough, if it was a moment ago. The descriptor only
 * refers to the file (O_PATH): closing it drops none of SQLite's locks.
 *
 * After a commit the directory answers for the names in it, database, log and lock file,
 * in one call: its ctime changes with every name that is created, renamed or deleted
 * there, and no call can set it. Only a file that is mounted over the database changes no
 * name: the check before the next claim finds it, and no other process opens such a file
 * (filesystem.c). Two changes close to each other may have the same time, so a directory
 * answers only once it has been QUIET_S without a change; until then, and after a change,
 * each name is checked. The same holds on unknown file systems, which may keep the files
 * of a directory in several places. */
#include "base/host.h"
#include "core/error.h"
#include "store/sqlite/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    MOMENT_NS = 1000000,
    QUIET_S = 3 /* Some file systems keep times in units of two seconds. */
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The log is there for as long as any process has the store open. */
static int stat_log(const struct idem__sqlite_store *store, struct stat *ret_st)
{
    char name[IDEM__PATH_MAX + 8];

    (void)snprintf(name, sizeof(name), "%s-wal", store->path);
    return stat(name, ret_st);
}

/* ---- The directory ------------------------------------------------------- */

static int stat_directory(const struct idem__sqlite_store *store,
                          struct stat *ret_st)
{
    char name[IDEM__PATH_MAX + 1];

    idem__path_directory(store->path, name);
    return stat(name, ret_st);
}

/* Notes the directory if it is quiet, before the names in it are checked. If it is not
 * quiet, it is not read again for a while: that would cost as much as checking a
 * name. */
static void note_directory(struct idem__sqlite_store *store)
{
    struct idem__files *files = &store->files;
    time_t now = time(NULL);

    files->is_quiet = false;
    if (!files->is_local ||
        (now >= files->noted_s && now - files->noted_s < QUIET_S)) {
        return;
    }
    files->noted_s = now;
    files->is_quiet = stat_directory(store, &files->directory) == 0 &&
                      now - files->directory.st_ctim.tv_sec > QUIET_S;
}

/* True if no name in the directory changed since all of them were found right. */
static bool is_quiet(const struct idem__sqlite_store *store)
{
    const struct idem__files *files = &store->files;
    struct stat st;

    return files->is_quiet && stat_directory(store, &st) == 0 &&
           is_same(&st, &files->directory) &&
           st.st_ctim.tv_sec == files->directory.st_ctim.tv_sec &&
           st.st_ctim.tv_nsec == files->directory.st_ctim.tv_nsec;
}

/* ---- The names ----------------------------------------------------------- */

void idem__files_note(struct idem__sqlite_store *store)
{
    struct idem__files *files = &store->files;
    int fd;

    idem__files_close(files);
    note_directory(store);
    fd = open(store->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    files->fd = fd;
    files->is_known = fd >= 0 && fstat(fd, &files->file) == 0 &&
                      stat_log(store, &files->log) == 0 &&
                      stat("/", &files->root) == 0;
}

void idem__files_close(struct idem__files *files)
{
    if (files->fd >= 0) {
        (void)close(files->fd);
    }
    files->fd = -1;
    files->is_known = false;
    files->is_quiet = false;
}

static int stat_lock(const struct idem__sqlite_store *store,
                     struct stat *ret_st)
{
    char name[IDEM__PATH_MAX + 8];

    (void)snprintf(name, sizeof(name), "%s-lock", store->path);
    return lstat(name, ret_st);
}

uint64_t idem__files_generation(const struct idem__sqlite_store *store)
{
    struct stat st;

    /* Other processes may count in a new lock file beside one that was deleted. */
    return stat(store->path, &st) == 0 && is_same(&st, &store->opened) &&
                   stat_lock(store, &st) == 0 &&
                   idem__lock_is_file(store->lock, &st)
               ? idem__lock_generation(store->lock, st.st_size)
               : 0;
}

static int fail(const struct idem__sqlite_store *store, const char *what,
                struct idem_error *error)
{
    return idem__error(error, IDEM_ECONFIG, "%s: %.120s", what, store->path);
}

/* A process that was moved under another root, or may no longer search the directory,
 * cannot check by the name. */
static bool is_blind(const struct idem__files *files, int why)
{
    struct stat root;

    return (why != ENOENT && why != ENOTDIR) || stat("/", &root) != 0 ||
           !is_same(&root, &files->root);
}

static int check_log(struct idem__sqlite_store *store, struct idem_error *error)
{
    struct idem__files *files = &store->files;
    struct stat st;
    int rc;

    if (store->table.conn == NULL || store->broken) {
        files->is_quiet = false;
        return 0;
    }
    rc = stat_log(store, &st) == 0 ? 0 : errno;
    if (rc == 0 && is_same(&st, &files->log)) {
        return 0;
    }
    files->is_quiet = false;
    if (rc != 0 && rc != ENOENT) {
        return 0; /* An error of the disk says nothing about what is there. */
    }
    return fail(
        store,
        "another file has replaced the store's log since it was opened; stop "
        "all users and start them again",
        error);
}

/* Reports that the name of the open file leads to nothing, or cannot be searched
 * (errno). */
static int tell_missing(const struct idem__sqlite_store *store,
                        struct idem_error *error)
{
    int why = errno;
    struct stat st;

    if (fstat(store->files.fd, &st) == 0 && st.st_nlink == 0) {
        return fail(store,
                    "the store was deleted while it was in use; put a copy "
                    "back",
                    error);
    }
    return is_blind(&store->files, why)
               ? 0
               : fail(store,
                      "the store was renamed or unmounted while it was in use; "
                      "put it back",
                      error);
}

int idem__files_lost_lock(const struct idem__sqlite_store *store,
                          struct idem_error *error)
{
    return fail(store,
                "the store's lock file was deleted or renamed while it was in "
                "use; stop all users, then: idem store mark-restored",
                error);
}

/* If our lock file was renamed, another process creates a new one, and both get the
 * lock. */
static int check_lock(struct idem__sqlite_store *store,
                      struct idem_error *error)
{
    struct stat st;

    if (stat_lock(store, &st) == 0 ? idem__lock_is_file(store->lock, &st)
                                   : is_blind(&store->files, errno)) {
        return 0;
    }
    store->files.is_quiet = false;
    return idem__files_lost_lock(store, error);
}

static int check_database(struct idem__sqlite_store *store,
                          struct idem_error *error)
{
    struct idem__files *files = &store->files;
    struct stat st;

    if (stat(store->path, &st) != 0) {
        return tell_missing(store, error);
    }
    if (!is_same(&st, &files->file)) {
        return fail(
            store,
            "another file has replaced the store since it was opened; open it "
            "again",
            error);
    }
    files->is_linked = st.st_nlink > 1;
    return 0;
}

static int check_committed(struct idem__sqlite_store *store,
                           struct idem_error *error)
{
    int rc;

    if (is_quiet(store)) {
        return 0;
    }
    note_directory(store);
    rc = check_database(store, error);
    if (rc != 0) {
        store->files.is_quiet = false;
        return rc;
    }
    rc = check_log(store, error);
    return rc != 0 ? rc : check_lock(store, error);
}

/* A deleted lock file shows without a call. The name of the lock file is checked where
 * the check after a commit does not cover it: before the first batch, after a check that
 * failed, so that no further claim is made, and before the store settles. */
static int check_before(struct idem__sqlite_store *store,
                        struct idem_error *error)
{
    int rc = 0;

    if (idem__lock_is_deleted(store->lock)) {
        return idem__files_lost_lock(store, error);
    }
    if (store->files.found_ns == 0 || store->broken) {
        rc = check_lock(store, error);
    }
    return rc != 0 ? rc : check_database(store, error);
}

int idem__files_check(struct idem__sqlite_store *store, bool committed,
                      struct idem_error *error)
{
    struct idem__files *files = &store->files;
    int rc = 0;

    if (files->is_known) {
        rc = committed ? check_committed(store, error)
                       : check_before(store, error);
    }

    files->found_ns = rc == 0 ? idem__mono_ns() : 0;
    return rc;
}

bool idem__files_were_there(const struct idem__sqlite_store *store)
{
    return store->files.found_ns != 0 &&
           idem__mono_ns() - store->files.found_ns < MOMENT_NS;
}
