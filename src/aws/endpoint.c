/* Finding a service: region, URL, and whether plain HTTP may be used. */
#include "aws/endpoint.h"

#include "core/error.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

/* ---- Region ------------------------------------------------------------ */

static bool is_region(struct idem_slice text)
{
    const char *p = text.base;
    size_t i;

    for (i = 0; i < text.len; i++) {
        if ((p[i] < 'a' || p[i] > 'z') && (p[i] < '0' || p[i] > '9') &&
            (p[i] != '-' || i == 0)) {
            return false;
        }
    }
    return text.len > 0 &&
           text.len < sizeof(((struct idem__aws_endpoint *)0)->region);
}

/* The region that was asked for; len 0: nobody says. */
static int find_region(const struct idem__aws_endpoint_options *options,
                       const struct idem__aws_env *env,
                       struct idem_slice *ret_region, struct idem_error *error)
{
    static const char *const names[] = {"AWS_REGION", "AWS_DEFAULT_REGION",
                                        NULL};
    struct idem_slice region = options->region;

    if (region.len == 0) {
        region = idem_str(idem__aws_env_first(env, names));
    }
    if (region.len > 0 && !is_region(region)) {
        return idem__error(error, IDEM_ECONFIG,
                           "\"%.*s\" is no AWS region: one is, for example, "
                           "eu-central-1",
                           region.len > 64 ? 64 : (int)region.len,
                           (const char *)region.base);
    }
    *ret_region = region;
    return 0;
}

/* What the names of a region's services end in. */
static const char *suffix_of(struct idem_slice region)
{
    static const struct {
        const char *prefix;
        const char *suffix;
    } partitions[] = {
        {"cn-", "amazonaws.com.cn"},
        {"eusc-", "amazonaws.eu"},
        {"us-iso-", "c2s.ic.gov"},
        {"us-isob-", "sc2s.sgov.gov"},
    };
    size_t i;

    for (i = 0; i < sizeof(partitions) / sizeof(partitions[0]); i++) {
        size_t len = strlen(partitions[i].prefix);

        if (region.len > len &&
            memcmp(region.base, partitions[i].prefix, len) == 0) {
            return partitions[i].suffix;
        }
    }
    return "amazonaws.com";
}

/* ---- URL --------------------------------------------------------------- */

static bool is_local(const char *host, bool *ret_loopback)
{
    struct in_addr v4;
    struct in6_addr v6;
    char name[IDEM__AWS_HOST_MAX];
    size_t len = strlen(host);

    *ret_loopback = strcmp(host, "localhost") == 0;
    if (inet_pton(AF_INET, host, &v4) == 1) {
        uint32_t address = ntohl(v4.s_addr);

        *ret_loopback = address >> 24 == 127;
        return *ret_loopback || address >> 16 == (169 << 8 | 254);
    }
    if (host[0] == '[') {
        memcpy(name, host + 1, len - 2);
        name[len - 2] = '\0';
        if (inet_pton(AF_INET6, name, &v6) == 1) {
            *ret_loopback = IN6_IS_ADDR_LOOPBACK(&v6) != 0;
            return *ret_loopback || IN6_IS_ADDR_LINKLOCAL(&v6);
        }
    }
    return *ret_loopback;
}

static bool is_host_name(const char *host)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-._";
    struct in6_addr v6;
    char name[IDEM__AWS_HOST_MAX];
    size_t len = strlen(host);

    if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
        memcpy(name, host + 1, len - 2);
        name[len - 2] = '\0';
        return inet_pton(AF_INET6, name, &v6) == 1;
    }
    return len > 0 && host[0] != '.' && host[0] != '-' &&
           strspn(host, allowed) == len && strstr(host, "..") == NULL;
}

/* Only paths that are their own canonical form. */
static bool is_plain_path(const char *path)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~/.";

    return strspn(path, allowed) == strlen(path) &&
           strstr(path, "//") == NULL && strstr(path, "/.") == NULL;
}

