/* resolve.h: whether the service's name is known before nginx is started. */
#ifndef IDEM_CLI_GATEWAY_RESOLVE_H
#define IDEM_CLI_GATEWAY_RESOLVE_H

#include "gateway/address.h"

/* nginx resolves the name of @upstream once, when it starts, and does not start
 * where it is unknown. 0, or an exit status, after saying why. */
int gateway_upstream_resolve(const struct gateway_upstream *upstream);

#endif
