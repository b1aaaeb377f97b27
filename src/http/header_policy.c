/* Decides which headers of a response may be replayed to another client, later. */
#include "core/error.h"

#include <idem/http.h>
#include <strings.h>

/* Headers that belong to one caller, one connection or one moment. A star matches any
 * end. */
static const char *const never[] = {
    "Access-Control-*",
    "Age",
    "Alt-Svc",
    "Authentication-Info",
    "Authorization",
    "Connection",
    "Content-Length",
    "Content-Range",
    "Cookie",
    "Date",
    "Idempotency-*",
    "Idempotent-*",
    "Keep-Alive",
    "Proxy-*",
    "Server",
    "Set-Cookie",
    "Set-Cookie2",
    "Strict-Transport-Security",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "WWW-Authenticate",
    "X-Accel-*",
    "X-CSRF-*",
    "X-XSRF-*",
};

static bool is_between(unsigned char c, unsigned char first, unsigned char last)
{
    return c >= first && c <= last;
}

/* The headers that every replay needs. None of them may identify the caller. */
static const char *const kept[] = {
    "Content-Encoding", "Content-Language", "ETag", "Last-Modified", "Location",
};

/* Letters and hyphens first, because each replay tests each character of each name. */
static bool is_token(unsigned char c)
{
    return is_between(c | 0x20, 'a', 'z') || c == '-' ||
           (is_between(c, 0x21, 0x7e) &&
            strchr("\"(),/:;<=>?@[\\]{}", c) == NULL);
}

bool idem_http_header_valid(struct idem_slice name, struct idem_slice value)
{
    const unsigned char *p = name.base;
    size_t i;

    if (name.len == 0 || name.len > 255) {
        return false;
    }
    for (i = 0; i < name.len; i++) {
        if (!is_token(p[i])) {
            return false;
        }
    }
    p = value.base;
    for (i = 0; i < value.len; i++) {
        if ((p[i] < 0x20 && p[i] != '\t') || p[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool matches(struct idem_slice name, const char *pattern)
{
    size_t len = strlen(pattern);

    if (pattern[len - 1] == '*') {
        return name.len >= len - 1 &&
               strncasecmp(name.base, pattern, len - 1) == 0;
    }
    return name.len == len && strncasecmp(name.base, pattern, len) == 0;
}

static bool is_in(struct idem_slice name, const char *const *list, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (name.len > 0 && matches(name, list[i])) {
            return true;
        }
    }
    return false;
}

bool idem_http_header_never(struct idem_slice name)
{
    return is_in(name, never, sizeof(never) / sizeof(never[0]));
}

/* Takes the next word off @list, whose words are separated by commas. */
static bool next_word(const char **list, struct idem_slice *ret_word)
{
    size_t len = *list == NULL ? 0 : strcspn(*list, ",");

    if (*list == NULL || **list == '\0') {
        return false;
    }
    *ret_word = idem_bytes(*list, len);
    *list += len + ((*list)[len] == ',');
    return true;
}

bool idem_http_header_kept(struct idem_slice name, const char *more)
{
    struct idem_slice word;

    while (next_word(&more, &word)) {
        if (word.len == name.len &&
            strncasecmp(word.base, name.base, name.len) == 0) {
            return !idem_http_header_never(name);
        }
    }
    return is_in(name, kept, sizeof(kept) / sizeof(kept[0]));
}

int idem_http_headers_check(const char *names, struct idem_error *ret_error)
{
    struct idem_slice name;

    while (next_word(&names, &name)) {
        if (!idem_http_header_valid(name, idem_bytes(NULL, 0))) {
            return idem__error(ret_error, IDEM_EINVALID,
                               "\"%.*s\" is not the name of a header",
                               (int)name.len, (const char *)name.base);
        }
        if (idem_http_header_never(name)) {
            return idem__error(ret_error, IDEM_EINVALID,
                               "%.*s is never replayed: it belongs to one "
                               "caller, connection or moment",
                               (int)name.len, (const char *)name.base);
        }
    }
    return 0;
}
