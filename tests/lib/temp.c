/* Temporary files; the directory goes when the program ends by itself. */
#include "temp.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PATHS_MAX = 16384
};

static char directory[256];
static long owner; /* A forked child must not remove it. */
static char *paths[PATHS_MAX];
static unsigned paths_len;

static void make_directory(void)
{
    const char *where = getenv("TMPDIR");

    (void)snprintf(directory, sizeof(directory), "%s/idem-test-XXXXXX",
                   where == NULL ? "/tmp" : where);
    if (mkdtemp(directory) == NULL) {
        perror(directory);
        abort();
    }
    owner = (long)getpid();
}

const char *temp_path(const char *name)
{
    if (directory[0] == '\0') {
        make_directory();
    }
    if (paths_len == PATHS_MAX || asprintf(&paths[paths_len], "%s/%u-%s",
                                           directory, paths_len, name) < 0) {
        abort();
    }
    return paths[paths_len++];
}

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void temp_remove(void)
{
    while (paths_len > 0) {
        free(paths[--paths_len]);
    }
    if (directory[0] != '\0' && owner == (long)getpid()) {
        (void)nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}
