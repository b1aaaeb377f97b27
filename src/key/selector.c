/* Runs selectors for callers, and turns the selected values into a key, or into JSON
 * for comparisons. */
#include "key/selector.h"

#include "base/hash.h"
#include "base/heap.h"
#include "core/error.h"
#include "key/canonical.h"

#include <stdio.h>

enum {
    KEEP = 64 * 1024,
    /* "=#", HEAD_MAX bytes, "#" and the digest in hexadecimal make IDEM_KEY_MAX
     * bytes. */
    HEAD_MAX = IDEM_KEY_MAX - 3 - 2 * IDEM__SHA256_LEN,
};

int idem_selector_create(const char *text, struct idem_selector **ret_selector,
                         struct idem_error *ret_error)
{
    struct idem_selector *selector = idem__zalloc(sizeof(*selector));
    int rc;

    if (selector == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = idem__selector_compile(selector, text, ret_error);
    if (rc != 0) {
        idem_selector_destroy(selector);
        return rc;
    }
    *ret_selector = selector;
    return 0;
}

void idem_selector_destroy(struct idem_selector *selector)
{
    if (selector == NULL) {
        return;
    }
    idem__buffer_free(&selector->parts);
    idem__buffer_free(&selector->text);
    idem__buffer_free(&selector->values);
    idem__buffer_free(&selector->scratch);
    idem__buffer_free(&selector->output);
    idem__tree_free(&selector->tree);
    idem__free(selector);
}

static bool is_packed(struct idem_slice bytes)
{
    return bytes.len > 2 && memcmp(bytes.base, "\x1f\x8b", 2) == 0;
}

int idem_selector_run(struct idem_selector *selector, struct idem_slice json,
                      unsigned flags, struct idem_error *ret_error)
{
    uint32_t number;
    int rc;

    idem__selector_reset(selector);
    if (is_packed(json)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the text is compressed with gzip, and a selector "
                           "reads JSON: decompress it first");
    }
    rc = idem__tree_add(&selector->tree, json, &number, ret_error);
    if (rc == 0 && (flags & IDEM_SELECTOR_HTTP) != 0) {
        rc = idem__request_read_key(&selector->tree, ret_error);
    }
    return rc == 0 ? idem__selector_run(selector, ret_error) : rc;
}

int idem_selector_run_request(struct idem_selector *selector,
                              const struct idem_selector_request *request,
                              struct idem_error *ret_error)
{
    int rc;

    idem__selector_reset(selector);
    selector->packed = is_packed(request->body);
    rc = idem__request_tree(request, &selector->tree, ret_error);
    if (rc == 0) {
        rc = idem__request_read_key(&selector->tree, ret_error);
    }
    return rc == 0 ? idem__selector_run(selector, ret_error) : rc;
}

/* ---- The selected values ---- */

static size_t values_len(const struct idem_selector *s)
{
    return s->values.len / sizeof(uint32_t);
}

static const uint32_t *values_of(const struct idem_selector *s)
{
    return (const uint32_t *)(const void *)s->values.base;
}

/* True for null, and for a list that the selector made only of nulls. An empty object
 * or array of the input is a value. */
static bool is_missing(const struct idem_selector *s, uint32_t number)
{
    const struct idem__tree_node *node = idem__tree_at(&s->tree, number);
    uint32_t i;

    for (i = number + 1; node->made && i < node->end;
         i = idem__tree_at(&s->tree, i)->end) {
        if (!is_missing(s, i)) {
            return false;
        }
    }
    return node->made || node->kind == IDEM__TREE_NULL;
}

/* Refuses a selection without any value: it would give one key to all inputs that lack
 * theirs. */
static int check_there(const struct idem_selector *s, struct idem_error *error)
{
    const uint32_t *values = values_of(s);
    size_t len = values_len(s);
    size_t i;

    for (i = 0; i < len; i++) {
        if (!is_missing(s, values[i])) {
            return 0;
        }
    }
    return idem__error(error, IDEM_ENOTFOUND,
                       "it selects %s: the input has no such member%s",
                       len == 0 ? "nothing" : "null",
                       s->packed ? ", and the body, compressed with gzip, is "
                                   "read as it was sent"
                                 : "");
}

static int check_len(const struct idem__buffer *out, struct idem_error *error)
{
    return out->len <= IDEM__SELECTOR_TEXT_MAX
               ? 0
               : idem__error(error, IDEM_EINVALID,
                             "it selects more than %d bytes",
                             IDEM__SELECTOR_TEXT_MAX);
}

int idem_selector_values(struct idem_selector *selector,
                         struct idem_slice *ret_values,
                         struct idem_error *ret_error)
{
    struct idem__buffer *out = &selector->output;
    size_t i;
    int rc = check_there(selector, ret_error);

    idem__buffer_reset(out, KEEP);
    idem__buffer_str(out, "[");
    for (i = 0; rc == 0 && i < values_len(selector); i++) {
        idem__buffer_str(out, i == 0 ? "" : ",");
        rc = idem__canonical(&selector->tree, values_of(selector)[i],
                             IDEM_FLAVOUR_NONE, out, ret_error);
        rc = rc == 0 ? check_len(out, ret_error) : rc;
    }
    idem__buffer_str(out, "]");
    if (rc != 0) {
        return rc;
    }
    if (out->failed) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    *ret_values = idem__buffer_slice(out);
    return 0;
}

/* ---- The key ---- */

/* Appends the text of a value of which a key can be made. */
static int add_scalar(struct idem_selector *s, uint32_t number,
                      struct idem__buffer *out, struct idem_error *error)
{
    const struct idem__tree_node *node = idem__tree_at(&s->tree, number);
    struct idem_slice text = idem__tree_text(&s->tree, node);

