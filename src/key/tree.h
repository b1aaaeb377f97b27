/* Reads a JSON text into a list of nodes that keeps details which other readers lose.
 *
 * json-c and jq take the last of two members with one name, and round numbers. A key
 * that is made from a text must do neither: this reader refuses a text that two readers
 * would understand differently, and keeps the digits of numbers.
 *
 * The nodes are in the order of the text: the nodes inside an array or object follow
 * it, up to its end.
 */
#ifndef IDEM_KEY_TREE_H
#define IDEM_KEY_TREE_H

#include "base/bytes.h"

enum {
    IDEM__TREE_LEN_MAX = 16 * 1024 * 1024,
    IDEM__TREE_DEPTH_MAX = 200,
};

enum idem__tree_kind {
    IDEM__TREE_NULL = 1,
    IDEM__TREE_FALSE,
    IDEM__TREE_TRUE,
    IDEM__TREE_NUMBER,
    IDEM__TREE_STRING,
    IDEM__TREE_ARRAY,
    IDEM__TREE_OBJECT,
};

struct idem__tree_node {
    enum idem__tree_kind kind;
    uint32_t from; /* Where it begins in the text ... */
    uint32_t to;
    uint32_t end;   /* The number of the node after its last descendant. */
    uint32_t count; /* How many values it has directly in it. */
    uint32_t
        text; /* Where tree.text has the bytes of a string, without escapes and
                 with a NUL after them; or the digits of a number. */
    uint32_t text_len;
    uint32_t name; /* Where tree.text has the name of a member. */
    uint32_t name_len;
    bool named; /* It is a member of an object. */
    bool made;  /* An array that a selector made. */
};

struct idem__tree {
    struct idem_slice json;
    struct idem__buffer nodes;
    struct idem__buffer text; /* Of strings, names and numbers. */
    uint32_t nodes_max;       /* 0: no limit. */
    uint32_t len_max;         /* Bytes of a text; 0: IDEM__TREE_LEN_MAX. */
    bool halves;              /* A string has half a surrogate pair, in three
                                 bytes that are not UTF-8. */
    bool twins;               /* Refused because an object has a name twice. */
};

/* Reads @json into a zeroed @tree, which points into @json.
 *
 * IDEM_EINVALID  @json is not JSON, has a name twice in one object, or is too long or
 *                too deep. The sentence has line and column.
 * IDEM_ENOMEM
 */
int idem__tree_read(struct idem__tree *tree, struct idem_slice json,
                    struct idem_error *ret_error);
void idem__tree_free(struct idem__tree *tree);

/* Empties a tree, so that it can be read or built again. */
void idem__tree_reset(struct idem__tree *tree);

/* Adds the nodes of another text. *@ret_number is the number of the first; on failure
 * nothing is added. from and to are places in @json, which is not needed afterwards.
 * The errors of idem__tree_read(). */
int idem__tree_add(struct idem__tree *tree, struct idem_slice json,
                   uint32_t *ret_number, struct idem_error *ret_error);

static inline const struct idem__tree_node *idem__tree_at(
    const struct idem__tree *tree, uint32_t number)
{
    return (const struct idem__tree_node *)(const void *)tree->nodes.base +
           number;
}

static inline uint32_t idem__tree_len(const struct idem__tree *tree)
{
    return (uint32_t)(tree->nodes.len / sizeof(struct idem__tree_node));
}

/* True if the value is null, or an array or object with only nulls in it. */
bool idem__tree_is_null(const struct idem__tree *tree, uint32_t number);

/* Returns the value of a hexadecimal digit, in either case; -1 if @c is not one. */
int idem__hex_value(char c);

/* Returns the bytes of a value as they are in the text. */
static inline struct idem_slice idem__tree_raw(
    const struct idem__tree *tree, const struct idem__tree_node *node)
{
    return idem_bytes((const uint8_t *)tree->json.base + node->from,
                      node->to - node->from);
}

static inline struct idem_slice idem__tree_text(
    const struct idem__tree *tree, const struct idem__tree_node *node)
{
    return idem_bytes(tree->text.base + node->text, node->text_len);
}

static inline struct idem_slice idem__tree_name(
    const struct idem__tree *tree, const struct idem__tree_node *node)
{
    return idem_bytes(tree->text.base + node->name, node->name_len);
}

#endif
