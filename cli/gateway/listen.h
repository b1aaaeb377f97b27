/* listen.h: the socket that the gateway listens on.
 *
 * It is ours and not nginx's, who takes it over: so that a port that is in use is
 * said at once and in our words, port 0 means any that is free, and a port below
 * 1024 needs no nginx that runs as root. */
#ifndef IDEM_CLI_GATEWAY_LISTEN_H
#define IDEM_CLI_GATEWAY_LISTEN_H

#include "gateway/address.h"

struct gateway_socket {
    int fd;
    bool is_loopback;               /* Or a unix socket. */
    char text[GATEWAY_ADDRESS_MAX]; /* As nginx writes it, in digits. */
    char path[GATEWAY_PATH_MAX + 1];
};

/* Opens it. 0 or an exit status, after saying why. */
int gateway_listen(const struct gateway_address *address,
                   struct gateway_socket *ret_socket);

/* The address that gateway_listen() would make of @address, without opening
 * anything; a port of 0 stays. 0 or an exit status. */
int gateway_listen_text(const struct gateway_address *address,
                        char text[GATEWAY_ADDRESS_MAX]);

/* Closes it and takes the file of a unix socket away. */
void gateway_listen_close(struct gateway_socket *socket);

#endif
