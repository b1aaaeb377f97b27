/* The sockets at which commands listen. */
#include "net/net.h"

#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BACKLOG = 511,   /* The default of nginx. */
    HANDED_OVER = 3, /* The first descriptor of sd_listen_fds(3). */
    LOOKS_MAX = 400, /* For the end of another command's lock, ... */
    LOOK_MS = 5,     /* ... with this pause between two. */
};

static bool is_unix(const struct net_socket *socket)
{
    return socket->at.any.sa_family == AF_UNIX;
}

/* "127.0.0.1:8080", "[::1]:8080", "unix:/path". */
static void write_text(struct net_socket *socket)
{
    char host[NI_MAXHOST] = "";
    char port[NI_MAXSERV] = "";

    if (is_unix(socket)) {
        (void)snprintf(socket->text, NET_TEXT_MAX, NET_UNIX "%s",
                       socket->at.un.sun_path);
        return;
    }
    (void)getnameinfo(&socket->at.any, socket->at_len, host, sizeof(host), port,
                      sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    (void)snprintf(socket->text, NET_TEXT_MAX,
                   socket->at.any.sa_family == AF_INET6 ? "[%.200s]:%.5s"
                                                        : "%.200s:%.5s",
                   host, port);
}

static bool is_loopback(const struct net_socket *socket)
{
    switch (socket->at.any.sa_family) {
    case AF_INET:
        return ntohl(socket->at.in.sin_addr.s_addr) >> 24 == 127;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&socket->at.in6.sin6_addr);
    default:
        return true;
    }
}

/* The first address that a host and a port resolve to. */
static int resolve(const char *option, const struct net_address *address,
                   struct net_socket *socket)
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
    memcpy(&socket->at, found->ai_addr, found->ai_addrlen);
    socket->at_len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

int net_find(const char *option, const struct net_address *address,
             struct net_socket *ret_socket)
{
    int status = 0;

    *ret_socket = (struct net_socket){.fd = -1, .group = (gid_t)-1};
    if (address->path[0] == '\0') {
        status = resolve(option, address, ret_socket);
    } else {
        ret_socket->at.un.sun_family = AF_UNIX;
        (void)strcpy(ret_socket->at.un.sun_path, address->path);
        ret_socket->at_len = sizeof(ret_socket->at.un);
    }
    ret_socket->is_loopback = is_loopback(ret_socket);
    write_text(ret_socket);
    return status;
}

/* True if the path is a unix socket on which no process listens any more. */
static bool is_left_over(const struct net_socket *old)
{
    struct stat st;
    bool refused;
    int fd;

    if (lstat(old->at.un.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode)) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    refused = fd >= 0 && connect(fd, &old->at.any, old->at_len) != 0 &&
              errno == ECONNREFUSED;
    if (fd >= 0) {
        (void)close(fd);
    }
    return refused;
}

/* Lets one command at a time look at the path, bind it and listen there: another one would
 * take a socket that does not listen yet for one that was left over, and remove it. A
 * directory that this user cannot read, or that somebody else keeps locked, is no reason
 * not to start. Returns the descriptor that has the lock, to be closed, or -1. */
static int lock_directory(const char *path)
{
    char copy[NET_PATH_MAX + 1];
    int looks = 0;
    int fd;

    (void)strcpy(copy, path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 &&
           errno == EWOULDBLOCK && looks++ < LOOKS_MAX) {
        (void)poll(NULL, 0, LOOK_MS);
    }
    return fd;
}

/* Nobody else may connect to a private socket before it has its group. */
static int bind_unix(const struct net_socket *socket)
{
    const char *path = socket->at.un.sun_path;
    mode_t before = umask(S_IXUSR | S_IRWXG | S_IRWXO);
    int rc;

    if (!socket->is_private) {
        (void)umask(before);
    }
    if (is_left_over(socket)) {
        (void)unlink(path);
    }
    rc = bind(socket->fd, &socket->at.any, socket->at_len);
    (void)umask(before);
    if (rc == 0 && socket->group != (gid_t)-1) {
        rc = chown(path, (uid_t)-1, socket->group) != 0
                 ? -1
                 : chmod(path, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP);
    }
    return rc;
}

