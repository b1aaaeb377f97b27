/* address.h: where a service is reached, and where the gateway listens. */
#ifndef IDEM_CLI_GATEWAY_ADDRESS_H
#define IDEM_CLI_GATEWAY_ADDRESS_H

#include <stdbool.h>

#define GATEWAY_NAME_MAX 253
#define GATEWAY_PATH_MAX 107 /* The parts of a unix socket's address. */
#define GATEWAY_ADDRESS_MAX (GATEWAY_NAME_MAX + sizeof("[]:65535"))

/* A service: what nginx is told of it. */
struct gateway_upstream {
    bool tls;
    char server[GATEWAY_ADDRESS_MAX]; /* "api:80", "[::1]:80", "unix:/path" */
    char name[GATEWAY_NAME_MAX + 3];  /* "api", "[::1]"; "localhost" for unix */
};

/* Where to listen. */
struct gateway_address {
    char host[GATEWAY_NAME_MAX + 1]; /* "" for a unix socket. */
    char port[6];
    char path[GATEWAY_PATH_MAX + 1]; /* "" for TCP. */
};

/* Parses http[s]://HOST[:PORT][/] or http://unix:/PATH. Returns NULL, or what is
 * wrong with @url; @ret_upstream is untouched then. */
const char *gateway_upstream_parse(const char *url,
                                   struct gateway_upstream *ret_upstream);

/* Parses PORT, HOST:PORT, [IPV6]:PORT, *:PORT or unix:/PATH. A port of 0 is any
 * that is free. Returns as above. */
const char *gateway_address_parse(const char *text,
                                  struct gateway_address *ret_address);

#endif
