/* Finds the endpoint of a service: region, URL, and whether plain HTTP is allowed. */
#include "aws/client/endpoint.h"

#include "base/bytes.h"
#include "core/error.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

/* ---- Settings ---------------------------------------------------------- */

/* Finds a setting of the profile in use. Returns 1, 0 if there is none, or a code. */
static int profile_says(const struct idem__aws_endpoint_options *options,
                        const char *name, struct idem_slice *ret_value,
                        struct idem_error *error)
{
    const struct idem__aws_profiles *profiles = options->profiles;

    return profiles == NULL
               ? 0
               : idem__aws_profiles_get(profiles, name, ret_value, error);
}

/* Finds out whether the variable, or else the profile, is "true". */
static int find_switch(const struct idem__aws_endpoint_options *options,
                       const struct idem__aws_env *env, const char *variable,
                       const char *name, bool *ret_on, struct idem_error *error)
{
    struct idem_slice value = {NULL, 0};
    int rc;

    *ret_on = idem__aws_env_is_true(env, variable);
    if (idem__aws_env_value(env, variable) != NULL) {
        return 0;
    }
    rc = profile_says(options, name, &value, error);
    *ret_on =
        rc == 1 && value.len == 4 && strncasecmp(value.base, "true", 4) == 0;
    return rc < 0 ? rc : 0;
}

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

/* Finds the region that the settings name; len 0: none does. */
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
    if (region.len == 0) {
        int rc = profile_says(options, "region", &region, error);

        if (rc < 0) {
            return rc;
        }
    }
    if (region.len > 0 && !is_region(region)) {
        return idem__error(
            error, IDEM_ECONFIG,
            "\"%.*s\" is not an AWS region, such as eu-central-1",
            region.len > 64 ? 64 : (int)region.len, (const char *)region.base);
    }
    *ret_region = region;
    return 0;
}

/* Returns the suffix of the host names of a region's services. */
static const char *suffix_of(struct idem_slice region, bool dual_stack)
{
    static const struct {
        const char *prefix;
        const char *suffix;
        const char *dual_stack;
    } partitions[] = {
        {"cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
        {"eusc-", "amazonaws.eu", "api.amazonwebservices.eu"},
        {"us-iso-", "c2s.ic.gov", "api.aws.ic.gov"},
        {"us-isob-", "sc2s.sgov.gov", "api.aws.scloud"},
        {"", "amazonaws.com", "api.aws"},
    };
    size_t i = 0;

    while (region.len < strlen(partitions[i].prefix) ||
           memcmp(region.base, partitions[i].prefix,
                  strlen(partitions[i].prefix)) != 0) {
        i++;
    }
    return dual_stack ? partitions[i].dual_stack : partitions[i].suffix;
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

/* True for a path that is in canonical form already, so that it is signed as it is
 * sent. */
static bool is_plain_path(const char *path)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~/.";

    return strspn(path, allowed) == strlen(path) &&
           strstr(path, "//") == NULL && strstr(path, "/.") == NULL;
}

/* Splits "host" or "host:port", and makes the host lower case. */
static bool split_authority(struct idem_slice authority, unsigned or_else,
                            char host[IDEM__AWS_HOST_MAX], uint64_t *ret_port)
{
    char *colon;
    size_t i;

    /* Leave room for ":65535" after it. */
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
        *ret_port = 0;
        (void)idem__digits(idem_str(colon + 1), 65535, ret_port);
    } else {
        *ret_port = or_else;
    }
    return *ret_port > 0 && is_host_name(host);
}

bool idem__aws_url_read(struct idem_slice url,
                        struct idem__aws_endpoint *endpoint, bool *ret_loopback)
{
    const char *text = url.base;
    size_t scheme_len, end;
    unsigned or_else;
    uint64_t port;
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
                       sizeof(endpoint->host) - strlen(host), ":%u",
                       (unsigned)port);
    }
    (void)snprintf(endpoint->url, sizeof(endpoint->url), "%s://%s%s",
                   endpoint->tls ? "https" : "http", endpoint->host,
                   endpoint->path);
    return true;
}

/* Finds the URL that options, environment or profile name; len 0: none, use AWS's own. */
static int find_url(const struct idem__aws_endpoint_options *options,
                    const struct idem__aws_env *env, struct idem_slice *ret_url,
                    struct idem_error *error)
{
    char own[64];
    const char *const names[] = {own, "AWS_ENDPOINT_URL", NULL};
    bool ignored;
    int rc;

    *ret_url = options->url;
    if (options->url.len > 0) {
        return 0;
    }
    rc = find_switch(options, env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                     "ignore_configured_endpoint_urls", &ignored, error);
    if (rc != 0 || ignored) {
        return rc;
    }
    (void)snprintf(own, sizeof(own), "AWS_ENDPOINT_URL_%s",
                   options->service_env);
    *ret_url = idem_str(idem__aws_env_first(env, names));
    if (ret_url->len == 0 && options->profiles != NULL) {
        rc = idem__aws_profiles_url(options->profiles, options->service,
                                    ret_url, error);
    }
    return rc < 0 ? rc : 0;
}

