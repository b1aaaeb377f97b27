/* The names of the caller: the owner of an attempt, and the person who
 * decides. */
#include "request/owner.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void host_name(char buf[128])
{
    if (gethostname(buf, 128) != 0) {
        (void)snprintf(buf, 128, "localhost");
    }
    buf[127] = '\0';
}

/* The text, cut to the size that a record holds. False if nothing was. */
static bool said(const char *given, char buf[IDEM_OWNER_MAX + 1])
{
    const char *text = given != NULL ? given : secure_getenv("IDEM_OWNER");

    if (text == NULL || *text == '\0') {
        return false;
    }
    (void)snprintf(buf, IDEM_OWNER_MAX + 1, "%s", text);
    return true;
}

void cli_owner(const char *given, long pid, char buf[IDEM_OWNER_MAX + 1])
{
    char host[128];

    if (said(given, buf)) {
        return;
    }
    host_name(host);
    (void)snprintf(buf, IDEM_OWNER_MAX + 1, "%s/%ld", host, pid);
}

void cli_who(const char *given, char buf[IDEM_OWNER_MAX + 1])
{
    const struct passwd *user;
    char host[128];

    if (said(given, buf)) {
        return;
    }
    host_name(host);
    user = getpwuid(getuid());
    if (user != NULL) {
        (void)snprintf(buf, IDEM_OWNER_MAX + 1, "%.100s@%s", user->pw_name,
                       host);
    } else {
        (void)snprintf(buf, IDEM_OWNER_MAX + 1, "%ld@%s", (long)getuid(), host);
    }
}
