/* An HTTP request as a JSON text. */
#include "key/request.h"

#include "base/utf8.h"
#include "core/error.h"
#include "key/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* A name with a value: a header, or an argument of the query. */
struct pair {
    struct idem_slice name;
    struct idem_slice value;
    size_t number; /* In the request: values of one name keep their order. */
};

/* ---- JSON ---- */

static void add_text(struct idem__buffer *to, struct idem_slice text)
{
    const char *p = text.base;
    char escaped[8];
    size_t from = 0;
    size_t i;

    idem__buffer_str(to, "\"");
    for (i = 0; i < text.len; i++) {
        if ((uint8_t)p[i] >= 0x20 && p[i] != '"' && p[i] != '\\') {
            continue;
        }
        (void)snprintf(escaped, sizeof(escaped), "\\u%04x", (uint8_t)p[i]);
        idem__buffer_add(to, p + from, i - from);
        idem__buffer_str(to, escaped);
        from = i + 1;
    }
    idem__buffer_add(to, p + from, text.len - from);
    idem__buffer_str(to, "\"");
}

/* Null where it is not UTF-8: another text in its place could be that of another
 * request. */
static void add_value(struct idem__buffer *to, struct idem_slice text)
{
    if (idem__utf8_is(text)) {
        add_text(to, text);
    } else {
        idem__buffer_str(to, "null");
    }
}

static void add_member(struct idem__buffer *to, const char *name)
{
    idem__buffer_str(to, ",\"");
    idem__buffer_str(to, name);
    idem__buffer_str(to, "\":");
}

/* ---- Names and values ---- */

static int compare_slices(struct idem_slice a, struct idem_slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.base, b.base, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;
    int order = compare_slices(x->name, y->name);

    return order != 0 ? order
                      : (x->number > y->number) - (x->number < y->number);
}

/* An object; a name that comes several times has an array of its values. */
static int add_pairs(struct idem__buffer *to, struct idem__buffer *pairs,
                     const char *what, struct idem_error *error)
{
    struct pair *p = (struct pair *)(void *)pairs->base;
    size_t len = pairs->len / sizeof(*p);
    size_t i;

    if (pairs->failed) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    if (len > 1) {
        qsort(p, len, sizeof(*p), compare_pairs);
    }
    idem__buffer_str(to, "{");
    for (i = 0; i < len; i++) {
        bool again = i > 0 && compare_slices(p[i - 1].name, p[i].name) == 0;
        bool more =
            i + 1 < len && compare_slices(p[i].name, p[i + 1].name) == 0;

        if (!idem__utf8_is(p[i].name)) {
            return idem__error(error, IDEM_EINVALID,
                               "the name of %s is not UTF-8", what);
        }
        if (i > 0) {
            idem__buffer_str(to, ",");
        }
        if (!again) {
            add_text(to, p[i].name);
            idem__buffer_str(to, more ? ":[" : ":");
        }
        add_value(to, p[i].value);
        if (again && !more) {
            idem__buffer_str(to, "]");
        }
    }
    idem__buffer_str(to, "}");
    return 0;
}

static void add_pair(struct idem__buffer *pairs, struct idem_slice name,
                     struct idem_slice value)
{
    struct pair pair = {name, value, pairs->len / sizeof(pair)};

    idem__buffer_add(pairs, &pair, sizeof(pair));
}

/* ---- The query ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes in place, as forms are encoded: into no more bytes than there were. */
static struct idem_slice decode(char *p, size_t len)
{
    size_t from, to = 0;

    for (from = 0; from < len; from++, to++) {
        p[to] = p[from] == '+' ? ' ' : p[from];
        if (p[from] == '%' && len - from > 2 && hex_value(p[from + 1]) >= 0 &&
            hex_value(p[from + 2]) >= 0) {
            p[to] =
                (char)(hex_value(p[from + 1]) * 16 + hex_value(p[from + 2]));
            from += 2;
        }
    }
    return idem_bytes(p, to);
}

static int add_query(struct idem__buffer *to, struct idem_slice query,
                     struct idem_error *error)
{
    struct idem__buffer text = {NULL, 0, 0, false};
    struct idem__buffer pairs = {NULL, 0, 0, false};
    size_t at = 0;
    int rc;

    idem__buffer_add(&text, query.base, query.len);
    while (!text.failed && at < text.len) {
        char *p = (char *)text.base + at;
        const char *end = memchr(p, '&', text.len - at);
        size_t len = end != NULL ? (size_t)(end - p) : text.len - at;
        char *equals = memchr(p, '=', len);
        size_t name = equals != NULL ? (size_t)(equals - p) : len;

        if (len > 0) {
            add_pair(&pairs, decode(p, name),
                     equals != NULL ? decode(equals + 1, len - name - 1)
                                    : idem_bytes(p, 0));
        }
        at += len + 1;
    }
    pairs.failed = pairs.failed || text.failed;
    rc = add_pairs(to, &pairs, "an argument", error);
    idem__buffer_free(&pairs);
    idem__buffer_free(&text);
    return rc;
}

/* ---- Headers ---- */

static int add_headers(struct idem__buffer *to,
                       const struct idem_select_request *request,
                       struct idem_error *error)
{
    struct idem__buffer text = {NULL, 0, 0, false};
    struct idem__buffer pairs = {NULL, 0, 0, false};
    size_t len = 0;
    size_t i, k;
    int rc;

