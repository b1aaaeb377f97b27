/* What is read of the JSON of an event is what json-c reads of it. It lies within
 * the text, no name is there twice, and the canonical text that it has, ours or
 * of a flavour, is its own canonical text.
 */
#include "fuzz.h"
#include "key/canonical.h"
#include "key/tree.h"

#include <idem/key.h>
#include <json-c/json.h>

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
