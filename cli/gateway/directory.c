/* The directory that one nginx has for itself. */
#include "gateway/directory.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

/* Large bodies wait in it, so it is not where memory is used for files. */
static const char usual[] = "/var/tmp";

static int write_config(const char *directory,
                        const struct gateway_config *config)
{
    bool ok = false;
    char *path;
    FILE *f;

    if (asprintf(&path, "%s/nginx.conf", directory) < 0) {
        errno = ENOMEM;
        return -1;
    }
    f = fopen(path, "wxe");
    if (f != NULL) {
        gateway_config_print(f, config);
        ok = fflush(f) == 0 && !ferror(f);
        ok = fclose(f) == 0 && ok;
    }
    free(path);
    return ok ? 0 : -1;
}

int gateway_directory_make(const struct gateway_config *config, char **ret_path)
{
    const char *parent = secure_getenv("TMPDIR");
    char *path;

    if (parent == NULL || parent[0] != '/') {
        parent = usual;
    }
    if (asprintf(&path, "%s/idem-gateway-XXXXXX", parent) < 0) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    if (mkdtemp(path) == NULL) {
        cli_say("no directory can be made in %s: %s; choose another: TMPDIR",
                parent, strerror(errno));
        free(path);
        return CLI_DENIED;
    }
    if (write_config(path, config) != 0) {
        cli_say("%s/nginx.conf cannot be written: %s", path, strerror(errno));
        gateway_directory_remove(path);
        free(path);
        return CLI_FULL;
    }
    *ret_path = path;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    (void)remove(path);
    return 0;
}

void gateway_directory_remove(const char *path)
{
    (void)nftw(path, remove_one, /* descriptors= */ 8, FTW_DEPTH | FTW_PHYS);
}
