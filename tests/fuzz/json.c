/* What is read of the JSON of an event is what json-c reads of it. It lies within
 * the text, no name is there twice, and the canonical text that it has, ours or
 * of a flavour, is its own canonical text. Ours is that of another spelling too, with
 * members in another order, escapes and other digits; and it means what was read, so that
 * no two meanings have one text.
 */
#include "fuzz.h"
#include "key/canonical.h"
#include "key/tree.h"

#include <idem/key.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    JSONC_DEPTH = IDEM__TREE_DEPTH_MAX + 2
};

/* ---- The nodes ---- */

static bool is_inside(const struct idem__tree *tree, uint32_t at, uint32_t len)
{
    return at <= tree->text.len && len <= tree->text.len - at;
}

static void check_node(const struct idem__tree *tree, uint32_t number)
{
    const struct idem__tree_node *node = idem__tree_at(tree, number);
    uint32_t from = node->from;
    uint32_t count = 0;
    uint32_t i;

    must(node->kind >= IDEM__TREE_NULL && node->kind <= IDEM__TREE_OBJECT);
    must(node->from < node->to && node->to <= tree->json.len);
    must(node->end > number && node->end <= idem__tree_len(tree));
    must(is_inside(tree, node->text, node->text_len));
    must(is_inside(tree, node->name, node->name_len));
    for (i = number + 1; i < node->end; i = idem__tree_at(tree, i)->end) {
        const struct idem__tree_node *child = idem__tree_at(tree, i);

        must(child->from > from && child->to < node->to);
        must(child->named == (node->kind == IDEM__TREE_OBJECT));
        from = child->to - 1;
        count++;
    }
    must(count == node->count && i == node->end);
}

/* ---- json-c ---- */

/* It ends a name at a NUL, and has one sign for all halves of surrogates. */
static bool has_names_of_its_own(const struct idem__tree *tree)
{
    uint32_t i;

    for (i = 0; i < idem__tree_len(tree); i++) {
        struct idem_slice name = idem__tree_name(tree, idem__tree_at(tree, i));

        if (name.len > 0 && memchr(name.base, '\0', name.len) != NULL) {
            return true;
        }
    }
    return tree->halves;
}

static void compare(const struct idem__tree *tree, struct json_object *other)
{
    const struct idem__tree_node *top = idem__tree_at(tree, 0);

    switch (json_object_get_type(other)) {
    case json_type_null:
        must(top->kind == IDEM__TREE_NULL);
        break;
    case json_type_boolean:
        must(top->kind == (json_object_get_boolean(other) ? IDEM__TREE_TRUE
                                                          : IDEM__TREE_FALSE));
        break;
    case json_type_int:
    case json_type_double:
        must(top->kind == IDEM__TREE_NUMBER);
        break;
    case json_type_string:
        must(top->kind == IDEM__TREE_STRING);
        must(tree->halves ||
             same_bytes(idem__tree_text(tree, top),
                        idem_bytes(json_object_get_string(other),
                                   (size_t)json_object_get_string_len(other))));
        break;
    case json_type_array:
        must(top->kind == IDEM__TREE_ARRAY);
        must(json_object_array_length(other) == top->count);
        break;
    case json_type_object:
        must(top->kind == IDEM__TREE_OBJECT);
        must(has_names_of_its_own(tree) ||
             (unsigned)json_object_object_length(other) == top->count);
        break;
    }
}

static void read_again(const struct idem__tree *tree)
{
    struct json_tokener *reader = json_tokener_new_ex(JSONC_DEPTH);
    struct json_object *other;

    must(reader != NULL);
    json_tokener_set_flags(reader, JSON_TOKENER_STRICT);
    /* A number ends where something follows it. */
    other = json_tokener_parse_ex(reader, tree->json.base, (int)tree->json.len);
    if (json_tokener_get_error(reader) == json_tokener_continue) {
        other = json_tokener_parse_ex(reader, "", 1);
    }
    must(json_tokener_get_error(reader) == json_tokener_success);
    compare(tree, other);
    (void)json_object_put(other);
    json_tokener_free(reader);
}

/* ---- Meaning ---- */

enum {
    EXPONENT_MAX = 15 /* Letters of one that can be counted with. */
};

/* A number: its digits without zeros at either end, and where they begin. */
struct number {
    bool is_negative;
    char *digits;
    size_t len; /* 0: it is zero. */
    long long exponent;
};

