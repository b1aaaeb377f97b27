/* Hashes the parts of a multipart/form-data body, whatever their boundary is. */
#include "http/multipart.h"

#include <strings.h>

/* ---- The boundary ------------------------------------------------------ */

/* True for bchars of RFC 2046. */
static bool is_boundary_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("'()+_,-./:=? ", c) != NULL);
}

/* Takes one parameter, "; name=value", off @rest. Returns false at the end, and for
 * text that is not a parameter. */
static bool next_parameter(struct idem_slice *rest, struct idem_slice *ret_name,
                           struct idem_slice *ret_value)
{
    const char *p = rest->base;
    const char *end = p + rest->len;
    const char *from;

    while (p < end && (*p == ' ' || *p == '\t' || *p == ';')) {
        p++;
    }
    from = p;
    while (p < end && *p != '=' && *p != ';') {
        p++;
    }
    if (p == end || *p != '=') {
        return false;
    }
    *ret_name = idem_bytes(from, (size_t)(p - from));
    p++;
    if (p < end && *p == '"') {
        from = ++p;
        while (p < end && *p != '"') {
            p++;
        }
        if (p == end) {
            return false;
        }
        *ret_value = idem_bytes(from, (size_t)(p - from));
        p++;
    } else {
        from = p;
        while (p < end && *p != ';' && *p != ' ' && *p != '\t') {
            p++;
        }
        *ret_value = idem_bytes(from, (size_t)(p - from));
    }
    *rest = idem_bytes(p, (size_t)(end - p));
    return true;
}

static bool find_boundary(struct idem_slice content_type,
                          struct idem_slice *ret_boundary)
{
    size_t len = idem__media_type(content_type).len;
    struct idem_slice rest = idem_bytes((const char *)content_type.base + len,
                                        content_type.len - len);
    struct idem_slice name;
    struct idem_slice value;
    size_t found = 0;

    while (next_parameter(&rest, &name, &value)) {
        if (idem__http_is(name, "boundary")) {
            *ret_boundary = value;
            found++;
        }
    }
    return found == 1;
}

bool idem__multipart_init(struct idem__multipart *form,
                          struct idem_slice content_type)
{
    struct idem_slice boundary;
    const char *p;
    size_t i;

    if (!idem__http_is(idem__media_type(content_type), "multipart/form-data") ||
        !find_boundary(content_type, &boundary) || boundary.len == 0 ||
        boundary.len > IDEM__BOUNDARY_MAX) {
        return false;
    }
    p = boundary.base;
    for (i = 0; i < boundary.len; i++) {
        if (!is_boundary_char(p[i])) {
            return false;
        }
    }
    memcpy(form->delimiter, "\r\n--", 4);
    memcpy(form->delimiter + 4, p, boundary.len);
    form->delimiter_len = 4 + boundary.len;
    form->state = IDEM__MULTIPART_START;
    form->matched = 2; /* The first delimiter has no CRLF before it. */
    idem__hash_init(&form->parts, idem_bytes(NULL, 0));
    return true;
}

/* ---- The body ---------------------------------------------------------- */

static void end_part(struct idem__multipart *form)
{
    uint8_t digest[IDEM__SHA256_LEN];

    if (idem__hash_end(&form->part, digest) != 0) {
        form->parts.ok = false;
        return;
    }
    idem__hash_add(&form->parts, idem_bytes(digest, sizeof(digest)));
}

/* Takes bytes within a part or the first delimiter, and returns how many. A delimiter
 * has a CR only at its start, so after a mismatch the next delimiter can begin only at
 * the byte that did not match. */
static size_t match(struct idem__multipart *form, const char *p, size_t len)
{
    const char *stop;

    if (form->matched > 0 && p[0] == form->delimiter[form->matched]) {
        form->matched++;
        if (form->matched == form->delimiter_len) {
            if (form->state == IDEM__MULTIPART_PART) {
                end_part(form);
            }
            form->state = IDEM__MULTIPART_LINE;
        }
        return 1;
    }
    if (form->state == IDEM__MULTIPART_START) {
        form->state = IDEM__MULTIPART_BAD;
        return len;
    }
    idem__hash_add(&form->part, idem_bytes(form->delimiter, form->matched));
    form->matched = 0;
    stop = memchr(p, '\r', len);
    if (stop == p) {
        form->matched = 1;
        return 1;
    }
    len = stop == NULL ? len : (size_t)(stop - p);
    idem__hash_add(&form->part, idem_bytes(p, len));
    return len;
}

/* Returns the state after the byte @c next to a delimiter. */
static enum idem__multipart_state after(enum idem__multipart_state state,
                                        char c)
{
    switch (state) {
    case IDEM__MULTIPART_LINE:
        return c == '\r'  ? IDEM__MULTIPART_LF
               : c == '-' ? IDEM__MULTIPART_HYPHEN
                          : IDEM__MULTIPART_BAD;
    case IDEM__MULTIPART_LF:
        return c == '\n' ? IDEM__MULTIPART_PART : IDEM__MULTIPART_BAD;
    case IDEM__MULTIPART_HYPHEN:
        return c == '-' ? IDEM__MULTIPART_END : IDEM__MULTIPART_BAD;
    case IDEM__MULTIPART_END:
        return c == '\r' ? IDEM__MULTIPART_END_LF : IDEM__MULTIPART_BAD;
    case IDEM__MULTIPART_END_LF:
        return c == '\n' ? IDEM__MULTIPART_OVER : IDEM__MULTIPART_BAD;
    default:
        return IDEM__MULTIPART_BAD;
    }
}

void idem__multipart_add(struct idem__multipart *form, struct idem_slice piece)
{
    const char *p = piece.base;
    size_t at = 0;

    while (at < piece.len && form->state != IDEM__MULTIPART_BAD) {
        if (form->state <= IDEM__MULTIPART_PART) {
            at += match(form, p + at, piece.len - at);
            continue;
        }
        form->state = after(form->state, p[at++]);
        if (form->state == IDEM__MULTIPART_PART) {
            idem__hash_init(&form->part, idem_bytes(NULL, 0));
            form->matched = 0;
        }
    }
}

int idem__multipart_end(struct idem__multipart *form,
                        uint8_t ret_digest[IDEM__SHA256_LEN])
{
    return form->state == IDEM__MULTIPART_END ||
                   form->state == IDEM__MULTIPART_OVER
               ? idem__hash_end(&form->parts, ret_digest)
               : IDEM_EINVALID;
}
