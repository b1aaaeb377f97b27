/* A body of a form, its boundary, and another one. In whatever pieces it comes, its
 * fingerprint is that of the whole; which is that of the parts as a search for the
 * boundary finds them, or else that of its bytes. Divided by the other boundary,
 * where that is in none of its parts, the form stays the same.
 */
#include "fuzz.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <idem/http.h>

#include <stdio.h>

enum {
    BOUNDARY_MAX = 72, /* Above what is allowed. */
    PARTS_MAX = 64,
};

struct form {
    struct idem_slice parts[PARTS_MAX];
    size_t len;
};

static struct idem_slice type_of(struct idem_slice boundary, char *buf,
                                 size_t cap)
{
    int n = snprintf(buf, cap, "multipart/form-data; boundary=\"%.*s\"",
                     (int)boundary.len, (const char *)boundary.base);

    return idem_bytes(buf, (size_t)n);
}

static bool is_boundary(struct idem_slice boundary)
{
    static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ'()+_,-./:=? ";
    const char *p = boundary.base;
    size_t i;

    for (i = 0; i < boundary.len; i++) {
        if (p[i] == '\0' || strchr(allowed, p[i]) == NULL) {
            return false;
        }
    }
    return boundary.len >= 1 && boundary.len <= 70;
}

static bool starts_with(struct idem_slice text, const char *start, size_t len)
{
    return text.len >= len && memcmp(text.base, start, len) == 0;
}

static struct idem_slice from(struct idem_slice text, size_t at)
{
    return idem_bytes((const char *)text.base + at, text.len - at);
}

/* False: it is not a form, or has more parts than there is room for. */
static bool split(struct idem_slice body, struct idem_slice boundary,
                  struct form *form)
{
    char delimiter[4 + BOUNDARY_MAX] = "\r\n--";
    size_t len = 4 + boundary.len;

    memcpy(delimiter + 4, boundary.base, boundary.len);
    form->len = 0;
    if (!starts_with(body, delimiter + 2, len - 2)) {
        return false;
    }
    body = from(body, len - 2);
    while (starts_with(body, "\r\n", 2) && form->len < PARTS_MAX) {
        const char *end;

        body = from(body, 2);
        end = memmem(body.base, body.len, delimiter, len);
        if (end == NULL) {
            return false;
        }
        form->parts[form->len] =
            idem_bytes(body.base, (size_t)(end - (const char *)body.base));
        body = from(body, form->parts[form->len++].len + len);
    }
    return starts_with(body, "--", 2) &&
           (body.len == 2 || (body.len == 4 && starts_with(body, "--\r\n", 4)));
}

static void in_pieces(struct idem_slice type, struct idem_slice body,
                      size_t step, uint8_t ret[IDEM_FINGERPRINT_LEN])
{
    struct idem_http_fingerprint *print;
    size_t at;

    must(idem_http_fingerprint_create(NULL, 0, type, body.len, idem_str(NULL),
                                      &print) == 0);
    for (at = 0; at < body.len; at += step) {
        struct idem_slice rest = from(body, at);

        rest.len = rest.len < step ? rest.len : step;
        idem_http_fingerprint_add(print, rest);
    }
    must(idem_http_fingerprint_end(print, ret) == 0);
}

static void check(const uint8_t got[IDEM_FINGERPRINT_LEN], const char *tag,
                  struct idem_slice text)
{
    struct idem_slice parts[2] = {idem_str(tag), text};
    uint8_t want[IDEM_FINGERPRINT_LEN];

    must(idem_fingerprint(parts, 2, idem_str(NULL), want) == 0);
    must(memcmp(got, want, sizeof(want)) == 0);
}

static void check_form(const uint8_t got[IDEM_FINGERPRINT_LEN],
                       const struct form *form)
{
    uint8_t digests[PARTS_MAX][IDEM__SHA256_LEN];
    struct idem_slice all = idem_bytes(digests, form->len * IDEM__SHA256_LEN);
    uint8_t digest[IDEM__SHA256_LEN];
    size_t i;

    for (i = 0; i < form->len; i++) {
        must(idem__sha256(&form->parts[i], 1, digests[i]) == 0);
    }
    must(idem__sha256(&all, 1, digest) == 0);
    check(got, "form", idem_bytes(digest, sizeof(digest)));
}

/* A part that begins or ends as the boundary goes on makes other parts of the same
 * number. */
static bool has_parts_of(const struct form *a, const struct form *b)
{
    size_t i;

    for (i = 0; i < a->len && i < b->len; i++) {
        if (!same_bytes(a->parts[i], b->parts[i])) {
            return false;
        }
    }
    return a->len == b->len;
}

static void divide_anew(const uint8_t want[IDEM_FINGERPRINT_LEN],
                        const struct form *form, struct idem_slice boundary)
{
    struct idem__buffer body = {NULL, 0, 0, false};
    struct form again;
    uint8_t got[IDEM_FINGERPRINT_LEN];
    char type[128];
    size_t i;

    for (i = 0; i <= form->len; i++) {
        idem__buffer_str(&body, i == 0 ? "--" : "\r\n--");
        idem__buffer_add(&body, boundary.base, boundary.len);
        if (i < form->len) {
            idem__buffer_str(&body, "\r\n");
            idem__buffer_add(&body, form->parts[i].base, form->parts[i].len);
        }
    }
    idem__buffer_str(&body, "--");
    if (split(idem__buffer_slice(&body), boundary, &again)) {
        in_pieces(type_of(boundary, type, sizeof(type)),
                  idem__buffer_slice(&body), 7, got);
        check_form(got, &again);
        must(!has_parts_of(&again, form) ||
             memcmp(got, want, sizeof(got)) == 0);
    }
    idem__buffer_free(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    struct idem_slice boundary = take_bytes(&tape, BOUNDARY_MAX);
    struct idem_slice other = take_bytes(&tape, BOUNDARY_MAX);
    struct idem_slice body = take_rest(&tape);
    struct form form;
    uint8_t whole[IDEM_FINGERPRINT_LEN];
    uint8_t pieces[IDEM_FINGERPRINT_LEN];
    char buf[128];
    struct idem_slice type = type_of(boundary, buf, sizeof(buf));
    size_t step;

    if (memchr(boundary.base, '"', boundary.len) != NULL ||
        memchr(boundary.base, '\0', boundary.len) != NULL) {
        return 0;
    }
    must(idem_http_fingerprint(NULL, 0, type, body, idem_str(NULL), whole) ==
         0);
    for (step = 1; step <= 3; step++) {
        in_pieces(type, body, step, pieces);
        must(memcmp(whole, pieces, sizeof(whole)) == 0);
    }
    if (is_boundary(boundary) && split(body, boundary, &form)) {
        check_form(whole, &form);
        if (is_boundary(other)) {
            divide_anew(whole, &form, other);
        }
    } else if (!is_boundary(boundary) || form.len < PARTS_MAX) {
        check(whole, "bytes", body);
    }
    return 0;
}
