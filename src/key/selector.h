/* Compiles selectors, a small subset of jq's language, and runs them over a tree.
 *
 *     selector  = list { "|" list }
 *     list      = choice { "," choice }
 *     choice    = sum [ "//" choice ]
 *     sum       = term { "+" term }              joins texts
 *     term      = start { step [ "?" ] } [ "?" ]
 *     start     = "." | step | literal | text | "[" [ selector ] "]"
 *               | "(" selector ")" | "del" "(" paths ")"
 *               | "fromjson" | "tostring" | "ascii_downcase" | "@base64d"
 *     step      = "." NAME | "." STRING | [ "." ] "[" STRING | INTEGER | "" "]"
 *
 * A text may contain "\( selector )". The compiler turns it into a chain of sums, and a
 * chain of steps into a chain of pipes, so that the compiled form has few kinds of
 * parts.
 *
 * A value is the number of its node: a run adds the values that it makes to the tree of
 * its input, and they go with that tree. docs/selectors.md describes each part, and
 * where it differs from jq.
 */
#ifndef IDEM_KEY_SELECTOR_H
#define IDEM_KEY_SELECTOR_H

#include "key/tree.h"

#include <idem/key.h>

enum {
    IDEM__SELECTOR_LEN_MAX = 4096,
    IDEM__SELECTOR_DEPTH_MAX = 32,      /* Of nested brackets. */
    IDEM__SELECTOR_NODES_MAX = 1 << 20, /* Of the input, and made by the run. */
    IDEM__SELECTOR_TEXT_MAX = 1 << 26,  /* Bytes of the tree's texts. */
    IDEM__SELECTOR_STEPS_MAX =
        1 << 22, /* Of one run: see idem__value_charge(). */
};

enum idem__part_kind {
    IDEM__PART_THIS = 1, /* . */
    IDEM__PART_MEMBER,   /* .a: text */
    IDEM__PART_INDEX,    /* .[0]: index */
    IDEM__PART_EACH,     /* .[] */
    IDEM__PART_LITERAL,  /* literal; text if it is a string or number */
    IDEM__PART_FROMJSON,
    IDEM__PART_BASE64D,
    IDEM__PART_DOWNCASE,
    IDEM__PART_TOSTRING,
    IDEM__PART_TRY,   /* a? */
    IDEM__PART_DEL,   /* del(a) */
    IDEM__PART_LIST,  /* [a]; a is 0 if it is empty */
    IDEM__PART_PIPE,  /* a | b */
    IDEM__PART_COMMA, /* a, b */
    IDEM__PART_ELSE,  /* a // b */
    IDEM__PART_JOIN,  /* a + b */
};

struct idem__part {
    enum idem__part_kind kind;
    enum idem__tree_kind literal;
    uint32_t a; /* Numbers of parts; the first part is 1. */
    uint32_t b;
    int32_t index;
    uint32_t text;
    uint32_t text_len;
    uint32_t values; /* How many values it gives if each [] gives one. */
    bool path;       /* Only steps, so that del() takes it. */
};

struct idem_selector {
    struct idem__buffer parts;
    struct idem__buffer text; /* Names and literals. */
    uint32_t root;