static int bind_tcp(struct net_socket *socket)
{
    int yes = 1;
    int rc;

    (void)setsockopt(socket->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (socket->at.any.sa_family == AF_INET6) {
        (void)setsockopt(socket->fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes,
                         sizeof(yes));
    }
    rc = bind(socket->fd, &socket->at.any, socket->at_len);
    if (rc == 0) { /* The kernel chose the port if it was 0. */
        (void)getsockname(socket->fd, &socket->at.any, &socket->at_len);
        write_text(socket);
    }
    return rc;
}

static int refuse(const char *option, const struct net_socket *socket, int why)
{
    switch (why) {
    case EADDRINUSE:
        cli_say("%s is in use by another program%s--%s %s", socket->text,
                is_unix(socket) ? ", or not a socket; choose another: "
                                : "; choose another: ",
                option,
                is_unix(socket) ? "PATH" : "127.0.0.1:0 takes a free port");
        return CLI_CONFIG;
    case EACCES:
    case EPERM:
        cli_say("--%s: this user may not listen on %s: %s%s", option,
                socket->text, strerror(why),
                is_unix(socket) ? ""
                                : "; choose a port from 1024 on, or start as "
                                  "root");
        return CLI_DENIED;
    default:
        cli_say("--%s: cannot listen on %s: %s; %s", option, socket->text,
                strerror(why),
                is_unix(socket)
                    ? "choose another path"
                    : "name an address of this machine, or only a port");
        return CLI_CONFIG;
    }
}

int net_listen(const char *option, struct net_socket *s)
{
    int lock = is_unix(s) ? lock_directory(s->at.un.sun_path) : -1;
    int why = 0;

    s->fd = socket(s->at.any.sa_family,
                   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0 || (is_unix(s) ? bind_unix(s) : bind_tcp(s)) != 0 ||
        listen(s->fd, BACKLOG) != 0) {
        why = errno;
        net_close(s);
    }
    if (lock >= 0) {
        (void)close(lock);
    }
    return why == 0 ? 0 : refuse(option, s, why);
}

void net_close(struct net_socket *socket)
{
    if (socket->fd >= 0) {
        (void)close(socket->fd);
        socket->fd = -1;
    }
}

void net_remove(struct net_socket *socket)
{
    /* Remove it while it listens: after that another command may put its own there. */
    if (is_unix(socket) && socket->fd >= 0) {
        (void)unlink(socket->at.un.sun_path);
    }
    net_close(socket);
}

/* ---- From systemd -------------------------------------------------------- */

static bool is_ours(const char *name, long wanted)
{
    const char *text = getenv(name);
    char *end;

    return text != NULL && *text != '\0' && strtol(text, &end, 10) == wanted &&
           *end == '\0';
}

static bool is_listening(int fd)
{
    int listens = 0;
    int domain = 0;
    socklen_t len = sizeof(listens);

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
           listens != 0 && domain == AF_UNIX;
}

int net_take_over(int *ret_fd)
{
    *ret_fd = -1;
    if (!is_ours("LISTEN_PID", getpid()) || !is_ours("LISTEN_FDS", 1)) {
        return 0;
    }
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    if (!is_listening(HANDED_OVER)) {
        cli_say("LISTEN_FDS: descriptor 3 is not a listening Unix socket "
                "(ListenStream=PATH)");
        return CLI_CONFIG;
    }
    (void)fcntl(HANDED_OVER, F_SETFD, FD_CLOEXEC);
    (void)fcntl(HANDED_OVER, F_SETFL, O_NONBLOCK);
    *ret_fd = HANDED_OVER;
    return 0;
}
