/* The socket at which clients connect. */
#include "serve/connection.h"

#include "text/error.h"
#include "text/exit_status.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_group(const char *group, gid_t *ret_gid)
{
    const struct group *found;
    char *end;

    if (group == NULL) {
        *ret_gid = (gid_t)-1;
        return 0;
    }
    found = getgrnam(group);
    *ret_gid = found != NULL ? found->gr_gid : (gid_t)strtoul(group, &end, 10);
    if (found == NULL && (*group == '\0' || *end != '\0')) {
        cli_say("--group: unknown group \"%s\"", group);
        return CLI_CONFIG;
    }
    return 0;
}

int serve_socket_open(const char *path, const char *group,
                      struct net_socket *ret_socket)
{
    struct net_address address = {.host = ""};
    gid_t gid;
    int fd;
    int status = net_take_over(&fd);

    *ret_socket = (struct net_socket){.fd = fd};
    if (status != 0 || fd >= 0) {
        return status;
    }
    if (strlen(path) > NET_PATH_MAX) {
        cli_say("--socket: a path has at most %d bytes", NET_PATH_MAX);
        return CLI_USAGE;
    }
    status = find_group(group, &gid);
    if (status != 0) {
        return status;
    }
    (void)strcpy(address.path, path);
    (void)net_find("socket", &address, ret_socket);
    ret_socket->is_private = true;
    ret_socket->group = gid;
    return net_listen("socket", ret_socket);
}
