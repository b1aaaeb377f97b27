/* Computes the fingerprint of a request from its parts and the meaning of its body.
 *
 * The part before the last one is the tag of the kind, so that a body of one kind never
 * has the fingerprint of a body of another kind.
 */
#include <idem/http.h>

#include "base/heap.h"
#include "core/identity.h"
#include "http/multipart.h"
#include "key/canonical.h"

static const char as_bytes[] = "bytes";
static const char as_json[] = "json";
static const char as_form[] = "form";
static const char as_selected[] = "selected";

/* How the body is compared, if it matches its type. */
enum kind {
    BYTES = 0,
    JSON,
    FORM,
};

struct idem_http_fingerprint {
    enum kind kind;
    struct idem__hash hash; /* Of the parts, then also of the body's bytes. */
    uint64_t left;          /* Bytes of the body still to come. */
    bool too_many;
    bool untyped;             /* Without a type: JSON if the body looks like
                                 it. */
    struct idem__hash head;   /* FORM: of the parts only. */
    struct idem__buffer json; /* JSON: the body. */
    struct idem__multipart form;
};

static void add_last(struct idem__hash *hash, const char *tag, uint64_t len)
{
    struct idem_slice text = idem_str(tag);

    idem__hash_add_u64(hash, text.len);
    idem__hash_add(hash, text);
    idem__hash_add_u64(hash, len);
}

static int end_with(struct idem__hash *hash, const char *tag,
                    struct idem_slice last,
                    uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    add_last(hash, tag, last.len);
    idem__hash_add(hash, last);
    return idem__fingerprint_end(hash, ret_fingerprint);
}

/* Without a content type, a recipient may examine the data (RFC 9110 section 8.3). Only
 * an array or object counts, because plain text may begin like any other JSON value. */
static bool looks_like_json(struct idem_slice body)
{
    const char *p = body.base;
    size_t i = 0;

    while (i < body.len &&
           (p[i] == ' ' || p[i] == '\t' || p[i] == '\n' || p[i] == '\r')) {
        i++;
    }
    return i < body.len && (p[i] == '{' || p[i] == '[');
}

/* Ends the fingerprint with the canonical text of @json under @tag, or, if it has none,
 * with its bytes under @otherwise. */
static int end_with_json(struct idem__hash *hash, struct idem_slice json,
                         const char *tag, const char *otherwise,
                         uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    struct idem__tree tree = {0};
    struct idem__buffer text = {0};
    int rc = idem__tree_read(&tree, json, NULL);

    if (rc == 0) {
        rc = idem__canonical(&tree, 0, IDEM_FLAVOUR_NONE, &text, NULL);
    }
    if (rc == 0) {
        rc = end_with(hash, tag, idem__buffer_slice(&text), ret_fingerprint);
    } else if (rc == IDEM_EINVALID) {
        rc = end_with(hash, otherwise, json, ret_fingerprint);
    }
    idem__buffer_free(&text);
    idem__tree_free(&tree);
    return rc;
}

/* ---- In pieces --------------------------------------------------------- */

static int start(struct idem_http_fingerprint *print,
                 const struct idem_slice *parts, size_t parts_len,
                 struct idem_slice content_type, uint64_t body_len,
                 struct idem_slice secret)
{
    int rc = idem__fingerprint_start(&print->hash, secret, parts_len + 2, parts,
                                     parts_len);

    if (rc != 0) {
        return rc;
    }
    print->left = body_len;
    print->untyped = content_type.len == 0;
    if (body_len <= IDEM_HTTP_JSON_MAX &&
        (print->untyped || idem__media_type_is_json(content_type))) {
        print->kind = JSON;
        return 0;
    }
    if (idem__multipart_init(&print->form, content_type)) {
        print->kind = FORM;
        print->head = print->hash;
    }
    add_last(&print->hash, as_bytes, body_len);
    return 0;
}

