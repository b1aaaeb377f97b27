/* nginx.h: the nginx of this machine: where it is, and running it. */
#ifndef IDEM_CLI_GATEWAY_NGINX_H
#define IDEM_CLI_GATEWAY_NGINX_H

#include <stdbool.h>

/* Finds the program: @given, or where it is installed. The caller frees
 * *@ret_path. 0 or an exit status, after saying why. */
int gateway_find_nginx(const char *given, char **ret_path);

/* The same for the module. Where there is none and not @must_be, what Debian's
 * package would install. */
int gateway_find_module(const char *given, bool must_be, char **ret_path);

/* Lets @nginx check DIRECTORY/nginx.conf. Of what is wrong it tells itself; 0 or
 * an exit status. */
int gateway_check(const char *nginx, const char *directory);

/* Runs @nginx on DIRECTORY/nginx.conf, listening on the socket @fd, until it
 * ends; @started is called when it has begun. Signals are passed on: SIGINT and
 * SIGTERM (at a terminal SIGHUP too) let it finish what is under way, the second
 * of them does not; SIGQUIT, SIGHUP and SIGUSR1 mean what they mean to nginx.
 * Returns an exit status. */
int gateway_serve(const char *nginx, const char *directory, int fd,
                  void (*started)(void *ctx), void *ctx);

#endif
