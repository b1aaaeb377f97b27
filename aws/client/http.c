/* Reading one HTTP/1.1 answer. */
#include "aws/client/http.h"

#include <strings.h>

static const char bad_head[] = "the answer is no HTTP/1.1";
static const char bad_length[] = "the answer's length is none";
static const char bad_coding[] = "the answer is framed in an unknown way";
static const char bad_chunk[] = "a part of the answer has no proper end";
static const char too_long[] =
    "the head of the answer is longer than it may be";
static const char cut[] = "the connection broke before the answer was whole";

void idem__http_start(struct idem__http *http)
{
    struct idem__buffer part = http->part;

    part.len = 0;
    part.failed = false;
    *http = (struct idem__http){
        .on_line = http->on_line,
        .on_body = http->on_body,
        .ctx = http->ctx,
        .part = part,
    };
}

void idem__http_free(struct idem__http *http)
{
    idem__buffer_free(&http->part);
}

static void fail(struct idem__http *http, const char *flaw)
{
    http->state = IDEM__HTTP_BAD;
    http->flaw = flaw;
}

/* ---- The head ---------------------------------------------------------- */

/* The digit, or -1. */
static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : -1;
}

static void read_status(struct idem__http *http, struct idem_slice line)
{
    const char *p = line.base;
    int minor = line.len < 12 ? -1 : digit(p[7]);

    if (minor < 0 || minor > 1 || memcmp(p, "HTTP/1.", 7) != 0 || p[8] != ' ' ||
        digit(p[9]) < 1 || digit(p[10]) < 0 || digit(p[11]) < 0 ||
        (line.len > 12 && p[12] != ' ')) {
        fail(http, bad_head);
        return;
    }
    http->status = digit(p[9]) * 100 + digit(p[10]) * 10 + digit(p[11]);
    http->keeps = minor == 1;
}

static bool is_name(struct idem_slice text, const char *name)
{
    return text.len == strlen(name) &&
           strncasecmp(text.base, name, text.len) == 0;
}

static void read_length(struct idem__http *http, struct idem_slice value)
{
    const char *p = value.base;
    uint64_t length = 0;
    size_t i;

    for (i = 0; i < value.len; i++) {
        if (digit(p[i]) < 0 || length > UINT64_MAX / 10 - 1) {
            fail(http, bad_length);
            return;
        }
        length = length * 10 + (uint64_t)digit(p[i]);
    }
    if (value.len == 0 || (http->has_length && http->left != length)) {
        fail(http, bad_length);
        return;
    }
    http->has_length = true;
    http->left = length;
}

/* A list with commas. */
static bool has_token(struct idem_slice value, const char *token)
{
    const char *p = value.base;
    size_t start = 0;
    size_t i;

    for (i = 0; i <= value.len; i++) {
        if (i < value.len && p[i] != ',' && p[i] != ' ' && p[i] != '\t') {
            continue;
        }
        if (is_name(idem_bytes(p + start, i - start), token)) {
            return true;
        }
        start = i + 1;
    }
    return false;
}

static struct idem_slice trimmed(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }
    while (end > p && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    return idem_bytes(p, (size_t)(end - p));
}

/* The fields that decide where the answer ends, and whether the connection
 * does. */
static void read_header(struct idem__http *http, struct idem_slice line)
{
    const char *p = line.base;
    const char *colon = memchr(p, ':', line.len);
    struct idem_slice name, value;

    if (colon == NULL || colon == p || *p == ' ' || *p == '\t') {
        fail(http, bad_head);
        return;
    }
    name = idem_bytes(p, (size_t)(colon - p));
    value = trimmed(colon + 1, p + line.len);
    if (is_name(name, "content-length")) {
        read_length(http, value);
    } else if (is_name(name, "transfer-encoding")) {
        http->chunked = is_name(value, "chunked");
        if (!http->chunked) {
            fail(http, bad_coding);
        }
    } else if (is_name(name, "connection")) {
        http->keeps = (http->keeps || has_token(value, "keep-alive")) &&
                      !has_token(value, "close");
    }
}

static void end_head(struct idem__http *http)
{
    if (http->status < 200) {
        if (http->status == 101) {
            fail(http, bad_head);
        }
        http->status = 0;
        http->chunked = false;
        http->has_length = false;
        http->left = 0;
    } else if (http->status == 204 || http->status == 304) {
        http->state = IDEM__HTTP_DONE;
    } else if (http->chunked) {
        /* Two ways of framing at once: whoever sent it may mean the other. */
        http->keeps = http->keeps && !http->has_length;
        http->state = IDEM__HTTP_CHUNK;
    } else if (http->has_length) {
        http->state = http->left > 0 ? IDEM__HTTP_LENGTH : IDEM__HTTP_DONE;
    } else {
        http->keeps = false;
        http->state = IDEM__HTTP_CLOSE;
    }
}

