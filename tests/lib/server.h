/* A server of HTTP on this host, with a thread for each connection. */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include <idem.h>

/* Sends on @fd what answers @request, a whole one, whose body is @body. */
typedef void server_answers(void *ctx, int fd, const char *request,
                            struct idem_slice body);

struct server;

/* @port: on which it listens. */
struct server *server_start(server_answers *answer, void *ctx, int *port);

/* By now the clients have closed their connections. */
void server_stop(struct server *server);

/* One on which nobody listens. */
int closed_port(void);

#endif
