/* Where this user's files are. */
#include "process/state_path.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *cli_state_path(const char *name)
{
    const char *home = secure_getenv("XDG_STATE_HOME");
    const char *below = "";
    char *path;

    if (home == NULL || home[0] != '/') { /* The standard wants it absolute. */
        home = geteuid() == 0 ? "/var/lib" : NULL;
    }
    if (home == NULL) {
        home = secure_getenv("HOME");
        below = "/.local/state";
    }
    if (home == NULL || home[0] != '/') {
        errno = ENOENT;
        return NULL;
    }
    if (asprintf(&path, "%s%s/idem/%s", home, below, name) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    return path;
}

int cli_make_directories(char *path)
{
    char *slash;

    for (slash = strchr(path + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            return -1;
        }
        *slash = '/';
    }
    return 0;
}
