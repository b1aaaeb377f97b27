/* loop.h: the loop of the server. */
#ifndef IDEM_CLI_SERVE_LOOP_H
#define IDEM_CLI_SERVE_LOOP_H

#include "serve/server.h"

/* Serves until there is no client left (@listen is negative), or @stop (-1: never)
 * becomes readable. 0 or an exit status, after saying why. */
int serve_loop(struct serve *serve, int listen, int stop);

#endif
