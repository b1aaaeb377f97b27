/* The socket that the gateway listens on. */
#include "gateway/address.h"
#include "gateway/gateway.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 511 /* As nginx has it. */

/* An address as the system has it. */
struct any {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    };
    socklen_t len;
};

/* The first address that a host and a port resolve to. */
static int resolve(const char *option, const struct gateway_address *address,
                   struct any *ret_any)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    int rc =
        getaddrinfo(strcmp(address->host, "*") == 0 ? "0.0.0.0" : address->host,
                    address->port, &hints, &found);

    if (rc != 0) {
        cli_say("--%s: the host \"%s\" cannot be resolved: %s; name an "
                "address of this machine, or only a port",
                option, address->host, gai_strerror(rc));
        return CLI_USAGE;
    }
    memcpy(&ret_any->any, found->ai_addr, found->ai_addrlen);
    ret_any->len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int find(const char *option, const struct gateway_address *address,
                struct any *ret_any)
{
    if (address->path[0] == '\0') {
        return resolve(option, address, ret_any);
    }
    ret_any->un.sun_family = AF_UNIX;
    (void)strcpy(ret_any->un.sun_path, address->path);
    ret_any->len = sizeof(ret_any->un);
    return 0;
}

/* "127.0.0.1:8080", "[::1]:8080", "unix:/path". */
static void write_text(const struct any *any, char text[GATEWAY_ADDRESS_MAX])
{
    char host[NI_MAXHOST] = "";
    char port[NI_MAXSERV] = "";

    if (any->any.sa_family == AF_UNIX) {
        (void)snprintf(text, GATEWAY_ADDRESS_MAX, "unix:%s", any->un.sun_path);
        return;
    }
    (void)getnameinfo(&any->any, any->len, host, sizeof(host), port,
                      sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    (void)snprintf(text, GATEWAY_ADDRESS_MAX,
                   any->any.sa_family == AF_INET6 ? "[%.200s]:%.5s"
                                                  : "%.200s:%.5s",
                   host, port);
}

static bool is_loopback(const struct any *any)
{
    switch (any->any.sa_family) {
    case AF_INET:
        return ntohl(any->in.sin_addr.s_addr) >> 24 == 127;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&any->in6.sin6_addr);
    default:
        return true;
    }
}

/* True where there is a unix socket that nobody listens on any more. */
static bool is_left_over(const struct any *any)
{
    struct stat st;
    bool refused;
    int fd;

    if (lstat(any->un.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode)) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    refused = fd >= 0 && connect(fd, &any->any, any->len) != 0 &&
              errno == ECONNREFUSED;
    if (fd >= 0) {
        (void)close(fd);
    }
    return refused;
}

static int bind_to(int fd, const struct any *any)
{
    int yes = 1;

    if (any->any.sa_family == AF_UNIX) {
        if (is_left_over(any)) {
            (void)unlink(any->un.sun_path);
        }
    } else {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    }
    if (any->any.sa_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
    }
    return bind(fd, &any->any, any->len) != 0 || listen(fd, BACKLOG) != 0 ? -1
                                                                          : 0;
}

static int refuse(const char *option, const struct any *any, int why)
{
    char text[GATEWAY_ADDRESS_MAX];

    write_text(any, text);
    switch (why) {
    case EADDRINUSE:
        cli_say("%s is in use by another program; choose another: --%s "
                "127.0.0.1:0 takes any that is free",
                text, option);
        return CLI_CONFIG;
    case EACCES:
    case EPERM:
        cli_say("--%s: this user may not listen on %s: %s; choose a port from "
                "1024 on, or start as root with --user",
                option, text, strerror(why));
        return CLI_DENIED;
    default:
        cli_say("--%s: cannot listen on %s: %s; name an address of this "
                "machine, or only a port",
                option, text, strerror(why));
        return CLI_CONFIG;
    }
}

int gateway_listen(const char *option, const struct gateway_address *address,
                   struct gateway_socket *ret_socket)
{
    struct any any = {0};
    int status = find(option, address, &any);
    int fd;

    if (status != 0) {
        return status;
    }
    fd = socket(any.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                0);
    if (fd < 0 || bind_to(fd, &any) != 0) {
        status = refuse(option, &any, errno);
        if (fd >= 0) {
            (void)close(fd);
        }
        return status;
    }
    if (any.any.sa_family != AF_UNIX) {
        (void)getsockname(fd, &any.any, &any.len); /* The port it got. */
    }
    ret_socket->fd = fd;
    ret_socket->is_loopback = is_loopback(&any);
    write_text(&any, ret_socket->text);
    (void)strcpy(ret_socket->path, address->path);
    return 0;
}

int gateway_listen_text(const char *option,
                        const struct gateway_address *address,
                        char text[GATEWAY_ADDRESS_MAX])
{
    struct any any = {0};
    int status = find(option, address, &any);

    if (status == 0) {
        write_text(&any, text);
    }
    return status;
}

void gateway_listen_end(struct gateway_socket *socket)
{
    if (socket->fd >= 0) {
        (void)close(socket->fd);
        socket->fd = -1;
    }
}

void gateway_listen_close(struct gateway_socket *socket)
{
    gateway_listen_end(socket);
    if (socket->path[0] != '\0') {
        (void)unlink(socket->path);
    }
}