/* False: its exponent is too long. */
static bool take_apart(struct idem_slice text, struct number *number)
{
    char *copy = text_of(text);
    char *e = strpbrk(copy, "eE");
    bool fraction = false;
    const char *p;

    *number = (struct number){.digits = copy};
    if (e != NULL && strlen(e + 1) > EXPONENT_MAX) {
        free(copy);
        return false;
    }
    number->exponent = e == NULL ? 0 : atoll(e + 1);
    number->is_negative = copy[0] == '-';
    for (p = copy + number->is_negative; *p != '\0' && p != e; p++) {
        if (*p == '.') {
            fraction = true;
        } else {
            number->exponent -= fraction;
            if (*p != '0' || number->len > 0) {
                copy[number->len++] = *p; /* It is read already. */
            }
        }
    }
    while (number->len > 0 && copy[number->len - 1] == '0') {
        number->len--;
        number->exponent++;
    }
    return true;
}

static bool same_number(struct idem_slice text, struct idem_slice other)
{
    struct number a;
    struct number b;
    bool same;

    if (!take_apart(text, &a)) {
        return true; /* Too long to tell. */
    }
    if (!take_apart(other, &b)) {
        free(a.digits);
        return true;
    }
    same = same_bytes(idem_bytes(a.digits, a.len), idem_bytes(b.digits, b.len));
    same = same && (a.len == 0 || (a.is_negative == b.is_negative &&
                                   a.exponent == b.exponent));
    free(a.digits);
    free(b.digits);
    return same;
}

static uint32_t member_of(const struct idem__tree *tree, uint32_t object,
                          struct idem_slice name)
{
    uint32_t i = object + 1;

    while (!same_bytes(idem__tree_name(tree, idem__tree_at(tree, i)), name)) {
        i = idem__tree_at(tree, i)->end;
        must(i < idem__tree_at(tree, object)->end);
    }
    return i;
}

/* The value @number of @tree is @other of @again. */
static void means(const struct idem__tree *tree, uint32_t number,
                  const struct idem__tree *again, uint32_t other)
{
    const struct idem__tree_node *a = idem__tree_at(tree, number);
    const struct idem__tree_node *b = idem__tree_at(again, other);
    uint32_t j = other + 1;
    uint32_t i;

    must(a->kind == b->kind && a->count == b->count);
    if (a->kind == IDEM__TREE_STRING) {
        must(same_bytes(idem__tree_text(tree, a), idem__tree_text(again, b)));
    } else if (a->kind == IDEM__TREE_NUMBER) {
        must(same_number(idem__tree_text(tree, a), idem__tree_text(again, b)));
    }
    for (i = number + 1; i < a->end; i = idem__tree_at(tree, i)->end) {
        if (a->kind == IDEM__TREE_OBJECT) {
            j = member_of(again, other,
                          idem__tree_name(tree, idem__tree_at(tree, i)));
        }
        means(tree, i, again, j);
        j = idem__tree_at(again, j)->end;
    }
}

/* ---- Another spelling ---- */

static void spell_number(struct idem__buffer *out, struct idem_slice text)
{
    struct number number;
    char tail[32];

    if (!take_apart(text, &number)) {
        idem__buffer_add(out, text.base, text.len);
        return;
    }
    (void)snprintf(tail, sizeof(tail), "0E%+lld", number.exponent - 1);
    idem__buffer_str(out, number.is_negative ? "-" : "");
    idem__buffer_add(out, number.digits, number.len);
    idem__buffer_str(out, tail);
    free(number.digits);
}

static void spell_unit(struct idem__buffer *out, uint32_t unit)
{
    char text[8];

    (void)snprintf(text, sizeof(text), "\\u%04X", unit);
    idem__buffer_str(out, text);
}

/* Each character by its number. */
static void spell_text(struct idem__buffer *out, struct idem_slice text)
{
    const uint8_t *p = text.base;
    const uint8_t *end = p + text.len;

    idem__buffer_str(out, "\"");
    while (p < end) {
        unsigned more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
        uint32_t c = more == 0 ? *p : *p & (0x3fu >> more);

        for (p++; more > 0; more--, p++) {
            c = c << 6 | (*p & 0x3f);
        }
        if (c >= 0x10000) {
            spell_unit(out, 0xd800 + ((c - 0x10000) >> 10));
            c = 0xdc00 + ((c - 0x10000) & 0x3ff);
        }
        spell_unit(out, c);
    }
    idem__buffer_str(out, "\"");
}

