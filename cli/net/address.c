/* An address to listen at, from text. */
#include "net/net.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *net_take_host(const char *text, char host[NET_NAME_MAX + 1],
                          bool *ret_brackets, const char **ret_rest)
{
    bool in_brackets = *text == '[';
    const char *begin = text + (in_brackets ? 1 : 0);
    size_t len = strcspn(begin, in_brackets ? "]" : ":/?#");

    if (memchr(text, '@', strcspn(text, "/?#")) != NULL) {
        return "a user or password is not allowed in the URL";
    }
    if (in_brackets && begin[len] != ']') {
        return "the bracket of its IPv6 address is not closed";
    }
    if (len == 0) {
        return "it names no host";
    }
    if (len > NET_NAME_MAX) {
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

const char *net_take_port(const char *text, int min, char port[6],
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

const char *net_take_path(const char *text, char path[NET_PATH_MAX + 1])
{
    size_t len = strlen(text);
    size_t i;

    if (*text != '/') {
        return "the path of a unix socket begins with a slash";
    }
    if (len > NET_PATH_MAX) {
        return "the path of a unix socket has at most 107 bytes";
    }
    for (i = 0; i < len; i++) {
        /* nginx would read these as its own syntax. */
        if (!isgraph((unsigned char)text[i]) ||
            strchr(":;{}\"'\\$#", text[i]) != NULL) {
            return "its path contains a character that nginx cannot take";
        }
    }
    copy(path, text, len);
    return NULL;
}

/* ---- A whole address ----------------------------------------------------- */

static const char *parse_host_port(const char *text,
                                   struct net_address *address)
{
    const char *why = NULL;
    bool brackets;

    if (text[strspn(text, "0123456789")] == '\0') {
        (void)strcpy(address->host, "127.0.0.1");
    } else {
        why = net_take_host(text, address->host, &brackets, &text);
        if (why != NULL) {
            return why;
        }
        if (*text != ':') {
            return "it names no port";
        }
        text++;
    }
    why = net_take_port(text, /* min= */ 0, address->port, &text);
    if (why == NULL && *text != '\0') {
        why = "something follows its port";
    }
    return why;
}

const char *net_address_parse(const char *text, struct net_address *ret_address)
{
    struct net_address address = {0};
    const char *why;

    if (strncmp(text, NET_UNIX, strlen(NET_UNIX)) == 0) {
        why = net_take_path(text + strlen(NET_UNIX), address.path);
    } else {
        why = parse_host_port(text, &address);
    }
    if (why == NULL) {
        *ret_address = address;
    }
    return why;
}