static void read_head(struct idem__http *http, struct idem_slice line)
{
    http->begun = true;
    if (http->status == 0) {
        read_status(http, line);
    } else if (line.len > 0) {
        read_header(http, line);
    } else {
        end_head(http);
        return;
    }
    if (http->state == IDEM__HTTP_HEAD && !http->on_line(http->ctx, line)) {
        fail(http, NULL);
    }
}

/* ---- Chunks ------------------------------------------------------------ */

/* "1A" or "1A;extension". */
static void read_chunk(struct idem__http *http, struct idem_slice line)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = line.base;
    uint64_t size = 0;
    size_t i;

    for (i = 0; i < line.len && i < 16; i++) {
        const char *at = p[i] == '\0'
                             ? NULL
                             : strchr(digits, p[i] >= 'A' ? p[i] | 32 : p[i]);

        if (at == NULL) {
            break;
        }
        size = size << 4 | (uint64_t)(at - digits);
    }
    if (i == 0 || i == 16 ||
        (i < line.len && p[i] != ';' && p[i] != ' ' && p[i] != '\t')) {
        fail(http, bad_chunk);
        return;
    }
    http->left = size;
    http->state = size > 0 ? IDEM__HTTP_CHUNK_BYTES : IDEM__HTTP_TRAILER;
}

static void read_line(struct idem__http *http, struct idem_slice line)
{
    const char *p = line.base;

    if (line.len > 0 && p[line.len - 1] == '\r') {
        line.len--;
    }
    switch (http->state) {
    case IDEM__HTTP_HEAD:
        read_head(http, line);
        break;
    case IDEM__HTTP_CHUNK:
        read_chunk(http, line);
        break;
    case IDEM__HTTP_CHUNK_END:
        if (line.len > 0) {
            fail(http, bad_chunk);
        } else {
            http->state = IDEM__HTTP_CHUNK;
        }
        break;
    case IDEM__HTTP_TRAILER:
        if (line.len == 0) {
            http->state = IDEM__HTTP_DONE;
        }
        break;
    default:
        break;
    }
}

/* Takes what there is of a line; returns how much that was. */
static size_t take_line(struct idem__http *http, struct idem_slice bytes)
{
    const char *p = bytes.base;
    const char *end = memchr(p, '\n', bytes.len);
    size_t len = end == NULL ? bytes.len : (size_t)(end - p) + 1;

    /* The lines of chunks do not add up. */
    if (http->state == IDEM__HTTP_CHUNK ||
        http->state == IDEM__HTTP_CHUNK_END) {
        http->head_len = http->part.len;
    }
    http->head_len += len;
    if (http->head_len > IDEM__HTTP_HEAD_MAX) {
        fail(http, too_long);
        return len;
    }
    if (end != NULL && http->part.len == 0) {
        read_line(http, idem_bytes(p, len - 1));
        return len;
    }
    idem__buffer_add(&http->part, p, len);
    if (http->part.failed) {
        http->no_memory = true;
        fail(http, NULL);
    } else if (end != NULL) {
        struct idem_slice line =
            idem_bytes(http->part.base, http->part.len - 1);

        read_line(http, line);
        http->part.len = 0;
    }
    return len;
}

/* ---- All of it --------------------------------------------------------- */

static size_t take_body(struct idem__http *http, struct idem_slice bytes)
{
    size_t len = bytes.len;

    if (http->state != IDEM__HTTP_CLOSE && len > http->left) {
        len = (size_t)http->left;
    }
    if (!http->on_body(http->ctx, idem_bytes(bytes.base, len))) {
        fail(http, NULL);
        return len;
    }
    if (http->state == IDEM__HTTP_CLOSE) {
        return len;
    }
    http->left -= len;
    if (http->left == 0) {
        http->state = http->state == IDEM__HTTP_LENGTH ? IDEM__HTTP_DONE
                                                       : IDEM__HTTP_CHUNK_END;
    }
    return len;
}

enum idem__http_state idem__http_feed(struct idem__http *http,
                                      struct idem_slice bytes, size_t *ret_used)
{
    const uint8_t *p = bytes.base;
    size_t used = 0;

    while (used < bytes.len && http->state != IDEM__HTTP_DONE &&
           http->state != IDEM__HTTP_BAD) {
        struct idem_slice rest = idem_bytes(p + used, bytes.len - used);

        if (http->state == IDEM__HTTP_LENGTH ||
            http->state == IDEM__HTTP_CLOSE ||
            http->state == IDEM__HTTP_CHUNK_BYTES) {
            used += take_body(http, rest);
        } else {
            used += take_line(http, rest);
        }
    }
    *ret_used = used;
    return http->state;
}

enum idem__http_state idem__http_end(struct idem__http *http)
{
    if (http->state == IDEM__HTTP_CLOSE) {
        http->state = IDEM__HTTP_DONE;
    } else if (http->state != IDEM__HTTP_DONE &&
               http->state != IDEM__HTTP_BAD) {
        fail(http, cut);
    }
    return http->state;
}
