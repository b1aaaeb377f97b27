/* config.h: the configuration of nginx. */
#ifndef IDEM_CLI_GATEWAY_CONFIG_H
#define IDEM_CLI_GATEWAY_CONFIG_H

#include "net/net.h"

#include <idem.h>
#include <stdint.h>
#include <stdio.h>

/* A service, as the configuration names it. */
struct gateway_upstream {
    bool tls;
    char server[NET_TEXT_MAX];   /* "api:80", "[::1]:80", "unix:/path" */
    char name[NET_NAME_MAX + 3]; /* "api", "[::1]"; "localhost" for unix */
};

/* Parses http[s]://HOST[:PORT][/] or http://unix:/PATH. Returns NULL, or what is
 * wrong with @url; @ret_upstream is untouched then. */
const char *gateway_upstream_parse(const char *url,
                                   struct gateway_upstream *ret_upstream);

/* A member that is 0 or NULL is left out of the configuration: it has the default of the
 * module or of nginx. */
struct gateway_config {
    const char *module;  /* The path of the module. */
    const char *store;   /* Its URL, with an absolute path. */
    const char *journal; /* Where outcomes wait for it. */
    const char *listen;  /* As nginx writes it: "127.0.0.1:8080". */
    const char *health;  /* The same, for probes; NULL: none are answered. */
    struct gateway_upstream upstream;
    const char *scope_header; /* NULL: one scope for all. */
    const char *cors_origin;  /* "*", or origins with commas between them. */
    const char *routes;       /* "/pay,/orders": whose requests have keys. */
    const char *access_log;   /* An absolute path. */
    const char *methods;      /* "POST,PATCH" */
    const char *key_header;   /* NULL: Idempotency-Key. */
    const char *key_from;     /* Selectors, checked. */
    const char *fingerprint_from;
    const char *outcome;        /* "500=retry 5xx=unknown" */
    const char *replay_headers; /* "Link,Content-Location" */
    const char *authorize; /* A path of the service; NULL: it is not asked. */
    const char *user;      /* The user that the workers run as; of root only. */
    const char *tls_cert;  /* Both files, or neither. */
    const char *tls_key;
    int on_expired_lease; /* enum idem_on_expired_lease */
    bool required;        /* A request without a key is refused. */
    int64_t lease_ms;
    int64_t retention_ms;
    int64_t wait_ms;
    int64_t retry_after_ms;
    uint64_t failures_max;
    int64_t timeout_ms;     /* For the service's answer. */
    int64_t end_timeout_ms; /* For its record; 0: the module's own default. */
    uint64_t max_request;
    uint64_t max_response;
    uint64_t workers;
};

/* The parts of it, from nginx.conf. */
extern const char gateway_template[];

/* Writes the configuration. Its own paths are relative: it is for
 * `nginx -p DIRECTORY -c nginx.conf`, in a directory of its own. */
void gateway_config_print(FILE *f, const struct gateway_config *config);

/* Takes the next word of *@text, up to a comma or its end; false at the end. */
bool gateway_next_word(const char **text, struct idem_slice *ret_word);

/* NULL, or why @name cannot be the name of a header; or why one of @names, with commas
 * between them, cannot be replayed. */
const char *gateway_header_check(const char *name);
const char *gateway_replay_headers_check(const char *names);

/* NULL, or why @uri is not a path of the service. */
const char *gateway_uri_check(const char *uri);

/* NULL, or why @origins are not "*" or origins such as https://shop.example. */
const char *gateway_origins_check(const char *origins);

/* NULL, or why @routes are not paths with commas between them. */
const char *gateway_routes_check(const char *routes);

/* NULL, or why @text cannot be used in a configuration. */
const char *gateway_selector_check(const char *text);

/* NULL, or why @path cannot be used in a configuration. */
const char *gateway_path_check(const char *path);

#endif