/* The port that @text, which may be empty, says; 0: it says none that can be. */
static unsigned port_of(const char *text, unsigned or_else)
{
    unsigned port = 0;
    size_t i;

    if (text[0] == '\0') {
        return or_else;
    }
    for (i = 0; text[i] != '\0'; i++) {
        if (text[i] < '0' || text[i] > '9' || i >= 5) {
            return 0;
        }
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

/* Takes "host" or "host:port" apart, in lower case. */
static bool split_authority(struct idem_slice authority, unsigned or_else,
                            char host[IDEM__AWS_HOST_MAX], unsigned *ret_port)
{
    char *colon;
    size_t i;

    /* Room for ":65535" behind it. */
    if (authority.len + 7 > IDEM__AWS_HOST_MAX) {
        return false;
    }
    for (i = 0; i < authority.len; i++) {
        char c = ((const char *)authority.base)[i];

        host[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    host[i] = '\0';
    colon = strrchr(host, ':');
    if (colon != NULL && strchr(colon, ']') == NULL) {
        *colon = '\0';
        *ret_port = port_of(colon + 1, 0);
    } else {
        *ret_port = or_else;
    }
    return *ret_port > 0 && is_host_name(host);
}

static bool read_url(struct idem_slice url, struct idem__aws_endpoint *endpoint,
                     bool *ret_loopback)
{
    const char *text = url.base;
    size_t scheme_len, end;
    unsigned or_else, port;
    char host[IDEM__AWS_HOST_MAX];

    if (url.len > 8 && strncasecmp(text, "https://", 8) == 0) {
        scheme_len = 8;
        or_else = 443;
        endpoint->tls = true;
    } else if (url.len > 7 && strncasecmp(text, "http://", 7) == 0) {
        scheme_len = 7;
        or_else = 80;
        endpoint->tls = false;
    } else {
        return false;
    }
    for (end = scheme_len; end < url.len && text[end] != '/'; end++) {
    }
    if (memchr(text, '\0', url.len) != NULL ||
        url.len - end >= sizeof(endpoint->path) - 1 ||
        !split_authority(idem_bytes(text + scheme_len, end - scheme_len),
                         or_else, host, &port)) {
        return false;
    }
    (void)snprintf(endpoint->path, sizeof(endpoint->path), "%.*s",
                   (int)(url.len - end), text + end);
    if (endpoint->path[0] == '\0') {
        strcpy(endpoint->path, "/");
    }
    if (!is_plain_path(endpoint->path)) {
        return false;
    }
    endpoint->local = is_local(host, ret_loopback);
    strcpy(endpoint->host, host);
    if (port != or_else) {
        (void)snprintf(endpoint->host + strlen(host),
                       sizeof(endpoint->host) - strlen(host), ":%u", port);
    }
    (void)snprintf(endpoint->url, sizeof(endpoint->url), "%s://%s%s",
                   endpoint->tls ? "https" : "http", endpoint->host,
                   endpoint->path);
    return true;
}

/* The URL that options or environment name; len 0: AWS's own. */
static struct idem_slice find_url(
    const struct idem__aws_endpoint_options *options,
    const struct idem__aws_env *env)
{
    char own[64];
    const char *ignore;
    const char *const names[] = {own, "AWS_ENDPOINT_URL", NULL};

    if (options->url.len > 0) {
        return options->url;
    }
    ignore = env->get(env->ctx, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    if (ignore != NULL && strcasecmp(ignore, "true") == 0) {
        return idem_bytes(NULL, 0);
    }
    (void)snprintf(own, sizeof(own), "AWS_ENDPOINT_URL_%s",
                   options->service_env);
    return idem_str(idem__aws_env_first(env, names));
}

int idem__aws_endpoint_resolve(const struct idem__aws_endpoint_options *options,
                               const struct idem__aws_env *env,
                               struct idem__aws_endpoint *ret_endpoint,
                               struct idem_error *ret_error)
{
    struct idem__aws_endpoint endpoint = {.local = false};
    struct idem_slice url = find_url(options, env);
    struct idem_slice region = {NULL, 0};
    char own[IDEM__AWS_HOST_MAX];
    bool loopback = false;
    int rc = find_region(options, env, &region, ret_error);

    if (rc != 0) {
        return rc;
    }
    if (url.len == 0 && region.len > 0) {
        (void)snprintf(own, sizeof(own), "https://%s.%.*s.%s", options->service,
                       (int)region.len, (const char *)region.base,
                       suffix_of(region));
        url = idem_str(own);
    }
    /* A URL may hold what nobody should read: it is not repeated. */
    if (url.len > 0 && !read_url(url, &endpoint, &loopback)) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "the endpoint is no URL of the form "
                           "https://HOST[:PORT][/PATH]");
    }
    if (region.len == 0 && loopback) {
        region = idem_str("us-east-1");
    }
    if (region.len == 0) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "there is no AWS region: set AWS_REGION or name it "
                           "in the store's URL (?region=eu-central-1)");
    }
    if (!endpoint.tls && !loopback && !options->insecure) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "the endpoint %.100s uses plain http: to another "
                           "machine, which sends records unprotected; use "
                           "https:",
                           endpoint.host);
    }
    (void)snprintf(endpoint.region, sizeof(endpoint.region), "%.*s",
                   (int)region.len, (const char *)region.base);
    (void)snprintf(endpoint.service, sizeof(endpoint.service), "%s",
                   options->service);
    *ret_endpoint = endpoint;
    return 0;
}
