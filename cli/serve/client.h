/* client.h: the client: which process it is, that it is there, and that it goes. */
#ifndef IDEM_CLI_SERVE_CLIENT_H
#define IDEM_CLI_SERVE_CLIENT_H

#include "serve/server.h"

/* The client is the process that started this one. */
void serve_client_is_parent(struct serve_conn *conn);

/* The client is what the kernel says of the socket, once it has proved that. */
void serve_client_is_peer(struct serve_conn *conn);

#endif
