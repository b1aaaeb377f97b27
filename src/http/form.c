/* Reads the form of a result, and looks up how each front end replays it. */
#include <idem/form.h>
#include <idem/http.h>
#include <idem/outcome.h>

#include "base/bytes.h"
#include "http/multipart.h"

enum {
    FRAME_HEADER = 5,
    META_LINE_MAX = 24, /* Longer than any line about a command's ending. */
};

/* ---- The table --------------------------------------------------------- */

/* docs/forms.md shows this table, and a test compares the two. */
static const uint8_t ways[][4] = {
    /*                      run, consume        event
     *                      Lambda HTTP         gateway */
    [IDEM_FORM_NOTHING] = {IDEM_WAY_PRINT, IDEM_WAY_VALUE, /**/
                           IDEM_WAY_ANSWER, IDEM_WAY_ANSWER},
    [IDEM_FORM_BYTES] = {IDEM_WAY_PRINT, IDEM_WAY_VALUE, /**/
                         IDEM_WAY_RESPONSE, IDEM_WAY_ANSWER},
    [IDEM_FORM_JSON] = {IDEM_WAY_PRINT, IDEM_WAY_VALUE, /**/
                        IDEM_WAY_RESPONSE, IDEM_WAY_ANSWER},
    [IDEM_FORM_OUTPUT] = {IDEM_WAY_PRINT, IDEM_WAY_VALUE, /**/
                          IDEM_WAY_ANSWER, IDEM_WAY_ANSWER},
    [IDEM_FORM_FAILURE] = {IDEM_WAY_PRINT, IDEM_WAY_ERROR, /**/
                           IDEM_WAY_FAILED, IDEM_WAY_FAILED},
    [IDEM_FORM_HTTP] = {IDEM_WAY_PRINT, IDEM_WAY_RESPONSE, /**/
                        IDEM_WAY_ANSWER, IDEM_WAY_ANSWER},
    [IDEM_FORM_ERROR] = {IDEM_WAY_COMPLAIN, IDEM_WAY_ERROR, /**/
                         IDEM_WAY_ERROR, IDEM_WAY_FAILED},
    [IDEM_FORM_NOT_KEPT] = {IDEM_WAY_NOT_KEPT, IDEM_WAY_NOT_KEPT, /**/
                            IDEM_WAY_NOT_KEPT, IDEM_WAY_NOT_KEPT},
    [IDEM_FORM_DAMAGED] = {IDEM_WAY_CORRUPT, IDEM_WAY_CORRUPT, /**/
                           IDEM_WAY_CORRUPT, IDEM_WAY_CORRUPT},
};

enum idem_way idem_form_way(enum idem_form_kind kind, enum idem_front front)
{
    return (enum idem_way)ways[kind][front - IDEM_FRONT_RUN];
}

/* ---- Frames ------------------------------------------------------------ */

int idem_form_frame(struct idem_slice *frames, enum idem_stream *ret_stream,
                    struct idem_slice *ret_bytes)
{
    const uint8_t *p = frames->base;
    size_t len;

    if (frames->len == 0) {
        return 0;
    }
    if (frames->len < FRAME_HEADER ||
        (p[0] != IDEM_STREAM_STDOUT && p[0] != IDEM_STREAM_STDERR)) {
        return IDEM_ECORRUPT;
    }
    len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    if (len == 0 || len > frames->len - FRAME_HEADER) {
        return IDEM_ECORRUPT;
    }
    *ret_stream = (enum idem_stream)p[0];
    p += FRAME_HEADER;
    *ret_bytes = idem_bytes(p, len);
    *frames = idem_bytes(p + len, frames->len - FRAME_HEADER - len);
    return 1;
}

/* Checks all frames: the sound first half of a damaged recording must not pass for the
 * whole. */
static bool are_frames(struct idem_slice bytes)
{
    struct idem_slice piece;
    enum idem_stream stream;
    int rc;

    do {
        rc = idem_form_frame(&bytes, &stream, &piece);
    } while (rc == 1);
    return rc == 0;
}

bool idem_form_next(const struct idem_form *form, struct idem_slice *rest,
                    enum idem_stream *ret_stream, struct idem_slice *ret_bytes)
{
    if (form->kind == IDEM_FORM_DAMAGED || rest->len == 0) {
        return false;
    }
    if (form->framed) {
        return idem_form_frame(rest, ret_stream, ret_bytes) == 1;
    }
    *ret_stream = IDEM_STREAM_STDOUT;
    *ret_bytes = *rest;
    *rest = idem_bytes((const uint8_t *)rest->base + rest->len, 0);
    return true;
}

/* ---- Metadata ---------------------------------------------------------- */

/* Returns the number after @word in the first line of @meta, which may end with the
 * mark that a table named it complete. Returns -1 if the line has anything else, or the
 * number is above @max. */
