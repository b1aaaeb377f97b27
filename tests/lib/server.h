/* An HTTP server on this host, with a thread for each connection. */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include <idem.h>

/* Sends the answer to the whole @request with @body to @fd. */
typedef void server_answers(void *ctx, int fd, const char *request,
                            struct idem_slice body);

struct server;

/* Starts a server, and sets *@port to the port on which it listens. */
struct server *server_start(server_answers *answer, void *ctx, int *port);

/* Stops the server, whose clients must have closed their connections. */
void server_stop(struct server *server);

/* Returns a port on which no server listens. */
int closed_port(void);

#endif
