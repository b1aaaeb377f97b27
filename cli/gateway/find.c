/* Where nginx and its module are. */
#include "gateway/gateway.h"
#include "process/self.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULE "ngx_http_idempotency_module.so"

static const char *const folders[] = {"/usr/sbin", "/usr/local/sbin",
                                      "/usr/local/nginx/sbin"};
static const char debian_module[] = "/usr/lib/nginx/modules/" MODULE;

/* True for a file that can be used (@mode as of access()). A directory has
 * permission to "execute" too, and the build folder of idem has one named nginx. */
static bool is_usable(const char *path, int mode)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        return false;
    }
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return false;
    }
    return access(path, mode) == 0;
}

/* A copy of the path DIRECTORY/NAME if that can be used (@mode as of access()),
 * else NULL. */
static char *usable(const char *directory, int len, const char *name, int mode)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%.*s/%s", len, directory, name);

    if (len == 0 || n >= (int)sizeof(path) || !is_usable(path, mode)) {
        return NULL;
    }
    return realpath(path, NULL);
}

static char *find_in_path(const char *name)
{
    const char *path = secure_getenv("PATH");
    char *found = NULL;

    while (path != NULL && found == NULL) {
        int len = (int)strcspn(path, ":");

        found = path[0] == '/' ? usable(path, len, name, X_OK) : NULL;
        path = path[len] == ':' ? path + len + 1 : NULL;
    }
    return found;
}

static int use_given(const char *option, const char *given, int mode,
                     char **ret_path)
{
    *ret_path = is_usable(given, mode) ? realpath(given, NULL) : NULL;
    if (*ret_path == NULL) {
        char shown[256];

        cli_say("%s: \"%s\" cannot be used: %s", option,
                cli_escape(idem_str(given), shown, sizeof(shown)),
                strerror(errno));
        return CLI_CONFIG;
    }
    return 0;
}

int gateway_find_nginx(const char *given, char **ret_path)
{
    char *path;
    size_t i;

    if (given != NULL) {
        return use_given("--nginx", given, X_OK, ret_path);
    }
    path = find_in_path("nginx");
    for (i = 0; path == NULL && i < sizeof(folders) / sizeof(folders[0]); i++) {
        path = usable(folders[i], (int)strlen(folders[i]), "nginx", X_OK);
    }
    if (path == NULL) {
        cli_say("nginx is not installed: apt install nginx-light (or name it: "
                "--nginx PATH)");
        return CLI_CONFIG;
    }
    *ret_path = path;
    return 0;
}

/* The module that was built together with this program. */
static char *beside_us(void)
{
    char path[PATH_MAX];
    ssize_t len = readlink(SELF_PROGRAM, path, sizeof(path));

    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    return len > 0 ? usable(path, (int)len - 1, "nginx/" MODULE, R_OK) : NULL;
}

int gateway_find_module(const char *given, bool must_be, char **ret_path)
{
    char *path;

    if (given != NULL) {
        return use_given("--module", given, R_OK, ret_path);
    }
    path = beside_us();
    if (path == NULL && (!must_be || access(debian_module, R_OK) == 0)) {
        path = strdup(debian_module);
    }
    if (path == NULL) {
        cli_say(
            "the module for nginx is not installed: no %s beside idem or in "
            "/usr/lib/nginx/modules; install the package "
            "libnginx-mod-http-idempotency that tools/package of idem's "
            "source builds, or build it with tools/nginx-module and name it: "
            "--module PATH",
            MODULE);
        return CLI_CONFIG;
    }
    *ret_path = path;
    return 0;
}
