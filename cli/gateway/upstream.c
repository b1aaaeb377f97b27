/* Parses the address of the service, and checks that its name is known: the message of
 * nginx would name a file in a directory that is gone by then. */
#include "gateway/gateway.h"

#include "text/error.h"
#include "text/exit_status.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const char *parse_unix(const char *text,
                              struct gateway_upstream *upstream)
{
    char path[NET_PATH_MAX + 1];
    const char *why;

    if (upstream->tls) {
        return "a unix socket is reached by http://";
    }
    why = net_take_path(text, path);
    if (why == NULL) {
        (void)snprintf(upstream->server, sizeof(upstream->server), "unix:%s",
                       path);
        (void)strcpy(upstream->name, "localhost");
    }
    return why;
}

static const char *parse_tcp(const char *text,
                             struct gateway_upstream *upstream)
{
    char host[NET_NAME_MAX + 1];
    char port[6];
    bool brackets;
    const char *why = net_take_host(text, host, &brackets, &text);

    if (why != NULL) {
        return why;
    }
    if (strcmp(host, "*") == 0) {
        return "it names no host";
    }
    (void)strcpy(port, upstream->tls ? "443" : "80");
    if (*text == ':') {
        why = net_take_port(text + 1, /* min= */ 1, port, &text);
        if (why != NULL) {
            return why;
        }
    }
    if (*text != '\0' && strcmp(text, "/") != 0) {
        return "it must end after host and port: the gateway adds the path of "
               "each request";
    }
    (void)snprintf(upstream->name, sizeof(upstream->name),
                   brackets ? "[%s]" : "%s", host);
    (void)snprintf(upstream->server, sizeof(upstream->server), "%s:%s",
                   upstream->name, port);
    return NULL;
}

const char *gateway_upstream_parse(const char *url,
                                   struct gateway_upstream *ret_upstream)
{
    struct gateway_upstream upstream = {0};
    const char *why;

    if (strncasecmp(url, "http://", 7) == 0) {
        url += 7;
    } else if (strncasecmp(url, "https://", 8) == 0) {
        url += 8;
        upstream.tls = true;
    } else {
        return "it must begin with http:// or https://";
    }
    if (strncmp(url, NET_UNIX, strlen(NET_UNIX)) == 0) {
        why = parse_unix(url + strlen(NET_UNIX), &upstream);
    } else {
        why = parse_tcp(url, &upstream);
    }
    if (why == NULL) {
        *ret_upstream = upstream;
    }
    return why;
}

int gateway_upstream_resolve(const struct gateway_upstream *upstream)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int rc;

    if (strncmp(upstream->server, NET_UNIX, strlen(NET_UNIX)) == 0 ||
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