static void spell(struct idem__buffer *out, const struct idem__tree *tree,
                  uint32_t number);

/* Those of an object from the last to the first. */
static void spell_members(struct idem__buffer *out,
                          const struct idem__tree *tree, uint32_t number,
                          uint32_t end)
{
    const struct idem__tree_node *node = idem__tree_at(tree, number);

    if (node->named && node->end < end) {
        spell_members(out, tree, node->end, end);
        idem__buffer_str(out, ",");
    }
    if (node->named) {
        spell_text(out, idem__tree_name(tree, node));
        idem__buffer_str(out, " :");
    }
    spell(out, tree, number);
    if (!node->named && node->end < end) {
        idem__buffer_str(out, ",\n");
        spell_members(out, tree, node->end, end);
    }
}

static void spell(struct idem__buffer *out, const struct idem__tree *tree,
                  uint32_t number)
{
    const struct idem__tree_node *node = idem__tree_at(tree, number);
    bool is_array = node->kind == IDEM__TREE_ARRAY;

    if (node->kind == IDEM__TREE_STRING) {
        spell_text(out, idem__tree_text(tree, node));
    } else if (node->kind == IDEM__TREE_NUMBER) {
        spell_number(out, idem__tree_text(tree, node));
    } else if (!is_array && node->kind != IDEM__TREE_OBJECT) {
        struct idem_slice raw = idem__tree_raw(tree, node);

        idem__buffer_add(out, raw.base, raw.len);
    } else {
        idem__buffer_str(out, is_array ? "[" : "{");
        if (node->count > 0) {
            spell_members(out, tree, number + 1, node->end);
        }
        idem__buffer_str(out, is_array ? "]" : "}");
    }
}

/* @tree has the canonical text @text. */
static void is_text_of(const struct idem__tree *tree, struct idem_slice text)
{
    struct idem__buffer spelled = {NULL, 0, 0, false};
    struct idem__buffer other = {NULL, 0, 0, false};
    struct idem__tree again = {0};

    must(idem__tree_read(&again, text, NULL) == 0);
    means(tree, 0, &again, 0);
    idem__tree_free(&again);
    memset(&again, 0, sizeof(again));
    spell(&spelled, tree, 0);
    must(idem__tree_read(&again, idem__buffer_slice(&spelled), NULL) == 0);
    must(idem__canonical(&again, 0, IDEM_FLAVOUR_NONE, &other, NULL) == 0);
    must(same_bytes(idem__buffer_slice(&other), text));
    idem__tree_free(&again);
    idem__buffer_free(&spelled);
    idem__buffer_free(&other);
}

/* ---- Canonical texts ---- */

static void write_twice(const struct idem__tree *tree,
                        enum idem_flavour flavour)
{
    struct idem__buffer once = {NULL, 0, 0, false};
    struct idem__buffer twice = {NULL, 0, 0, false};
    struct idem__tree again = {0};
    int rc;

    if (idem__canonical(tree, 0, flavour, &once, NULL) == 0) {
        rc = idem__tree_read(&again, idem__buffer_slice(&once), NULL);
        /* Python's infinity is not JSON. */
        must(rc == 0 || flavour == IDEM_FLAVOUR_PYTHON);
        if (rc == 0) {
            must(idem__canonical(&again, 0, flavour, &twice, NULL) == 0);
            must(same_bytes(idem__buffer_slice(&once),
                            idem__buffer_slice(&twice)));
        }
        if (flavour == IDEM_FLAVOUR_NONE) {
            is_text_of(tree, idem__buffer_slice(&once));
        }
    }
    idem__tree_free(&again);
    idem__buffer_free(&once);
    idem__buffer_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct idem__tree tree = {0};
    uint32_t i;

    if (idem__tree_read(&tree, idem_bytes(data, len), NULL) == 0) {
        for (i = 0; i < idem__tree_len(&tree); i++) {
            check_node(&tree, i);
        }
        must(idem__tree_at(&tree, 0)->end == idem__tree_len(&tree));
        read_again(&tree);
        write_twice(&tree, IDEM_FLAVOUR_NONE);
        for (i = IDEM_FLAVOUR_NONE + 1;
             idem_flavour_name((enum idem_flavour)i) != NULL; i++) {
            write_twice(&tree, (enum idem_flavour)i);
        }
    }
    idem__tree_free(&tree);
    return 0;
}
