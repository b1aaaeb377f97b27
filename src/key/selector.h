/* Selectors: a small part of jq's language, over a tree.
 *
 *     selector  = list { "|" list }
 *     list      = choice { "," choice }
 *     choice    = sum [ "//" choice ]
 *     sum       = term { "+" term }              texts, one after the other
 *     term      = start { step [ "?" ] } [ "?" ]
 *     start     = "." | step | literal | text | "[" [ selector ] "]"
 *               | "(" selector ")" | "del" "(" paths ")"
 *               | "fromjson" | "tostring" | "ascii_downcase" | "@base64d"
 *     step      = "." NAME | "." STRING | [ "." ] "[" STRING | INTEGER | "" "]"
 *
 * A text may have "\( selector )" in it. It becomes a chain of sums, and a chain of
 * steps one of pipes, so that the compiled form has few kinds.
 *
 * A value is the number of its node: what a selector makes is added to the tree of
 * its input, and gone with it. docs/selectors.md has what each part means, and
 * where it differs from jq.
 */
#ifndef IDEM_KEY_SELECTOR_H
#define IDEM_KEY_SELECTOR_H

#include "key/tree.h"

#include <idem/key.h>

enum {
    IDEM__SELECTOR_LEN_MAX = 4096,
    IDEM__SELECTOR_DEPTH_MAX = 32,      /* Of brackets in brackets. */
    IDEM__SELECTOR_NODES_MAX = 1 << 20, /* Of a text, and of what is made. */
    IDEM__SELECTOR_TEXT_MAX = 1 << 26,  /* Bytes of the tree's texts. */
    IDEM__SELECTOR_STEPS_MAX =
        1 << 22, /* Of one run: see idem__value_charge(). */
};

enum idem__part_kind {
    IDEM__PART_THIS = 1, /* . */
    IDEM__PART_MEMBER,   /* .a: text */
    IDEM__PART_INDEX,    /* .[0]: index */
    IDEM__PART_EACH,     /* .[] */
    IDEM__PART_LITERAL,  /* literal; text where it is a string or number */
    IDEM__PART_FROMJSON,
    IDEM__PART_BASE64D,
    IDEM__PART_DOWNCASE,
    IDEM__PART_TOSTRING,
    IDEM__PART_TRY,   /* a? */
    IDEM__PART_DEL,   /* del(a) */
    IDEM__PART_LIST,  /* [a]; a is 0 where it is empty */
    IDEM__PART_PIPE,  /* a | b */
    IDEM__PART_COMMA, /* a, b */
    IDEM__PART_ELSE,  /* a // b */
    IDEM__PART_JOIN,  /* a + b */
};

struct idem__part {
    enum idem__part_kind kind;
    enum idem__tree_kind literal;
    uint32_t a; /* Other parts; the first one is 1. */
    uint32_t b;
    int32_t index;
    uint32_t text;
    uint32_t text_len;
    uint32_t values; /* So many come of it, where each [] gives one. */
    bool path;       /* Nothing but steps: del() takes it. */
};

struct idem_selector {
    struct idem__buffer parts;
    struct idem__buffer text; /* Names and literals. */
    uint32_t root;

    /* Of the last run. */
    struct idem__tree tree;
    struct idem__buffer values; /* uint32_t: the numbers of nodes. */
    struct idem__buffer scratch;
    struct idem__buffer output;
    uint32_t null; /* A node for what is not there. */
    uint32_t steps;
    bool final;  /* The failure is one that neither ? nor // passes over. */
    bool packed; /* The body of the request is compressed. */
    struct idem_error error;
};

static inline const struct idem__part *idem__part_at(
    const struct idem_selector *selector, uint32_t number)
{
    return (const struct idem__part *)(const void *)selector->parts.base +
           number - 1;
}

/* Compiles @text into a zeroed @selector. IDEM_EINVALID, IDEM_ENOMEM */
int idem__selector_compile(struct idem_selector *selector, const char *text,
                           struct idem_error *ret_error);

/* Empties the tree for the input of the next run. */
void idem__selector_reset(struct idem_selector *selector);

/* Runs over the node 0 of selector->tree; what comes of it is in selector->values.
 * The errors of idem_selector_run(). */
int idem__selector_run(struct idem_selector *selector,
                       struct idem_error *ret_error);

/* Makes a key that is too long one of its head, for people, and the digest of all.
 * IDEM_ENOMEM */
int idem__key_shorten(struct idem__buffer *key, struct idem_error *ret_error);

#endif