    /* The state of the last run. */
    struct idem__tree tree;
    struct idem__buffer values; /* uint32_t: the numbers of nodes. */
    struct idem__buffer scratch;
    struct idem__buffer output;
    uint32_t null; /* The node that stands for a missing value. */
    uint32_t steps;
    bool final;  /* Neither ? nor // may catch the failure. */
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

/* Resets the state for the next run, whose input the caller then adds to
 * selector->tree. */
void idem__selector_reset(struct idem_selector *selector);

/* Runs over node 0 of selector->tree, and leaves the selected values in
 * selector->values. Returns the errors of idem_selector_run(). */
int idem__selector_run(struct idem_selector *selector,
                       struct idem_error *ret_error);

/* Shortens a key of more than IDEM_KEY_MAX bytes to its beginning, for people, and the
 * digest of the whole. Returns 0 or IDEM_ENOMEM. */
int idem__key_shorten(struct idem__buffer *key, struct idem_error *ret_error);

/* ---- selector_value.c ---- */

/* The values of a run are numbers of nodes. The functions below make them within the
 * bounds. */

enum {
    IDEM__VALUE_KEEP = 64 * 1024,    /* Memory to keep for the next run. */
    IDEM__VALUE_BYTES_PER_STEP = 16, /* Of a text that is copied. */
};

/* ---- Failures: each returns its code -------------------------------------- */

/* Fails in a way that ? does not catch: either jq would have a value here, and an
 * alternative in its place would become the key of another operation; or the failure
 * says nothing about the input. @why may be NULL. */
int idem__value_fail(struct idem_selector *s, int code, const char *why);
int idem__value_no_memory(struct idem_selector *s);

/* Charges @steps to the run. A step is a part that is run, a node that is read or made,
 * or some bytes of a text.
 *
 * IDEM_EINVALID  The run has taken too many steps, or has made too much.
 */
int idem__value_charge(struct idem_selector *s, size_t steps);

/* ---- Values -------------------------------------------------------------- */

static inline const struct idem__tree_node *idem__value_node(
    const struct idem_selector *s, uint32_t number)
{
    return idem__tree_at(&s->tree, number);
}

/* Adds the node @number to the values of the run. */
int idem__value_give(struct idem_selector *s, uint32_t number);

/* Adds @node, which has no children yet, to the tree. */
int idem__value_make(struct idem_selector *s, struct idem__tree_node node,
                     uint32_t *ret_number);

/* Returns the kind of @node for a message: "a text" ... */
const char *idem__value_kind(const struct idem__tree_node *node);

/* ---- Texts: each adds a value, made from a part or from other values ------ */

int idem__value_literal(struct idem_selector *s, const struct idem__part *part);
int idem__value_to_text(struct idem_selector *s, uint32_t input);
int idem__value_join(struct idem_selector *s, uint32_t left, uint32_t right);
int idem__value_downcase(struct idem_selector *s, uint32_t input);
int idem__value_of_json(struct idem_selector *s, uint32_t input);
int idem__value_of_base64(struct idem_selector *s, uint32_t input);

/* ---- selector_reader.c ---- */

/* Reads the signs and words of a selector, refuses others, and adds parts to the
 * compiled form. The reader keeps the first failure, after which every function does
 * nothing. */

struct idem__reader {
    struct idem_selector *selector;
    const char *text;
    const char *at;
    unsigned depth;
    int rc; /* The first failure. */
    struct idem_error *error;
};

/* ---- Signs and words ----------------------------------------------------- */

bool idem__reader_is_name(char c, bool first);

/* Returns the length of the name, or of the sign, at @p. */
size_t idem__reader_word_len(const char *p);

/* Skips blanks and comments. */
void idem__reader_skip(struct idem__reader *r);

/* Takes @sign if it is next, and returns whether it was. */
bool idem__reader_take(struct idem__reader *r, const char *sign);

/* Takes @sign, or refuses the selector: @named is expected here. */
void idem__reader_want(struct idem__reader *r, const char *sign,
                       const char *named);

/* ---- Refusing: returns 0, the number of no part ---------------------------- */

/* Refuses the selector because of @what, at @at. */
uint32_t idem__reader_refuse(struct idem__reader *r, const char *at,
                             const char *what);

/* Refuses the selector because of its next word, where @expected should be. */
uint32_t idem__reader_refuse_word(struct idem__reader *r, const char *expected);

/* ---- Parts: each returns the number of the part, or 0 after a failure ------ */

uint32_t idem__reader_add(struct idem__reader *r, struct idem__part part);
uint32_t idem__reader_add_one(struct idem__reader *r,
                              enum idem__part_kind kind);
uint32_t idem__reader_add_two(struct idem__reader *r, enum idem__part_kind kind,
                              uint32_t a, uint32_t b);

/* a?, del(a), [a] */
uint32_t idem__reader_add_around(struct idem__reader *r,
                                 enum idem__part_kind kind, uint32_t a);

/* Adds a part with the text that selector->text has from byte @from on. */
uint32_t idem__reader_add_text(struct idem__reader *r,
                               enum idem__part_kind kind,
                               enum idem__tree_kind literal, size_t from);

/* ---- selector_request.c: an HTTP request as a tree ---- */

/* Adds the tree that idem_selector_run_request() describes to an empty @tree.
 *
 * IDEM_EINVALID  The name of an argument or header is not UTF-8, or the body is too
 *                long.
 * IDEM_ENOMEM
 */
int idem__request_tree(const struct idem_selector_request *request,
                       struct idem__tree *tree, struct idem_error *ret_error);

/* Replaces the header Idempotency-Key in .headers of node 0, if it is there, by the key
 * that idem_http_key() reads from it, with the name in lower case.
 *
 * IDEM_EINVALID  The header is not a key, or there are two different keys.
 * IDEM_ENOMEM
 */
int idem__request_read_key(struct idem__tree *tree,
                           struct idem_error *ret_error);

#endif
