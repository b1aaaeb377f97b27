/* Whether the service's name is known: nginx would say so in words about a file in a
 * directory that is gone by then. */
#include "gateway/address.h"
#include "gateway/gateway.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

int gateway_upstream_resolve(const struct gateway_upstream *upstream)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int rc;

    if (strncmp(upstream->server, "unix:", strlen("unix:")) == 0 ||
        upstream->name[0] == '[') {
        return 0;
    }
    rc = getaddrinfo(upstream->name, NULL, &hints, &found);
    if (rc == 0) {
        freeaddrinfo(found);
        return 0;
    }
    cli_say("--upstream: the host \"%s\" cannot be resolved: %s; correct the "
            "name, or start the gateway once it is known",
            upstream->name, gai_strerror(rc));
    return CLI_CONFIG;
}
