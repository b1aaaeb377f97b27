/* Preloaded by aws_transport.py: names that are looked up for ever, and another
 * way to link-local addresses.
 *
 *     SHIM_SLOW_NAMES=SECONDS   getaddrinfo() takes this long and finds nothing
 *     SHIM_LINK_LOCAL=PORT      connections to 169.254.0.0/16 go to this port of
 *                               127.0.0.1
 */
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
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

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
    static int (*next)(int, const struct sockaddr *, socklen_t);
    const char *port = getenv("SHIM_LINK_LOCAL");
    struct sockaddr_in here;

    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "connect");
    }
    if (port != NULL && address.__sockaddr__->sa_family == AF_INET) {
        memcpy(&here, address.__sockaddr_in__, sizeof(here));
        if (ntohl(here.sin_addr.s_addr) >> 16 == (169 << 8 | 254)) {
            here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            here.sin_port = htons((in_port_t)atoi(port));
            return next(fd, (struct sockaddr *)&here, sizeof(here));
        }
    }
    return next(fd, address.__sockaddr__, len);
}
