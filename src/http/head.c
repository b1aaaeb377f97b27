/* Writes status and headers of a response as the metadata of a result, and reads them;
 * compares content types. */
#include "http/multipart.h"

#include <idem/http.h>
#include <idem/outcome.h>
#include <stdio.h>
#include <strings.h>

#define OPENING "HTTP "

enum {
    OPENING_LEN = sizeof(OPENING) - 1,
    STATUS_LINE_LEN = OPENING_LEN + 4,
    STATUS_MIN = 200,
    STATUS_MAX = 599,
};

int idem_http_head_open(struct idem_http_head *head, char *base, size_t cap,
                        int status)
{
    if (status < STATUS_MIN || status > STATUS_MAX) {
        return IDEM_EINVALID;
    }
    if (cap < STATUS_LINE_LEN + 1) {
        return IDEM_EFULL;
    }
    head->base = base;
    head->cap = cap < IDEM_META_MAX ? cap : IDEM_META_MAX;
    head->len = (size_t)snprintf(base, cap, OPENING "%d\n", status);
    return 0;
}

int idem_http_head_complete(struct idem_http_head *head)
{
    size_t len = sizeof(IDEM_META_COMPLETE) - 1;

    if (head->base[OPENING_LEN] == '2') {
        return 0;
    }
    if (head->cap - head->len <= len) {
        return IDEM_EFULL;
    }
    head->len += (size_t)snprintf(head->base + head->len - 1, len + 2, "%s\n",
                                  IDEM_META_COMPLETE) -
                 1;
    return 0;
}

int idem_http_head_add(struct idem_http_head *head, struct idem_slice name,
                       struct idem_slice value)
{
    size_t room = head->cap - head->len;
    char *p = head->base + head->len;

    if (!idem_http_header_valid(name, value)) {
        return IDEM_EINVALID;
    }
    if (idem_http_header_never(name)) {
        return 0;
    }
    if (room < name.len + 3 || room - name.len - 3 < value.len) {
        return IDEM_EFULL;
    }
    memcpy(p, name.base, name.len);
    p += name.len;
    *p++ = ':';
    *p++ = ' ';
    if (value.len > 0) {
        memcpy(p, value.base, value.len);
    }
    p[value.len] = '\n';
    head->len += name.len + value.len + 3;
    return 0;
}

int idem_http_head_read(struct idem_slice meta, int *ret_status,
                        struct idem_slice *ret_rest)
{
    size_t mark = sizeof(IDEM_META_COMPLETE) - 1;
    const char *p = meta.base;
    size_t len = STATUS_LINE_LEN;
    int status = 0;
    int i;

    if (meta.len == 0) {
        *ret_status = STATUS_MIN;
        *ret_rest = meta;
        return 0;
    }
    if (meta.len >= STATUS_LINE_LEN + mark &&
        memcmp(p + STATUS_LINE_LEN - 1, IDEM_META_COMPLETE, mark) == 0) {
        len += mark;
    }
    if (meta.len < len || memcmp(p, OPENING, OPENING_LEN) != 0 ||
        p[len - 1] != '\n') {
        return IDEM_ECORRUPT;
    }
    for (i = 0; i < 3; i++) {
        char c = p[OPENING_LEN + i];

        if (c < '0' || c > '9') {
            return IDEM_ECORRUPT;
        }
        status = status * 10 + (c - '0');
    }
    if (status < STATUS_MIN || status > STATUS_MAX) {
        return IDEM_ECORRUPT;
    }
    *ret_status = status;
    *ret_rest = idem_bytes(p + len, meta.len - len);
    return 0;
}

/* Takes one line off @rest. */
static bool take_line(struct idem_slice *rest, struct idem_slice *ret_name,
                      struct idem_slice *ret_value)
{
    const char *p = rest->base;
    const char *end = memchr(p, '\n', rest->len);
    const char *colon = end == NULL ? NULL : memchr(p, ':', (size_t)(end - p));

    if (colon == NULL || colon + 1 == end || colon[1] != ' ') {
        return false;
    }
    *ret_name = idem_bytes(p, (size_t)(colon - p));
    *ret_value = idem_bytes(colon + 2, (size_t)(end - colon - 2));
    *rest = idem_bytes(end + 1, rest->len - (size_t)(end + 1 - p));
    return idem_http_header_valid(*ret_name, *ret_value);
}

bool idem_http_head_next(struct idem_slice *rest, struct idem_slice *ret_name,
                         struct idem_slice *ret_value, int *ret_code)
{
    struct idem_slice name;
    struct idem_slice value;

    while (rest->len > 0) {
        if (!take_line(rest, &name, &value)) {
            *ret_code = IDEM_ECORRUPT;
            return false;
        }
        if (!idem_http_header_never(name)) {
            *ret_name = name;
            *ret_value = value;
            return true;
        }
    }
    *ret_code = 0;
    return false;
}

/* ---- Content types ---- */

bool idem__http_is(struct idem_slice text, const char *name)
{
    size_t len = strlen(name);

    return text.len == len && strncasecmp(text.base, name, len) == 0;
}

struct idem_slice idem__media_type(struct idem_slice type)
{
    const char *p = type.base;
    const char *end = type.len == 0 ? NULL : memchr(p, ';', type.len);
    size_t len = end == NULL ? type.len : (size_t)(end - p);

    while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t')) {
        len--;
    }
    return idem_bytes(p, len);
}

bool idem__media_type_is_json(struct idem_slice type)
{
    static const char suffix[] = "+json";
    struct idem_slice name = idem__media_type(type);
    size_t len = sizeof(suffix) - 1;

    return idem__http_is(name, "application/json") ||
           (name.len > len &&
            strncasecmp((const char *)name.base + name.len - len, suffix,
                        len) == 0);
}