static int number_after(struct idem_slice meta, const char *word, int max,
                        bool *ret_named)
{
    size_t mark = sizeof(IDEM_META_COMPLETE) - 1;
    size_t len = meta.len < META_LINE_MAX ? meta.len : META_LINE_MAX;
    const char *p = meta.base;
    size_t at = strlen(word);
    size_t first = at;
    int n = 0;

    if (len < at || memcmp(p, word, at) != 0) {
        return -1;
    }
    for (; at < len && p[at] >= '0' && p[at] <= '9' && at < first + 3; at++) {
        n = n * 10 + (p[at] - '0');
    }
    if (at == first || n > max) {
        return -1;
    }
    *ret_named =
        len - at > mark && memcmp(p + at, IDEM_META_COMPLETE, mark) == 0;
    at += *ret_named ? mark : 0;
    return at < len && p[at] == '\n' ? n : -1;
}

static void read_exit(struct idem_slice meta, struct idem_form *form)
{
    bool named = false;
    int n = number_after(meta, "exit ", 255, &named);

    if (n < 0) {
        n = number_after(meta, "signal ", 127, &named);
        n = n < 0 ? -1 : 128 + n;
    }
    form->named = n >= 0 && named;
    form->has_exit = n >= 0;
    form->exit_status = n < 0 ? 0 : n;
}

static bool says_http(struct idem_slice meta)
{
    return meta.len >= 5 && memcmp(meta.base, "HTTP ", 5) == 0;
}

/* Reads an HTTP head. Returns false if any part of it is damaged. */
static bool read_head(const struct idem_result *result, struct idem_form *form)
{
    struct idem_slice name;
    struct idem_slice value;
    struct idem_slice rest;
    int code = 0;

    if (idem_http_head_read(result->meta, &form->http_status, &form->headers) !=
        0) {
        form->http_status = 200;
        return false;
    }
    rest = form->headers;
    while (idem_http_head_next(&rest, &name, &value, &code)) {
        if (idem__http_is(name, "Content-Encoding")) {
            form->coding = value;
        }
    }
    if (form->http_status >= 400) {
        form->exit_status = IDEM_FORM_EXIT_HTTP;
    }
    return code == 0 && idem_http_header_valid(idem_str("Content-Type"),
                                               result->content_type);
}

/* ---- Content types ----------------------------------------------------- */

bool idem_form_is_plain(const struct idem_form *form)
{
    if (form->kind == IDEM_FORM_HTTP) {
        return false;
    }
    return form->framed || form->content_type.len == 0 ||
           (form->has_exit &&
            idem__http_is(idem__media_type(form->content_type),
                          IDEM_FORM_BYTES_TYPE)) ||
           !idem_http_header_valid(idem_str("Content-Type"),
                                   form->content_type);
}

static bool is_text(const struct idem_form *form)
{
    struct idem_slice rest = form->bytes;
    struct idem_slice piece;
    enum idem_stream stream;

    while (idem_form_next(form, &rest, &stream, &piece)) {
        if (stream == IDEM_STREAM_STDOUT && !idem__utf8_is(piece)) {
            return false;
        }
    }
    return true;
}

struct idem_slice idem_form_content_type(const struct idem_form *form)
{
    if (!idem_form_is_plain(form)) {
        return form->content_type;
    }
    if (form->kind == IDEM_FORM_NOTHING) {
        return idem_bytes(NULL, 0);
    }
    return idem_str(is_text(form) ? "text/plain; charset=utf-8"
                                  : IDEM_FORM_BYTES_TYPE);
}

/* ---- The whole result -------------------------------------------------- */

static enum idem_form_kind kind_of(const struct idem_result *result,
                                   struct idem_form *form)
{
    bool http = says_http(result->meta);

    /* An HTTP head takes precedence, because the service chose the content type
     * freely. */
    if (http && !read_head(result, form)) {
        return IDEM_FORM_DAMAGED;
    }
    if (!http) {
        read_exit(result->meta, form);
        form->framed =
            idem__http_is(result->content_type, IDEM_FORM_FRAMES_TYPE);
    }
    if (result->not_kept) {
        return IDEM_FORM_NOT_KEPT;
    }
    if (http) {
        return IDEM_FORM_HTTP;
    }
    if (form->framed && !are_frames(result->bytes)) {
        return IDEM_FORM_DAMAGED;
    }
    if (form->exit_status != 0 && !form->named) {
        return IDEM_FORM_FAILURE;
    }
    if (idem__http_is(result->content_type, IDEM_FORM_ERROR_TYPE)) {
        form->exit_status = IDEM_FORM_EXIT_ERROR;
        return IDEM_FORM_ERROR;
    }
    if (result->bytes.len == 0) {
        return IDEM_FORM_NOTHING;
    }
    if (form->framed) {
        return IDEM_FORM_OUTPUT;
    }
    return idem__media_type_is_json(result->content_type) ? IDEM_FORM_JSON
                                                          : IDEM_FORM_BYTES;
}

void idem_form_read(const struct idem_result *result,
                    struct idem_form *ret_form)
{
    memset(ret_form, 0, sizeof(*ret_form));
    ret_form->http_status = 200;
    ret_form->content_type = result->content_type;
    ret_form->bytes = result->bytes;
    ret_form->kind = kind_of(result, ret_form);
}
