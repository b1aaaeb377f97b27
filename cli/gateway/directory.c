/* The directory that one nginx has for itself. */
#include "gateway/config.h"
#include "gateway/gateway.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

/* Large bodies wait there, so it must not be a file system in memory, as /tmp may be. */
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
        cli_say(
            "cannot create a directory in %s: %s; choose another with TMPDIR",
            parent, strerror(errno));
        free(path);
        return CLI_DENIED;
    }
    if (write_config(path, config) != 0) {
        cli_say("cannot write %s/nginx.conf: %s", path, strerror(errno));
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

/* Runs in the process that waits for the end of the gateway. It keeps nothing but the
 * pipe: with a socket it would keep the port in use, and with standard error a pipeline
 * open. */
static void watch(int fd, const char *path)
{
    int null = open("/dev/null", O_RDWR);
    char done;

    (void)setsid();
    (void)dup2(null, 0);
    (void)dup2(null, 1);
    (void)dup2(null, 2);
    (void)dup2(fd, 3);
    closefrom(4);
    while (read(3, &done, 1) < 0 && errno == EINTR) {
    }
    gateway_directory_remove(path);
    _exit(0);
}

int gateway_directory_watch(const char *path)
{
    int fds[2];
    pid_t pid;

    if (pipe(fds) != 0) {
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        watch(fds[0], path);
    }
    (void)close(fds[0]);
    if (pid < 0) {
        (void)close(fds[1]);
        return -1;
    }
    return fds[1];
}

void gateway_directory_remove(const char *path)
{
    (void)nftw(path, remove_one, /* descriptors= */ 8, FTW_DEPTH | FTW_PHYS);
}
