/* user.h: as whom nginx runs. */
#ifndef IDEM_CLI_GATEWAY_USER_H
#define IDEM_CLI_GATEWAY_USER_H

/* NULL, or why @name is not a user that nginx can be given. */
const char *gateway_user_check(const char *name);

/* Becomes @name (NULL: --user was not given); only root can become another, and
 * must say whom. 0 or an exit status, after saying why. */
int gateway_become(const char *name);

/* Whether the user that we are by now may read @path, which another found. 0 or an
 * exit status, after saying who may not. */
int gateway_check_readable(const char *path);

#endif
