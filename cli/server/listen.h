/* listen.h: the socket of the page, which is open before anybody is answered. */
#ifndef IDEM_CLI_SERVER_LISTEN_H
#define IDEM_CLI_SERVER_LISTEN_H

#include <sys/socket.h>

/* Listens at @address, of IPv4 or IPv6; port 0 is any that is free. The socket,
 * and in *@ret_port which it is; or -1 with errno set. */
int ui_listen(const struct sockaddr *address, unsigned *ret_port);

#endif
