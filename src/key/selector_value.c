/* Makes the values of a run within the bounds of selector.h, and texts from other
 * texts. */
#include "key/selector.h"

#include "base/base64.h"
#include "base/bytes.h"
#include "core/error.h"
#include "key/canonical.h"

enum {
    JSON_PER_STEP = 4, /* Bytes of a text that is parsed. */
};

static const char too_much[] =
    "the selector exceeds its limit of steps or memory";

/* ---- Bounds ---- */

int idem__value_fail(struct idem_selector *s, int code, const char *why)
{
    s->final = true;
    return why == NULL ? idem__error_plain(&s->error, code)
                       : idem__error(&s->error, code, "%s", why);
}

int idem__value_no_memory(struct idem_selector *s)
{
    return idem__value_fail(s, IDEM_ENOMEM, NULL);
}

int idem__value_charge(struct idem_selector *s, size_t steps)
{
    if (steps > s->steps ||
        idem__tree_len(&s->tree) > IDEM__SELECTOR_NODES_MAX ||
        s->tree.text.len > IDEM__SELECTOR_TEXT_MAX) {
        return idem__value_fail(s, IDEM_EINVALID, too_much);
    }
    s->steps -= (uint32_t)steps;
    return 0;
}

/* ---- Values ---- */

int idem__value_give(struct idem_selector *s, uint32_t number)
{
    idem__buffer_add(&s->values, &number, sizeof(number));
    return s->values.failed ? idem__value_no_memory(s)
                            : idem__value_charge(s, 1);
}

int idem__value_make(struct idem_selector *s, struct idem__tree_node node,
                     uint32_t *ret_number)
{
    uint32_t number = idem__tree_len(&s->tree);

    node.end = number + 1;
    idem__buffer_add(&s->tree.nodes, &node, sizeof(node));
    if (s->tree.nodes.failed) {
        return idem__value_no_memory(s);
    }
    *ret_number = number;
    return idem__value_charge(s, 1);
}

static int give_made(struct idem_selector *s, struct idem__tree_node node)
{
    uint32_t number = 0;
    int rc = idem__value_make(s, node, &number);

    return rc == 0 ? idem__value_give(s, number) : rc;
}

/* Adds a string with the text that tree.text has from byte @from on. */
static int give_text(struct idem_selector *s, size_t from)
{
    size_t len = s->tree.text.len - from;

    if (s->tree.text.failed) {
        return idem__value_no_memory(s);
    }
    return give_made(s, (struct idem__tree_node){.kind = IDEM__TREE_STRING,
                                                 .text = (uint32_t)from,
                                                 .text_len = (uint32_t)len});
}

/* Appends a text of tree.text to it once more. The room comes first, because it may
 * move the text. */
static void add_again(struct idem_selector *s, uint32_t text, uint32_t len)
{
    uint8_t *to = idem__buffer_room(&s->tree.text, len);

    if (to != NULL) {
        memcpy(to, s->tree.text.base + text, len);
        s->tree.text.len += len;
    }
}

const char *idem__value_kind(const struct idem__tree_node *node)
{
    switch (node->kind) {
    case IDEM__TREE_NULL:
        return "null";
    case IDEM__TREE_FALSE:
    case IDEM__TREE_TRUE:
        return "a boolean";
    case IDEM__TREE_NUMBER:
        return "a number";
    case IDEM__TREE_STRING:
        return "a text";
    case IDEM__TREE_ARRAY:
        return "an array";
    case IDEM__TREE_OBJECT:
        break;
    }
    return "an object";
}

/* ---- Texts ---- */

static int need_text(struct idem_selector *s, const char *what, uint32_t input)
{
    const struct idem__tree_node *node = idem__value_node(s, input);

    if (node->kind != IDEM__TREE_STRING) {
        return idem__error(&s->error, IDEM_EINVALID,
                           "%s takes a text, and this is %s", what,
                           idem__value_kind(node));
    }
    return idem__value_charge(s, node->text_len / IDEM__VALUE_BYTES_PER_STEP);
}

int idem__value_literal(struct idem_selector *s, const struct idem__part *part)
{
    size_t from = s->tree.text.len;

    idem__buffer_add(&s->tree.text, s->text.base + part->text, part->text_len);
    if (s->tree.text.failed) {
        return idem__value_no_memory(s);
    }
    return give_made(s, (struct idem__tree_node){.kind = part->literal,
                                                 .text = (uint32_t)from,
                                                 .text_len = part->text_len});
}

/* A text accepts the same values as a key. It refuses null, which would give the same
 * key to all inputs that lack their id. */
