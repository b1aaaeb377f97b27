/* The user that nginx runs as. */
#include "gateway/gateway.h"
#include "process/descriptors.h"
#include "process/self.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

const char *gateway_user_check(const char *name)
{
    for (; *name != '\0'; name++) {
        if (!isalnum((unsigned char)*name) && strchr("-_.", *name) == NULL) {
            return "it contains an invalid character";
        }
    }
    return NULL;
}

static int drop_to(const struct passwd *user)
{
    if (initgroups(user->pw_name, user->pw_gid) != 0 ||
        setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0) {
        cli_say("--user: cannot become \"%s\": %s", user->pw_name,
                strerror(errno));
        return CLI_DENIED;
    }
    (void)setenv("HOME", user->pw_dir, /* overwrite= */ 1);
    return 0;
}

int gateway_take_file(const char *option, const char *path,
                      char ret_copy[GATEWAY_FILE_MAX])
{
    int from, to = -1;
    struct stat st;

    ret_copy[0] = '\0';
    if (path == NULL || geteuid() != 0) {
        return 0;
    }
    from = open(path, O_RDONLY | O_CLOEXEC);
    if (from >= 0 && fstat(from, &st) == 0) {
        to = memory_file_open("idem gateway");
    }
    if (to < 0 || sendfile(to, from, NULL, (size_t)st.st_size) != st.st_size ||
        fcntl(to, F_SETFD, 0) != 0) {
        cli_say("%s: cannot read %s: %s", option, path, strerror(errno));
        return CLI_DENIED;
    }
    (void)close(from);
    (void)snprintf(ret_copy, GATEWAY_FILE_MAX, SELF_DESCRIPTOR, to);
    return 0;
}

int gateway_check_readable(const char *path)
{
    const struct passwd *user;
    int why;

    if (access(path, R_OK) == 0) {
        return 0;
    }
    why = errno;
    user = getpwuid(geteuid());
    cli_say("the user \"%s\", as which nginx runs, cannot read %s: %s; move it "
            "where that user can read it, and name it with --module",
            user != NULL ? user->pw_name : "?", path, strerror(why));
    return CLI_DENIED;
}

int gateway_become(const char *name)
{
    const struct passwd *user = name != NULL ? getpwnam(name) : NULL;

    if (name == NULL && geteuid() == 0) {
        cli_say(
            "root needs --user: idem gateway --user www-data, with --store where "
            "that user may write");
        return CLI_DENIED;
    }
    if (name == NULL) {
        return 0;
    }
    if (user == NULL) {
        cli_say("--user: unknown user \"%s\"", name);
        return CLI_USAGE;
    }
    if (geteuid() == user->pw_uid) {
        return 0;
    }
    if (geteuid() != 0) {
        cli_say("--user: only root can become \"%s\"", name);
        return CLI_DENIED;
    }
    return drop_to(user);
}
