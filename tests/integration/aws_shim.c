/* Preloaded by aws_transport.py: names that are looked up for ever, and another
 * libcurl, or none.
 *
 *     SHIM_SLOW_NAMES=SECONDS   getaddrinfo() takes this long and finds nothing
 *     SHIM_CURL=none|PATH       what is opened for libcurl
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **ret)
{
    static int (*next)(const char *, const char *, const struct addrinfo *,
                       struct addrinfo **);
    const char *slow = getenv("SHIM_SLOW_NAMES");

    if (slow != NULL) {
        sleep((unsigned)atoi(slow));
        return EAI_AGAIN;
    }
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    }
    return next(name, service, hints, ret);
}

void *dlopen(const char *path, int flags)
{
    static void *(*next)(const char *, int);
    const char *curl = getenv("SHIM_CURL");

    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    }
    if (curl != NULL && path != NULL && strncmp(path, "libcurl", 7) == 0) {
        return strcmp(curl, "none") == 0 ? NULL : next(curl, flags);
    }
    return next(path, flags);
}