    for (i = 0; i < request->headers_len; i++) {
        len += request->headers[i].name.len;
    }
    /* All at once: the names stay where they are. */
    if (idem__buffer_room(&text, len) == NULL) {
        pairs.failed = true;
    }
    for (i = 0; !pairs.failed && i < request->headers_len; i++) {
        struct idem_slice name = request->headers[i].name;
        uint8_t *p = text.base + text.len;

        for (k = 0; k < name.len; k++) {
            uint8_t c = ((const uint8_t *)name.base)[k];

            p[k] = c >= 'A' && c <= 'Z' ? c | 0x20 : c;
        }
        text.len += name.len;
        add_pair(&pairs, idem_bytes(p, name.len), request->headers[i].value);
    }
    rc = add_pairs(to, &pairs, "a header", error);
    idem__buffer_free(&pairs);
    idem__buffer_free(&text);
    return rc;
}

/* ---- The body ---- */

/* Whether it is JSON, by itself: its Content-Type is a matter of taste to many
 * clients. A number or a word may as well be plain text, and is taken for that. */
static int is_json(struct idem_slice body, bool *ret_is)
{
    const char *p = body.base;
    struct idem__tree tree = {0};
    size_t i;
    int rc = 0;

    for (i = 0; i < body.len && strchr(" \t\r\n", p[i]) != NULL; i++) {
        if (p[i] == '\0') {
            break;
        }
    }
    *ret_is = false;
    if (i < body.len && (p[i] == '{' || p[i] == '[')) {
        rc = idem__tree_read(&tree, body, NULL);
        *ret_is = rc == 0 && !tree.halves;
    }
    idem__tree_free(&tree);
    return rc == IDEM_ENOMEM ? rc : 0;
}

static int add_body(struct idem__buffer *to, struct idem_slice body,
                    struct idem_error *error)
{
    bool json;
    int rc = is_json(body, &json);

    if (rc != 0) {
        return idem__error_plain(error, rc);
    }
    if (json) {
        idem__buffer_add(to, body.base, body.len);
    } else {
        add_value(to, body);
    }
    return 0;
}

int idem__request_json(const struct idem_select_request *request,
                       struct idem__buffer *to, struct idem_error *ret_error)
{
    struct idem_slice path = request->target;
    struct idem_slice query = idem_bytes("", 0);
    const char *mark = path.len > 0 ? memchr(path.base, '?', path.len) : NULL;
    int rc;

    if (mark != NULL) {
        path.len = (size_t)(mark - (const char *)path.base);
        query = idem_bytes(mark + 1, request->target.len - path.len - 1);
    }
    idem__buffer_str(to, "{\"method\":");
    add_value(to, request->method);
    add_member(to, "path");
    add_value(to, path);
    add_member(to, "query");
    rc = add_query(to, query, ret_error);
    if (rc == 0) {
        add_member(to, "headers");
        rc = add_headers(to, request, ret_error);
    }
    if (rc == 0) {
        add_member(to, "body");
        rc = add_body(to, request->body, ret_error);
    }
    idem__buffer_str(to, "}");
    if (rc == 0 && to->failed) {
        rc = idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    return rc;
}

/* ---- To another process and back ---- */

static void pack(struct idem__buffer *to, struct idem_slice slice)
{
    uint32_t len = (uint32_t)slice.len;

    idem__buffer_add(to, &len, sizeof(len));
    idem__buffer_add(to, slice.base, slice.len);
}

static bool unpack(struct idem_slice *rest, struct idem_slice *ret_slice)
{
    const uint8_t *p = rest->base;
    uint32_t len;

    if (rest->len < sizeof(len)) {
        return false;
    }
    memcpy(&len, p, sizeof(len));
    if (len > rest->len - sizeof(len)) {
        return false;
    }
    *ret_slice = idem_bytes(p + sizeof(len), len);
    *rest = idem_bytes(p + sizeof(len) + len, rest->len - sizeof(len) - len);
    return true;
}

size_t idem__request_packed_len(const struct idem_select_request *request)
{
    size_t len = request->method.len + request->target.len + request->body.len +
                 (3 + 2 * request->headers_len) * sizeof(uint32_t);
    size_t i;

    for (i = 0; i < request->headers_len; i++) {
        len += request->headers[i].name.len + request->headers[i].value.len;
    }
    return len;
}

void idem__request_pack(const struct idem_select_request *request,
                        struct idem__buffer *to)
{
    size_t i;

    pack(to, request->method);
    pack(to, request->target);
    pack(to, request->body);
    for (i = 0; i < request->headers_len; i++) {
        pack(to, request->headers[i].name);
        pack(to, request->headers[i].value);
    }
}

int idem__request_unpack(struct idem_slice bytes, struct idem__buffer *headers,
                         struct idem_select_request *ret_request)
{
    struct idem_select_request request = {
        {NULL, 0}, {NULL, 0}, NULL, 0, {NULL, 0}};

    idem__buffer_reset(headers, 0);
    if (!unpack(&bytes, &request.method) || !unpack(&bytes, &request.target) ||
        !unpack(&bytes, &request.body)) {
        return IDEM_EINVALID;
    }
    while (bytes.len > 0) {
        struct idem_select_header header;

        if (!unpack(&bytes, &header.name) || !unpack(&bytes, &header.value)) {
            return IDEM_EINVALID;
        }
        idem__buffer_add(headers, &header, sizeof(header));
    }
    request.headers =
        (const struct idem_select_header *)(const void *)headers->base;
    request.headers_len = headers->len / sizeof(*request.headers);
    *ret_request = request;
    return headers->failed ? IDEM_ENOMEM : 0;
}
