/* Makes the keys that other libraries make. */
#include <idem/key.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "core/error.h"
#include "key/canonical.h"
#include "key/selector.h"

#include <stdio.h>

static const char *const flavours[] = {
#define IDEM__X(id, word) [IDEM_FLAVOUR_##id] = word,
    IDEM_FLAVOUR_MAP(IDEM__X)
#undef IDEM__X
};

enum {
    FLAVOURS = sizeof(flavours) / sizeof(flavours[0])
};

static bool is_flavour(enum idem_flavour flavour)
{
    return (int)flavour > IDEM_FLAVOUR_NONE && (int)flavour < FLAVOURS;
}

const char *idem_flavour_name(enum idem_flavour flavour)
{
    return is_flavour(flavour) ? flavours[flavour] : NULL;
}

enum idem_flavour idem_flavour_find(const char *name)
{
    int i;

    for (i = IDEM_FLAVOUR_NONE + 1; i < FLAVOURS; i++) {
        if (strcmp(flavours[i], name) == 0) {
            return (enum idem_flavour)i;
        }
    }
    return IDEM_FLAVOUR_NONE;
}

static int check_prefix(enum idem_flavour flavour, const char *prefix,
                        struct idem_error *error)
{
    if (!is_flavour(flavour)) {
        return idem__error(error, IDEM_EINVALID, "unknown flavour");
    }
    return prefix != NULL ? 0
                          : idem__error(error, IDEM_EINVALID,
                                        "a key of %s has a prefix before its #",
                                        flavours[flavour]);
}

/* True for a value that an event without the selected member would give: an empty text,
 * or nulls. */
static bool says_nothing(const struct idem__tree *tree, uint32_t number)
{
    const struct idem__tree_node *node = idem__tree_at(tree, number);

    return node->kind == IDEM__TREE_STRING ? node->text_len == 0
                                           : idem__tree_is_null(tree, number);
}

static void add_digest(enum idem_flavour flavour,
                       const uint8_t digest[IDEM__MD5_LEN],
                       struct idem__buffer *out)
{
    char hex[3];
    size_t i;

    if (flavour == IDEM_FLAVOUR_TYPESCRIPT) {
        idem__buffer_base64(out, idem_bytes(digest, IDEM__MD5_LEN));
        return;
    }
    for (i = 0; i < IDEM__MD5_LEN; i++) {
        (void)snprintf(hex, sizeof(hex), "%02x", digest[i]);
        idem__buffer_str(out, hex);
    }
}

static int take_key(const struct idem__buffer *key, enum idem_flavour flavour,
                    struct idem_key_text *ret_key, struct idem_error *error)
{
    if (key->failed) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    if (key->len > IDEM_KEY_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "the key of %s has %zu bytes: at most %d are taken",
                           flavours[flavour], key->len, IDEM_KEY_MAX);
    }
    memcpy(ret_key->text, key->base, key->len);
    ret_key->text[key->len] = '\0';
    ret_key->len = key->len;
    return 0;
}

/* Makes "PREFIX#DIGEST", with the digest of the canonical text of node @number. */
static int make_key(const struct idem__tree *tree, uint32_t number,
                    enum idem_flavour flavour, const char *prefix,
                    unsigned flags, struct idem_key_text *ret_key,
                    struct idem_error *error)
{
    struct idem__buffer text = {0};
    uint8_t digest[IDEM__MD5_LEN];
    int rc;

    if ((flags & IDEM_FLAVOUR_NULL) == 0 && says_nothing(tree, number)) {
        return idem__error(
            error, IDEM_EINVALID,
            "it selects nothing: every event without it would have this key");
    }
    rc = idem__canonical(tree, number, flavour, &text, error);
    if (rc != 0) {
        goto done;
    }
    rc = idem__md5(idem__buffer_slice(&text), digest);
    text.len = 0;
    idem__buffer_str(&text, prefix);
    idem__buffer_str(&text, "#");
    add_digest(flavour, digest, &text);
    if (rc != 0) {
        goto done;
    }
    rc = take_key(&text, flavour, ret_key, error);
done:
    idem__buffer_free(&text);
    return rc;
}

int idem_flavour_key(enum idem_flavour flavour, const char *prefix,
                     struct idem_slice json, unsigned flags,
                     struct idem_key_text *ret_key,
                     struct idem_error *ret_error)
{
    struct idem__tree tree = {0};
    int rc = check_prefix(flavour, prefix, ret_error);

    if (rc != 0) {
        goto done;
    }
    rc = idem__tree_read(&tree, json, ret_error);
    if (rc != 0) {
        goto done;
    }
    rc = make_key(&tree, 0, flavour, prefix, flags, ret_key, ret_error);
done:
    idem__tree_free(&tree);
    return rc;
}

int idem_flavour_key_of(enum idem_flavour flavour, const char *prefix,
                        struct idem_selector *selector, unsigned flags,
                        struct idem_key_text *ret_key,
                        struct idem_error *ret_error)
{
    const uint32_t *value =
        (const uint32_t *)(const void *)selector->values.base;
    size_t len = selector->values.len / sizeof(*value);
    int rc = check_prefix(flavour, prefix, ret_error);

    if (rc == 0 && len != 1) {
        rc = idem__error(ret_error, IDEM_EINVALID,
                         "it selects %zu values, and an event has one", len);
    }
    return rc != 0 ? rc
                   : make_key(&selector->tree, *value, flavour, prefix, flags,
                              ret_key, ret_error);
}
