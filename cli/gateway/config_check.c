/* Checks the options of a gateway before they become words of nginx's configuration. */
#include "gateway/config.h"

#include <ctype.h>
#include <idem/http.h>

#define HEADER_MAX 64
#define SELECTOR_MAX 4000 /* nginx reads a word into a buffer of 4096 bytes. */

const char *gateway_header_check(const char *name)
{
    size_t len = strlen(name);
    size_t i;

    if (len == 0 || len > HEADER_MAX) {
        return "a header's name has 1 to 64 characters";
    }
    for (i = 0; i < len; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '-') {
            return "a header's name has letters, digits and dashes";
        }
    }
    return NULL;
}

const char *gateway_path_check(const char *path)
{
    for (; *path != '\0'; path++) {
        if (iscntrl((unsigned char)*path) || *path == '$') {
            return "its path contains a character that nginx cannot take";
        }
    }
    return NULL;
}

const char *gateway_selector_check(const char *text)
{
    size_t len = 0;

    for (; *text != '\0'; text++) {
        len += *text == '"' || *text == '\\' ? 2 : 1;
    }
    return len > SELECTOR_MAX
               ? "a selector in a configuration of nginx has at most 4000 bytes"
               : NULL;
}

bool gateway_next_word(const char **text, struct idem_slice *ret_word)
{
    size_t len = strcspn(*text, ",");

    if (**text == '\0') {
        return false;
    }
    *ret_word = idem_bytes(*text, len);
    *text += len + ((*text)[len] == ',');
    return true;
}

/* True if all bytes of @word may be used unquoted in a configuration. */
static bool is_plain(struct idem_slice word, const char *more)
{
    const char *p = word.base;
    size_t i;

    for (i = 0; i < word.len; i++) {
        if (!isalnum((unsigned char)p[i]) && strchr(more, p[i]) == NULL) {
            return false;
        }
    }
    return word.len > 0;
}

const char *gateway_origins_check(const char *origins)
{
    struct idem_slice origin;

    if (strcmp(origins, "*") == 0) {
        return NULL;
    }
    while (gateway_next_word(&origins, &origin)) {
        if (!is_plain(origin, ":/.-[]") ||
            memmem(origin.base, origin.len, "://", 3) == NULL) {
            return "an origin is *, or SCHEME://HOST[:PORT] as a browser sends "
                   "it";
        }
    }
    return NULL;
}

const char *gateway_routes_check(const char *routes)
{
    struct idem_slice route;

    while (gateway_next_word(&routes, &route)) {
        if (!is_plain(route, "/.-_~%") || *(const char *)route.base != '/') {
            return "a route is the beginning of a path, as in /orders";
        }
    }
    return NULL;
}

const char *gateway_replay_headers_check(const char *names)
{
    struct idem_slice name;

    while (gateway_next_word(&names, &name)) {
        if (!is_plain(name, "-")) {
            return "it is a list of headers, as in Link,Content-Location";
        }
        if (idem_http_header_never(name)) {
            return "one of these is never replayed: it belongs to one caller, "
                   "connection or moment";
        }
    }
    return NULL;
}

const char *gateway_uri_check(const char *uri)
{
    return *uri == '/' && is_plain(idem_str(uri), "/.-_~%?&=")
               ? NULL
               : "it is a path of the service, as in /authorize";
}