/* Makes AWS's own URL for @region; "" if @custom, or if no region is known yet (len 0). */
static int make_url(const struct idem__aws_endpoint_options *options,
                    const struct idem__aws_env *env, struct idem_slice region,
                    bool custom, char own[IDEM__AWS_HOST_MAX],
                    struct idem_error *error)
{
    bool fips, dual_stack;
    int rc = find_switch(options, env, "AWS_USE_FIPS_ENDPOINT",
                         "use_fips_endpoint", &fips, error);

    if (rc == 0) {
        rc = find_switch(options, env, "AWS_USE_DUALSTACK_ENDPOINT",
                         "use_dualstack_endpoint", &dual_stack, error);
    }
    own[0] = '\0';
    if (rc != 0) {
        return rc;
    }
    if (custom && (fips || dual_stack)) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s needs AWS's own endpoint, but another is set: "
                           "remove one of the two settings",
                           fips ? "FIPS" : "dual stack");
    }
    if (custom || region.len == 0) {
        return 0;
    }
    /* In these regions the plain endpoints are FIPS endpoints. */
    if (region.len > 7 && memcmp(region.base, "us-gov-", 7) == 0) {
        fips = fips && dual_stack;
    }
    (void)snprintf(own, IDEM__AWS_HOST_MAX, "https://%s%s.%.*s.%s",
                   options->service, fips ? "-fips" : "", (int)region.len,
                   (const char *)region.base, suffix_of(region, dual_stack));
    return 0;
}

int idem__aws_endpoint_resolve(const struct idem__aws_endpoint_options *options,
                               const struct idem__aws_env *env,
                               struct idem__aws_endpoint *ret_endpoint,
                               struct idem_error *ret_error)
{
    struct idem__aws_endpoint endpoint = {.local = false};
    struct idem_slice url = {NULL, 0};
    struct idem_slice region = {NULL, 0};
    bool is_queue = strcmp(options->service, "sqs") == 0;
    char own[IDEM__AWS_HOST_MAX];
    bool loopback = false;
    int rc = find_region(options, env, &region, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = find_url(options, env, &url, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = make_url(options, env, region, url.len > 0, own, ret_error);
    if (rc != 0) {
        return rc;
    }
    if (url.len == 0) {
        url = idem_str(own);
    }
    /* Do not repeat the URL: it may contain a secret. */
    if (url.len > 0 && !idem__aws_url_read(url, &endpoint, &loopback)) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "the endpoint is not a URL of the form "
                           "https://HOST[:PORT][/PATH]");
    }
    if (region.len == 0 && loopback) {
        region = idem_str("us-east-1");
    }
    if (region.len == 0) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "no AWS region is set: set AWS_REGION, %s, or set "
                           "region in the profile",
                           is_queue ? "give the URL that the queue has at AWS "
                                      "(of an emulator, set "
                                      "AWS_ENDPOINT_URL_SQS)"
                                    : "name it in the store's URL "
                                      "(?region=eu-central-1)");
    }
    if (!endpoint.tls && !loopback && !options->insecure) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "the endpoint %.100s uses plain http: to another "
                           "machine, which sends records unprotected; use "
                           "https:%s",
                           endpoint.host,
                           is_queue ? ", or for an emulator on this machine "
                                      "AWS_ENDPOINT_URL_SQS="
                                      "http://127.0.0.1:PORT"
                                    : "");
    }
    (void)snprintf(endpoint.region, sizeof(endpoint.region), "%.*s",
                   (int)region.len, (const char *)region.base);
    (void)snprintf(endpoint.service, sizeof(endpoint.service), "%s",
                   options->service);
    *ret_endpoint = endpoint;
    return 0;
}

int idem__aws_endpoint_find(const struct idem__aws_endpoint_options *options,
                            const struct idem__aws_env *env,
                            struct idem__aws_endpoint *ret_endpoint,
                            struct idem_error *ret_error)
{
    struct idem__aws_endpoint_options with = *options;
    struct idem__aws_profiles profiles;
    int rc = idem__aws_profiles_load(env, &profiles, ret_error);

    if (rc != 0) {
        return rc;
    }
    with.profiles = &profiles;
    rc = idem__aws_endpoint_resolve(&with, env, ret_endpoint, ret_error);
    idem__aws_profiles_finish(&profiles);
    return rc;
}

const char *idem__aws_service_title(const struct idem__aws_endpoint *endpoint)
{
    static const char *const titles[][2] = {
        {"dynamodb", "DynamoDB"},
        {"sqs", "SQS"},
        {"states", "Step Functions"},
        {"sts", "STS"},
    };
    size_t i;

    for (i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        if (strcmp(endpoint->service, titles[i][0]) == 0) {
            return titles[i][1];
        }
    }
    return endpoint->service;
}
