/* Is what was opened still what lies in its place?
 *
 * A handle that outlives its file (deleted, renamed, unmounted lazily, replaced
 * by a copy while nobody was stopped) would write into a file without a name, or
 * under a name that nobody opens: what it acknowledged would never be read. So
 * this is asked around every commit: before it so that nothing is written in vain,
 * after it so that nothing is acknowledged that will not be found. A log that was
 * replaced shows only afterwards, which saves a look for each batch; and before an end
 * the look after the last commit will do, if it was a moment ago. The descriptor
 * only refers to the file (O_PATH): closing it drops none of SQLite's locks.
 */
#include "base/host.h"
#include "core/error.h"
#include "store/sqlite/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    MOMENT_NS = 1000000
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* As it was given: a symbolic link on the way may lead elsewhere by now. A relative name
 * comes from SQLite, with all its directories: the process may have left the one it was
 * in. */
static const char *name_of(const struct idem__sqlite_store *store)
{
    return store->path[0] == '/' ? store->path : store->url + strlen("sqlite:");
}

/* The log stays for as long as anybody has the store open. */
static int stat_log(const struct idem__sqlite_store *store, struct stat *ret_st)
{
    char name[sizeof(store->url) + 4];

    (void)snprintf(name, sizeof(name), "%s-wal", name_of(store));
    return stat(name, ret_st);
}

void idem__files_note(struct idem__sqlite_store *store)
{
    struct idem__files *files = &store->files;
    int fd = open(name_of(store), O_PATH | O_NOFOLLOW | O_CLOEXEC);

    idem__files_close(files);
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
}

static int fail(const struct idem__sqlite_store *store, const char *what,
                struct idem_error *error)
{
    return idem__error(error, IDEM_ECONFIG, "%s: %.120s", what, name_of(store));
}

/* A process that was moved under another root, or may not look there any more,
 * cannot tell by the name. */
static bool is_blind(const struct idem__files *files, int why)
{
    struct stat root;

    return (why != ENOENT && why != ENOTDIR) || stat("/", &root) != 0 ||
           !is_same(&root, &files->root);
}

static int check_log(const struct idem__sqlite_store *store,
                     struct idem_error *error)
{
    struct stat st;

    if (store->table.conn == NULL || store->broken) {
        return 0;
    }
    /* An error of the disk says nothing about what is there. */
    if (stat_log(store, &st) == 0 ? is_same(&st, &store->files.log)
                                  : errno != ENOENT) {
        return 0;
    }
    return fail(
        store,
        "another file has replaced the store's log since it was opened; stop "
        "all users and start them again",
        error);
}

/* Nothing lies under the name of the file that is open, or nobody may look there
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
                "the store's lock file was deleted while it was in use; stop "
                "all users, then: idem store mark-restored",
                error);
}

static int check(struct idem__sqlite_store *store, bool committed,
                 struct idem_error *error)
{
    struct idem__files *files = &store->files;
    struct stat st;

    if (!committed && idem__lock_is_deleted(store->lock)) {
        return idem__files_lost_lock(store, error);
    }
    if (stat(name_of(store), &st) != 0) {
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
    return committed ? check_log(store, error) : 0;
}

int idem__files_check(struct idem__sqlite_store *store, bool committed,
                      struct idem_error *error)
{
    struct idem__files *files = &store->files;
    int rc = files->is_known ? check(store, committed, error) : 0;

    files->found_ns = rc == 0 ? idem__mono_ns() : 0;
    return rc;
}

bool idem__files_were_there(const struct idem__sqlite_store *store)
{
    return store->files.found_ns != 0 &&
           idem__mono_ns() - store->files.found_ns < MOMENT_NS;
}