    switch (node->kind) {
    case IDEM__TREE_STRING:
        if (memchr(text.base, '\0', text.len) != NULL) {
            return idem__error(error, IDEM_EINVALID,
                               "it selects a text with a NUL in it, which "
                               "cannot be part of a key");
        }
        idem__buffer_add(out, text.base, text.len);
        return 0;
    case IDEM__TREE_NUMBER:
        return idem__number_text(out, text)
                   ? 0
                   : idem__error(error, IDEM_EINVALID,
                                 "a number has an exponent of too many digits");
    case IDEM__TREE_TRUE:
        idem__buffer_str(out, "true");
        return 0;
    case IDEM__TREE_FALSE:
        idem__buffer_str(out, "false");
        return 0;
    case IDEM__TREE_NULL:
        return idem__error(
            error, IDEM_EINVALID,
            "part of the key is null: the input has no such member");
    case IDEM__TREE_ARRAY:
        return idem__error(error, IDEM_EINVALID,
                           "it selects an array of the text, which is not a "
                           "key: name its elements, as in [.a[0], .a[1]]");
    case IDEM__TREE_OBJECT:
        break;
    }
    return idem__error(error, IDEM_EINVALID,
                       "it selects an object, which is not a key: name its "
                       "members, as in [.a.b, .a.c]");
}

/* Appends the texts as an array of JSON, so that ["a","bc"] and ["ab","c"] differ. */
static int add_list(struct idem_selector *s, const uint32_t *numbers,
                    size_t len, struct idem__buffer *out,
                    struct idem_error *error)
{
    struct idem__buffer *text = &s->scratch;
    size_t i;
    int rc = 0;

    idem__buffer_str(out, "=[");
    for (i = 0; rc == 0 && i < len; i++) {
        idem__buffer_reset(text, KEEP);
        idem__buffer_str(out, i == 0 ? "" : ",");
        rc = add_scalar(s, numbers[i], text, error);
        if (rc == 0) {
            idem__canonical_string(out, idem__buffer_slice(text));
            out->failed = out->failed || text->failed;
            rc = check_len(out, error);
        }
    }
    idem__buffer_str(out, "]");
    return rc;
}

/* Appends the key of one value. If its text begins with "=", like the keys of lists and
 * of long texts, another "=" in front keeps it from being taken for one of those. */
static int add_single(struct idem_selector *s, uint32_t number,
                      struct idem__buffer *out, struct idem_error *error)
{
    size_t from;
    int rc;

    idem__buffer_str(out, "=");
    from = out->len;
    rc = add_scalar(s, number, out, error);
    if (rc != 0 || out->failed) {
        return rc;
    }
    if (out->len == from) {
        return idem__error(error, IDEM_EINVALID,
                           "it selects an empty text, which is not a key");
    }
    if (out->base[from] != '=') {
        memmove(out->base, out->base + 1, --out->len);
    }
    return 0;
}

/* Replaces the one list among the values by its elements. */
static int spread(struct idem_selector *s)
{
    uint32_t list = values_of(s)[0];
    uint32_t end = idem__tree_at(&s->tree, list)->end;
    uint32_t i;

    s->values.len = 0;
    for (i = list + 1; i < end; i = idem__tree_at(&s->tree, i)->end) {
        idem__buffer_add(&s->values, &i, sizeof(i));
    }
    return s->values.failed ? IDEM_ENOMEM : 0;
}

static int write_key(struct idem_selector *s, struct idem__buffer *out,
                     struct idem_error *error)
{
    uint32_t expected = idem__part_at(s, s->root)->values;
    bool list = expected > 1;
    int rc = check_there(s, error);

    if (rc != 0) {
        return rc;
    }
    if (values_len(s) != expected) {
        return idem__error(error, IDEM_EINVALID,
                           "it selects %zu values in place of %u: put "
                           "them in [ ] if they are one key",
                           values_len(s), expected);
    }
    if (!list && idem__tree_at(&s->tree, values_of(s)[0])->made) {
        list = true;
        rc = spread(s);
    }
    if (rc != 0) {
        return idem__error_plain(error, rc);
    }
    return list ? add_list(s, values_of(s), values_len(s), out, error)
                : add_single(s, values_of(s)[0], out, error);
}

int idem__key_shorten(struct idem__buffer *out, struct idem_error *error)
{
    static const char digits[] = "0123456789abcdef";
    struct idem_slice whole = idem__buffer_slice(out);
    uint8_t digest[IDEM__SHA256_LEN];
    char hex[2 * IDEM__SHA256_LEN];
    size_t len = HEAD_MAX;
    size_t i;

    if (out->len <= IDEM_KEY_MAX) {
        return 0;
    }
    if (idem__sha256(&whole, 1, digest) != 0) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    for (i = 0; i < sizeof(digest); i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    while (len > 0 && (out->base[len] & 0xc0) == 0x80) {
        len--; /* Do not cut a character in two. */
    }
    memmove(out->base + 2, out->base, len);
    memcpy(out->base, "=#", 2);
    out->len = len + 2;
    idem__buffer_str(out, "#");
    idem__buffer_add(out, hex, sizeof(hex));
    return 0;
}

int idem_key_of(struct idem_selector *selector, struct idem_key_text *ret_key,
                struct idem_error *ret_error)
{
    struct idem__buffer *out = &selector->output;
    int rc;

    idem__buffer_reset(out, KEEP);
    rc = write_key(selector, out, ret_error);
    if (rc != 0) {
        return rc;
    }
    if (out->failed) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = idem__key_shorten(out, ret_error);
    if (rc != 0) {
        return rc;
    }
    memcpy(ret_key->text, out->base, out->len);
    ret_key->text[out->len] = '\0';
    ret_key->len = out->len;
    return 0;
}
