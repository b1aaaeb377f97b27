/* Where a service is reached, and where the gateway listens: from text. */
#include "gateway/address.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char unix_scheme[] = "unix:";

/* The bytes that a host may have: no byte that means something to nginx. */
static bool is_host(const char *host, size_t len, bool in_brackets)
{
    size_t i;

    for (i = 0; i < len; i++) {
        unsigned char c = (unsigned char)host[i];

        if (in_brackets ? !isxdigit(c) && c != ':' && c != '.'
                        : !isalnum(c) && c != '-' && c != '.' && c != '_') {
            return false;
        }
    }
    return true;
}

/* Copies @len bytes, which fit, with a NUL. */
static void copy(char *to, const char *from, size_t len)
{
    memcpy(to, from, len);
    to[len] = '\0';
}

/* "HOST", "[IPV6]" or "*" at the beginning of @text, which goes on at *@ret_rest. */
static const char *take_host(const char *text, char host[GATEWAY_NAME_MAX + 1],
                             bool *ret_brackets, const char **ret_rest)
{
    bool in_brackets = *text == '[';
    const char *begin = text + (in_brackets ? 1 : 0);
    size_t len = strcspn(begin, in_brackets ? "]" : ":/?#");

    if (memchr(text, '@', strcspn(text, "/?#")) != NULL) {
        return "a user or password is not allowed there";
    }
    if (in_brackets && begin[len] != ']') {
        return "the bracket of its IPv6 address is not closed";
    }
    if (len == 0) {
        return "it names no host";
    }
    if (len > GATEWAY_NAME_MAX) {
        return "its host is too long";
    }
    if (!is_host(begin, len, in_brackets) &&
        !(len == 1 && *begin == '*' && !in_brackets)) {
        return "its host contains an invalid character";
    }
    copy(host, begin, len);
    *ret_brackets = in_brackets;
    *ret_rest = begin + len + (in_brackets ? 1 : 0);
    return NULL;
}

/* A port at the beginning of @text: one to five digits, at least @min. */
static const char *take_port(const char *text, int min, char port[6],
                             const char **ret_rest)
{
    size_t len = strspn(text, "0123456789");
    int number = len > 0 && len <= 5 ? atoi(text) : -1;

    if (number < min || number > 65535) {
        return min > 0 ? "its port must be 1 to 65535"
                       : "its port must be 0 to 65535";
    }
    (void)snprintf(port, 6, "%hu", (unsigned short)number);
    *ret_rest = text + len;
    return NULL;
}

/* The path of a unix socket, up to the end of @text. */
static const char *take_path(const char *text, char path[GATEWAY_PATH_MAX + 1])
{
    size_t len = strlen(text);
    size_t i;

    if (*text != '/') {
        return "the path of a unix socket begins with a slash";
    }
    if (len > GATEWAY_PATH_MAX) {
        return "the path of a unix socket has at most 107 bytes";
    }
    for (i = 0; i < len; i++) {
        /* nginx would take these for its own. */
        if (!isgraph((unsigned char)text[i]) ||
            strchr(":;{}\"'\\$#", text[i]) != NULL) {
            return "its path contains a character that nginx cannot take";
        }
    }
    copy(path, text, len);
    return NULL;
}

/* ---- Upstream ---------------------------------------------------------- */

static const char *parse_unix(const char *text,
                              struct gateway_upstream *upstream)
{
    char path[GATEWAY_PATH_MAX + 1];
    const char *why;

    if (upstream->tls) {
        return "a unix socket is reached by http://";
    }
    why = take_path(text, path);
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
    char host[GATEWAY_NAME_MAX + 1];
    char port[6];
    bool brackets;
    const char *why = take_host(text, host, &brackets, &text);

    if (why != NULL) {
        return why;
    }
    if (strcmp(host, "*") == 0) {
        return "it names no host";
    }
    (void)strcpy(port, upstream->tls ? "443" : "80");
    if (*text == ':') {
        why = take_port(text + 1, /* min= */ 1, port, &text);
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
    if (strncmp(url, unix_scheme, strlen(unix_scheme)) == 0) {
        why = parse_unix(url + strlen(unix_scheme), &upstream);
    } else {
        why = parse_tcp(url, &upstream);
    }
    if (why == NULL) {
        *ret_upstream = upstream;
    }
    return why;
}

/* ---- Listen ------------------------------------------------------------ */

static const char *parse_host_port(const char *text,
                                   struct gateway_address *address)
{
    const char *why = NULL;
    bool brackets;

    if (text[strspn(text, "0123456789")] == '\0') {
        (void)strcpy(address->host, "127.0.0.1");
    } else {
        why = take_host(text, address->host, &brackets, &text);
        if (why != NULL) {
            return why;
        }
        if (*text != ':') {
            return "it names no port";
        }
        text++;
    }
    why = take_port(text, /* min= */ 0, address->port, &text);
    if (why == NULL && *text != '\0') {
        why = "something follows its port";
    }
    return why;
}

const char *gateway_address_parse(const char *text,
                                  struct gateway_address *ret_address)
{
    struct gateway_address address = {0};
    const char *why;

    if (strncmp(text, unix_scheme, strlen(unix_scheme)) == 0) {
        why = take_path(text + strlen(unix_scheme), address.path);
    } else {
        why = parse_host_port(text, &address);
    }
    if (why == NULL) {
        *ret_address = address;
    }
    return why;
}
