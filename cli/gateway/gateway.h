/* gateway.h: the parts of idem gateway. */
#ifndef IDEM_CLI_GATEWAY_GATEWAY_H
#define IDEM_CLI_GATEWAY_GATEWAY_H

#include "gateway/config.h"
#include "net/net.h"
#include "options/command.h"

#include <stdbool.h>

/* ---- The command line ---------------------------------------------------- */

struct gateway_args {
    struct gateway_config config;
    bool global_scope;
    bool dry_run;
    const char *health;
    const char *listen;
    const char *module;
    const char *nginx;
    const char *store;
    const char *upstream;
};

extern struct gateway_args gateway_args;

/* The options of idem gateway; ends with a name of NULL. */
extern struct cli_option gateway_option_table[];

/* The addresses to listen on. */
struct gateway_addresses {
    struct net_address listen;
    struct net_address health; /* Unless --health was not given. */
};

/* 0 with the addresses, or a usage error. */
int gateway_check_args(const struct cli_command *command, int argc, char **argv,
                       struct gateway_addresses *ret_addresses);

/* ---- The user that nginx runs as ---------------------------------------- */

/* NULL, or why @name is not a user that nginx can be given. */
const char *gateway_user_check(const char *name);

/* Becomes @name (NULL: --user was not given). Only root can become another user, and
 * has to name one. 0 or an exit status, after saying why. */
int gateway_become(const char *name);

#define GATEWAY_FILE_MAX 32 /* "/proc/self/fd/N" */

/* As root, before gateway_become(): reads the certificate or key at @path into memory.
 * @ret_copy is a path of the copy for every process that inherits its descriptor; "" if
 * this is not root. 0 or an exit status, after saying why it cannot be read. */
int gateway_take_file(const char *option, const char *path,
                      char ret_copy[GATEWAY_FILE_MAX]);

/* Checks that the user that gateway_become() chose may read @path, which root may have
 * found. 0 or an exit status, after saying who may not. */
int gateway_check_readable(const char *path);

/* ---- The name of the service --------------------------------------------- */

/* Checks that the name of @upstream is known: nginx resolves it once, when it starts, and
 * does not start if it is unknown. 0, or an exit status, after saying why. */
int gateway_upstream_resolve(const struct gateway_upstream *upstream);

/* ---- The directory that one nginx has for itself ------------------------ */

/* Makes it, for this user only, with the configuration in it. The caller frees
 * *@ret_path. 0 or an exit status, after saying why. */
int gateway_directory_make(const struct gateway_config *config,
                           char **ret_path);

/* Starts a process that removes the directory once this process and nginx have ended,
 * however they end. Both keep the returned end of a pipe open until then. -1: the process
 * could not be started. */
int gateway_directory_watch(const char *path);

/* Removes it with all that is in it. */
void gateway_directory_remove(const char *path);

/* ---- The nginx of this machine: where it is, and running it ------------- */

/* Finds the program: @given, or where it is installed. The caller frees
 * *@ret_path. 0 or an exit status, after saying why. */
int gateway_find_nginx(const char *given, char **ret_path);

/* The same for the module. If there is none, and @must_be is false, the path at which
 * Debian's package would install it. */
int gateway_find_module(const char *given, bool must_be, char **ret_path);

/* Makes @nginx check DIRECTORY/nginx.conf, and report mistakes itself. 0 or an exit
 * status. */
int gateway_check(const char *nginx, const char *directory);

/* This process opens the sockets, and nginx takes them over. So a port in use is
 * reported at once and in idem's words, port 0 means any free port, and a port below
 * 1024 needs no nginx that runs as root. */

/* Runs @nginx on DIRECTORY/nginx.conf, listening on @n sockets, until it ends, and
 * calls @started when it listens. Removes the sockets when it tells nginx to end, so
 * that a new connection is refused while requests in flight finish. Passes signals on:
 * the first SIGINT or SIGTERM (at a terminal also SIGHUP) lets requests in flight
 * finish, the second does not; SIGQUIT, SIGHUP and SIGUSR1 mean what they mean to
 * nginx. Returns an exit status. */
int gateway_serve(const char *nginx, const char *directory,
                  struct net_socket *sockets, size_t n,
                  void (*started)(void *ctx), void *ctx);

#endif
