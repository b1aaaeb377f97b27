/* net.h: the sockets at which commands listen: an address from text, the socket there,
 * and one that systemd made. */
#ifndef IDEM_CLI_NET_NET_H
#define IDEM_CLI_NET_NET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NET_NAME_MAX 253
#define NET_PATH_MAX 107 /* The bytes of a unix socket's address. */
#define NET_TEXT_MAX (NET_NAME_MAX + sizeof("[]:65535"))
#define NET_UNIX "unix:"

/* ---- Addresses ----------------------------------------------------------- */

struct net_address {
    char host[NET_NAME_MAX + 1]; /* "" for a unix socket. */
    char port[6];
    char path[NET_PATH_MAX + 1]; /* "" for TCP. */
};

/* Parses PORT, HOST:PORT, [IPV6]:PORT, *:PORT or unix:/PATH. A port of 0 is any that is
 * free. Returns NULL, or what is wrong; @ret_address is untouched then. */
const char *net_address_parse(const char *text,
                              struct net_address *ret_address);

/* These parse one part of an address at the beginning of @text, and point *@ret_rest
 * after it: "HOST", "[IPV6]" or "*"; a port of one to five digits, at least @min; the
 * path of a unix socket, up to the end of @text. They return as above. */
const char *net_take_host(const char *text, char host[NET_NAME_MAX + 1],
                          bool *ret_brackets, const char **ret_rest);
const char *net_take_port(const char *text, int min, char port[6],
                          const char **ret_rest);
const char *net_take_path(const char *text, char path[NET_PATH_MAX + 1]);

/* ---- Sockets ------------------------------------------------------------- */

struct net_socket {
    int fd;           /* -1: closed. */
    bool is_loopback; /* Or a unix socket. */
    bool is_private;  /* Set by the caller: a unix socket has mode 0600 ... */
    gid_t group;      /* ... or 0660 for this group; -1: it has none. */
    char text[NET_TEXT_MAX]; /* As nginx writes it, in digits. */
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } at;
    socklen_t at_len;
};

/* Finds the address of the system, without opening anything: fd is -1, and a port of 0
 * stays. Messages name the @option that has the address. 0 or an exit status, after
 * saying why. */
int net_find(const char *option, const struct net_address *address,
             struct net_socket *ret_socket);

/* Listens there, and replaces a unix socket on which no process listens any more. 0 or an
 * exit status, after saying why. */
int net_listen(const char *option, struct net_socket *socket);

/* Closes it here; other processes that hold it go on listening. */
void net_close(struct net_socket *socket);

/* Removes the file of a unix socket and closes it, unless it is closed. */
void net_remove(struct net_socket *socket);

/* Takes over the listening unix socket that systemd has made for this process
 * (sd_listen_fds(3)). *@ret_fd is -1 if there is none. 0 or an exit status, after saying
 * why it cannot be used. */
int net_take_over(int *ret_fd);

#endif