int idem_http_fingerprint_create(const struct idem_slice *parts,
                                 size_t parts_len,
                                 struct idem_slice content_type,
                                 uint64_t body_len, struct idem_slice secret,
                                 struct idem_http_fingerprint **ret_print)
{
    struct idem_http_fingerprint *print = idem__zalloc(sizeof(*print));
    int rc;

    if (print == NULL) {
        return IDEM_ENOMEM;
    }
    rc = start(print, parts, parts_len, content_type, body_len, secret);
    if (rc != 0) {
        idem_http_fingerprint_destroy(print);
        return rc;
    }
    *ret_print = print;
    return 0;
}

void idem_http_fingerprint_add(struct idem_http_fingerprint *print,
                               struct idem_slice piece)
{
    if (piece.len > print->left) {
        print->too_many = true;
        return;
    }
    print->left -= piece.len;
    if (print->kind == JSON) {
        idem__buffer_add(&print->json, piece.base, piece.len);
        return;
    }
    idem__hash_add(&print->hash, piece);
    if (print->kind == FORM) {
        idem__multipart_add(&print->form, piece);
    }
}

static int end_json(struct idem_http_fingerprint *print, struct idem_slice body,
                    uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    if (print->untyped && !looks_like_json(body)) {
        return end_with(&print->hash, as_bytes, body, ret_fingerprint);
    }
    return end_with_json(&print->hash, body, as_json, as_bytes,
                         ret_fingerprint);
}

static int end_form(struct idem_http_fingerprint *print,
                    uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    uint8_t digest[IDEM__SHA256_LEN];
    int rc = idem__multipart_end(&print->form, digest);

    if (rc == IDEM_EINVALID) {
        return idem__fingerprint_end(&print->hash, ret_fingerprint);
    }
    return rc != 0
               ? rc
               : end_with(&print->head, as_form,
                          idem_bytes(digest, sizeof(digest)), ret_fingerprint);
}

static int end(struct idem_http_fingerprint *print,
               uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    if (print->too_many || print->left > 0) {
        return IDEM_EINVALID;
    }
    switch (print->kind) {
    case JSON:
        return print->json.failed
                   ? IDEM_ENOMEM
                   : end_json(print, idem__buffer_slice(&print->json),
                              ret_fingerprint);
    case FORM:
        return end_form(print, ret_fingerprint);
    case BYTES:
        break;
    }
    return idem__fingerprint_end(&print->hash, ret_fingerprint);
}

int idem_http_fingerprint_end(struct idem_http_fingerprint *print,
                              uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    int rc = end(print, ret_fingerprint);

    idem_http_fingerprint_destroy(print);
    return rc;
}

void idem_http_fingerprint_destroy(struct idem_http_fingerprint *print)
{
    if (print == NULL) {
        return;
    }
    idem__buffer_free(&print->json);
    idem__free(print);
}

/* ---- At once ----------------------------------------------------------- */

int idem_http_fingerprint(const struct idem_slice *parts, size_t parts_len,
                          struct idem_slice content_type,
                          struct idem_slice body, struct idem_slice secret,
                          uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    struct idem_http_fingerprint print = {.kind = BYTES};
    int rc = start(&print, parts, parts_len, content_type, body.len, secret);

    if (rc != 0) {
        return rc;
    }
    if (print.kind == JSON) {
        return end_json(&print, body, ret_fingerprint);
    }
    idem_http_fingerprint_add(&print, body);
    return end(&print, ret_fingerprint);
}

int idem_http_fingerprint_selected(
    const struct idem_slice *parts, size_t parts_len, struct idem_slice json,
    struct idem_slice secret, uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    struct idem__hash hash;
    int rc =
        idem__fingerprint_start(&hash, secret, parts_len + 2, parts, parts_len);

    return rc != 0 ? rc
                   : end_with_json(&hash, json, as_selected, as_selected,
                                   ret_fingerprint);
}
