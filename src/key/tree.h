/* A JSON text as a list of nodes that keeps what other readers lose.
 *
 * json-c and jq take the last of two members with one name, and round numbers. A
 * key that is made of a text must do neither: what two readers understand
 * differently is refused, and numbers keep their digits.
 *
 * The nodes are in the order of the text: what an array or object holds follows
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
    uint32_t from; /* Its place in the text ... */
    uint32_t to;
    uint32_t end;   /* The number of the node after its last one. */
    uint32_t count; /* Of the values right in it. */
    uint32_t
        text; /* A string: where its bytes are, without escapes and with a NUL
                     * after them; a number: its digits as they were ... */
    uint32_t text_len;
    uint32_t name; /* A member's name: likewise. */
    uint32_t name_len;
    bool named; /* It is a member. */
    bool made;  /* An array that no text had: a selector made it. */
};

struct idem__tree {
    struct idem_slice json;
    struct idem__buffer nodes;
    struct idem__buffer text; /* Of strings, names and numbers. */
    uint32_t nodes_max;       /* 0: as many as there are. */
    uint32_t len_max;         /* Bytes of a text; 0: IDEM__TREE_LEN_MAX. */
    bool halves;              /* A string has half a surrogate pair: as three
                               * bytes, which UTF-8 does not know. */
    bool twins;               /* An object was refused that has a name twice. */
};

/* Reads @json into a zeroed @tree, which points into it.
 *
 * IDEM_EINVALID  It is no JSON, has a name twice in one object, is too long or
 *                too deep. The sentence has line and column.
 * IDEM_ENOMEM
 */
int idem__tree_read(struct idem__tree *tree, struct idem_slice json,
                    struct idem_error *ret_error);
void idem__tree_free(struct idem__tree *tree);

/* Empties a tree that is read or built anew. */
void idem__tree_reset(struct idem__tree *tree);

/* Adds the nodes of one more text, the first of which is *@ret_number; on failure
 * none. from and to are places in @json, which is not needed afterwards. The
 * errors of idem__tree_read(). */
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

/* True for nulls alone, in arrays and objects or not. */
bool idem__tree_is_null(const struct idem__tree *tree, uint32_t number);

/* The value of a hexadecimal digit, in either case; -1: it is not one. */
int idem__hex_value(char c);

/* The bytes of a value as they are in the text. */
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
