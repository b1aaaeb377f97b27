/* connection.h: the clients: their socket, their connections and processes, and the
 * loop over them all. */
#ifndef IDEM_CLI_SERVE_CONNECTION_H
#define IDEM_CLI_SERVE_CONNECTION_H

#include "net/net.h"
#include "serve/server.h"

/* ---- Connections, each from its first byte to its end --------------------- */

/* Both descriptors are the connection's from now on. NULL: no memory, and they are
 * closed. */
struct serve_conn *serve_conn_open(struct serve *serve, int in, int out);

/* True if more is to be read from it now. */
bool serve_conn_reads(const struct serve_conn *conn);

/* Takes lines that were read before, as far as there is room for them now. */
void serve_conn_take(struct serve *serve, struct serve_conn *conn);

/* Reads what is there, and takes its lines. */
void serve_conn_read(struct serve *serve, struct serve_conn *conn);

/* Sends as much as goes without waiting. */
void serve_conn_send(struct serve_conn *conn);

/* Stops sending, because the client does not read any more. */
void serve_conn_deaf(struct serve_conn *conn);

/* To be called when the process at the other end has ended: takes its last lines, and
 * closes the connection. */
void serve_conn_died(struct serve *serve, struct serve_conn *conn);

/* Closes the connection if it has come to its end, and settles the attempts that it
 * leaves. */
void serve_conn_settle(struct serve *serve, struct serve_conn *conn);

/* True if nothing is left of it; serve_conn_free() takes it out of its list. */
bool serve_conn_is_over(const struct serve_conn *conn);
void serve_conn_free(struct serve_conn *conn);

/* Stops reading and sending. */
void serve_conn_close(struct serve_conn *conn);

/* ---- Processes of clients ------------------------------------------------- */

/* The client is the process that started this one. */
void serve_client_is_parent(struct serve_conn *conn);

/* The client is the process that the kernel names for the socket, once it has proved
 * that it is there. */
void serve_client_is_peer(struct serve_conn *conn);

/* ---- The socket at which clients connect ---------------------------------- */

/* A socket that systemd has made for this process, or a new one at @path with mode 0600,
 * or 0660 for @group (may be NULL). net_remove() closes it. 0 or an exit status, after
 * saying why. */
int serve_socket_open(const char *path, const char *group,
                      struct net_socket *ret_socket);

/* ---- The loop ------------------------------------------------------------- */

/* Serves until @stop (-1: never) becomes readable or, with @listen negative, until the
 * last client has gone. 0 or an exit status, after an error message. */
int serve_loop(struct serve *serve, int listen, int stop);

#endif
