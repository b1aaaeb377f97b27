/* Reads the value of an Idempotency-Key header, quoted or raw. */
#include <idem/http.h>

#include "core/error.h"

static int bad(struct idem_error *error, const char *why)
{
    return idem__error(error, IDEM_EINVALID, "the Idempotency-Key %s", why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct idem_slice trim(struct idem_slice s)
{
    const char *p = s.base;

    while (s.len > 0 && is_blank(p[s.len - 1])) {
        s.len--;
    }
    while (s.len > 0 && is_blank(*p)) {
        p++;
        s.len--;
    }
    return idem_bytes(p, s.len);
}

static bool is_visible(char c)
{
    return c > 0x20 && c < 0x7f;
}

static int read_raw(struct idem_slice s, char *buf, size_t *ret_len,
                    struct idem_error *error)
{
    const char *p = s.base;
    size_t i;

    if (s.len > IDEM_KEY_MAX) {
        return bad(error, "is longer than 255 bytes");
    }
    for (i = 0; i < s.len; i++) {
        if (p[i] == ',') {
            return bad(error, "is a list; send one key, or quote it");
        }
        if (p[i] == ';' || p[i] == '"' || p[i] == '\\') {
            return bad(error, "contains a character that must be quoted");
        }
        if (!is_visible(p[i])) {
            return bad(error, "has bytes that are not visible ASCII");
        }
    }
    memcpy(buf, p, s.len);
    *ret_len = s.len;
    return 0;
}

/* Reads a String of RFC 8941, section 3.3.3; @s begins with its quote. */
static int read_quoted(struct idem_slice s, char *buf, size_t *ret_len,
                       struct idem_error *error)
{
    const char *p = s.base;
    bool blank = true;
    size_t n = 0;
    size_t i;

    for (i = 1; i < s.len && p[i] != '"'; i++) {
        if (p[i] == '\\') {
            i++;
            if (i == s.len || (p[i] != '"' && p[i] != '\\')) {
                return bad(
                    error,
                    "has a backslash before a character that needs none");
            }
        } else if (!is_visible(p[i]) && p[i] != ' ') {
            return bad(error, "has bytes that are not visible ASCII");
        }
        if (n == IDEM_KEY_MAX) {
            return bad(error, "is longer than 255 bytes");
        }
        blank = blank && p[i] == ' ';
        buf[n++] = p[i];
    }
    if (i == s.len) {
        return bad(error, "has no closing quote");
    }
    if (i + 1 < s.len) {
        return bad(
            error,
            "continues after its closing quote; parameters and lists are not "
            "allowed");
    }
    if (blank) {
        return bad(error, "is empty");
    }
    *ret_len = n;
    return 0;
}

int idem_http_key(struct idem_slice value, char buf[IDEM_KEY_MAX],
                  size_t *ret_len, struct idem_error *ret_error)
{
    struct idem_slice s = trim(value);

    if (s.len == 0) {
        return bad(ret_error, "is empty");
    }
    if (*(const char *)s.base == '"') {
        return read_quoted(s, buf, ret_len, ret_error);
    }
    return read_raw(s, buf, ret_len, ret_error);
}
