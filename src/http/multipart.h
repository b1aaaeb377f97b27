/* Hashes the parts of a multipart/form-data body, whatever their boundary is.
 *
 * A client that sends a form again divides it by another boundary. Two forms are equal
 * if their parts are equal as they were sent: header lines (name, file name, content
 * type) and bytes.
 *
 * It accepts only a body without bytes outside its parts, so that no other reader finds
 * other parts in it:
 *
 *     --BOUNDARY CRLF part CRLF--BOUNDARY CRLF part CRLF--BOUNDARY-- [CRLF]
 *
 * The body comes in pieces, and is never kept.
 */
#ifndef IDEM_HTTP_MULTIPART_H
#define IDEM_HTTP_MULTIPART_H

#include "base/hash.h"

#include <idem.h>

enum {
    IDEM__BOUNDARY_MAX = 70, /* RFC 2046 section 5.1.1. */
};

enum idem__multipart_state {
    IDEM__MULTIPART_START = 0, /* In the first delimiter. */
    IDEM__MULTIPART_PART,
    IDEM__MULTIPART_LINE,   /* After a delimiter: its CR or first hyphen. */
    IDEM__MULTIPART_LF,     /* The LF of that line. */
    IDEM__MULTIPART_HYPHEN, /* The second hyphen: the last delimiter. */
    IDEM__MULTIPART_END,    /* Nothing, or ... */
    IDEM__MULTIPART_END_LF, /* ... a CR, and a LF ... */
    IDEM__MULTIPART_OVER,   /* ... and nothing. */
    IDEM__MULTIPART_BAD,
};

struct idem__multipart {
    enum idem__multipart_state state;
    char delimiter[4 + IDEM__BOUNDARY_MAX]; /* CRLF, two hyphens, boundary. */
    size_t delimiter_len;
    size_t matched; /* Bytes of the delimiter at the end of the input so far. */
    struct idem__hash parts;
    struct idem__hash part;
};

/* Starts the hash. Returns false if @content_type is not multipart/form-data with one
 * boundary. */
bool idem__multipart_init(struct idem__multipart *form,
                          struct idem_slice content_type);

void idem__multipart_add(struct idem__multipart *form, struct idem_slice piece);

/* Ends the body, and returns the SHA-256 of the SHA-256 of each part.
 *
 * IDEM_EINVALID  The body is not such a form.
 * IDEM_ENOMEM
 */
int idem__multipart_end(struct idem__multipart *form,
                        uint8_t ret_digest[IDEM__SHA256_LEN]);

/* ---- Content types: head.c ---- */

/* Returns @type without its parameters. */
struct idem_slice idem__media_type(struct idem_slice type);

/* True if @text is @name, in any case. */
bool idem__http_is(struct idem_slice text, const char *name);

/* True for application/json and types that end with +json, with any parameters. */
bool idem__media_type_is_json(struct idem_slice type);

#endif