int idem__value_to_text(struct idem_selector *s, uint32_t input)
{
    const struct idem__tree_node *node = idem__value_node(s, input);
    size_t from = s->tree.text.len;

    switch (node->kind) {
    case IDEM__TREE_STRING:
        return idem__value_give(s, input);
    case IDEM__TREE_TRUE:
    case IDEM__TREE_FALSE:
        idem__buffer_str(&s->tree.text,
                         node->kind == IDEM__TREE_TRUE ? "true" : "false");
        return give_text(s, from);
    case IDEM__TREE_NUMBER:
        idem__buffer_reset(&s->scratch, IDEM__VALUE_KEEP);
        if (!idem__number_text(&s->scratch, idem__tree_text(&s->tree, node))) {
            return idem__value_fail(
                s, IDEM_EINVALID,
                "a number has an exponent of too many digits");
        }
        idem__buffer_add(&s->tree.text, s->scratch.base, s->scratch.len);
        return s->scratch.failed ? idem__value_no_memory(s)
                                 : give_text(s, from);
    case IDEM__TREE_NULL:
        return idem__value_fail(
            s, IDEM_EINVALID,
            "null cannot be part of a text: the input has no such member");
    case IDEM__TREE_ARRAY:
    case IDEM__TREE_OBJECT:
        break;
    }
    s->final = true;
    return idem__error(&s->error, IDEM_EINVALID, "%s cannot be part of a text",
                       idem__value_kind(node));
}

int idem__value_join(struct idem_selector *s, uint32_t left, uint32_t right)
{
    size_t from = s->tree.text.len;
    int rc = need_text(s, "+", left);

    if (rc == 0) {
        rc = need_text(s, "+", right);
    }
    if (rc != 0) {
        s->final = true;
        return rc;
    }
    add_again(s, idem__value_node(s, left)->text,
              idem__value_node(s, left)->text_len);
    add_again(s, idem__value_node(s, right)->text,
              idem__value_node(s, right)->text_len);
    return give_text(s, from);
}

int idem__value_downcase(struct idem_selector *s, uint32_t input)
{
    size_t from = s->tree.text.len;
    int rc = need_text(s, "ascii_downcase", input);
    size_t i;

    if (rc != 0) {
        return rc;
    }
    add_again(s, idem__value_node(s, input)->text,
              idem__value_node(s, input)->text_len);
    for (i = from; i < s->tree.text.len; i++) {
        uint8_t *c = s->tree.text.base + i;

        *c = *c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c;
    }
    return give_text(s, from);
}

/* Copies a text out of the tree, because the text moves when the tree grows. */
static int copy_text(struct idem_selector *s, uint32_t input,
                     struct idem_slice *ret_text)
{
    struct idem_slice text =
        idem__tree_text(&s->tree, idem__value_node(s, input));

    idem__buffer_reset(&s->scratch, IDEM__VALUE_KEEP);
    idem__buffer_add(&s->scratch, text.base, text.len);
    *ret_text = idem__buffer_slice(&s->scratch);
    return s->scratch.failed ? idem__value_no_memory(s) : 0;
}

int idem__value_of_json(struct idem_selector *s, uint32_t input)
{
    struct idem_slice text;
    uint32_t number = 0;
    int rc = need_text(s, "fromjson", input);

    if (rc != 0) {
        return rc;
    }
    rc = idem__value_charge(s, idem__value_node(s, input)->text_len /
                                   JSON_PER_STEP);
    if (rc != 0) {
        return rc;
    }
    rc = copy_text(s, input, &text);
    if (rc != 0) {
        return rc;
    }
    rc = idem__tree_add(&s->tree, text, &number, &s->error);
    /* A text that two readers may understand differently is refused, even under ?. */
    if (rc == IDEM_ENOMEM || s->tree.twins) {
        s->final = true;
    }
    if (rc != 0) {
        return rc;
    }
    if (s->tree.halves) {
        return idem__value_fail(s, IDEM_EINVALID,
                                "fromjson: the text has half a surrogate pair");
    }
    return idem__value_give(s, number);
}

/* Accepts base64 with and without its padding. */
int idem__value_of_base64(struct idem_selector *s, uint32_t input)
{
    size_t from = s->tree.text.len;
    struct idem_slice text;
    const char *p;
    uint8_t *to;
    size_t len;
    int rc = need_text(s, "@base64d", input);

    if (rc == 0) {
        rc = copy_text(s, input, &text);
    }
    if (rc != 0) {
        s->final = true;
        return rc;
    }
    while (s->scratch.len % 4 != 0 && !s->scratch.failed) {
        idem__buffer_str(&s->scratch, "=");
    }
    text = idem__buffer_slice(&s->scratch);
    p = text.base;
    to = idem__buffer_room(&s->tree.text, idem__base64_max(text.len) + 1);
    if (s->scratch.failed || to == NULL) {
        return idem__value_no_memory(s);
    }
    if (text.len >= 4 && p[text.len - 3] == '=') {
        rc = IDEM_EINVALID; /* No text of base64 ends with three of them. */
    } else {
        rc = idem__base64_read(IDEM__BASE64, text, to, &len);
    }
    if (rc != 0) {
        return idem__value_fail(s, IDEM_EINVALID,
                                "@base64d: the text is not base64");
    }
    if (!idem__utf8_is(idem_bytes(to, len))) {
        return idem__value_fail(s, IDEM_EINVALID,
                                "@base64d: the decoded text is not UTF-8");
    }
    s->tree.text.len += len;
    return give_text(s, from);
}
