/* Is what was opened still what lies in its place?
 *
 * A handle that outlives a change of files (somebody put back a copy, and did not
 * stop everybody first) would write into a file without a name: nobody would ever
 * read what it acknowledged. */
#include "store/sqlite/store.h"

#include <errno.h>
#include <stdio.h>

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* With all its directories: the process may have left the one it was in. */
static const char *name_of(const struct idem__sqlite_store *store)
{
    return store->url + strlen("sqlite:");
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

    files->is_known = stat(name_of(store), &files->file) == 0 &&
                      stat_log(store, &files->log) == 0;
}

/* Whoever cannot see the file at all, after a chroot(), cannot tell. */
bool idem__files_are_replaced(const struct idem__sqlite_store *store)
{
    const struct idem__files *files = &store->files;
    struct stat st;

    if (!files->is_known || stat(name_of(store), &st) != 0) {
        return false;
    }
    if (!is_same(&st, &files->file)) {
        return true;
    }
    if (store->table.conn == NULL || store->broken) {
        return false;
    }
    /* An error of the disk says nothing about what is there. */
    return stat_log(store, &st) != 0 ? errno == ENOENT
                                     : !is_same(&st, &files->log);
}
