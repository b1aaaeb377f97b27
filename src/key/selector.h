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

/* ---- selector_value.c ---- */

/* The values of a run: numbers of nodes, which are made within bounds. */

enum {
    IDEM__VALUE_KEEP = 64 * 1024,    /* Memory that stays for the next run. */
    IDEM__VALUE_BYTES_PER_STEP = 16, /* Of a text that is moved. */
};

/* ---- Failures, all of which return their code ---------------------------- */

/* A failure that ? does not pass over: jq would have a value here, and another one in
 * its place would be the key of something else; or this says nothing of the input. @why
 * may be NULL. */
int idem__value_fail(struct idem_selector *s, int code, const char *why);
int idem__value_no_memory(struct idem_selector *s);

/* Counts @steps of the run: a step is a part that is run, a node that is looked at or
 * made, or some bytes of a text. IDEM_EINVALID: the run has taken too many, or has made
 * too much. */
int idem__value_charge(struct idem_selector *s, size_t steps);

/* ---- Values -------------------------------------------------------------- */

static inline const struct idem__tree_node *idem__value_node(
    const struct idem_selector *s, uint32_t number)
{
    return idem__tree_at(&s->tree, number);
}

/* Adds the node @number to the values of the run. */
int idem__value_give(struct idem_selector *s, uint32_t number);

/* Adds @node, which has nothing in it yet, to the tree. */
int idem__value_make(struct idem_selector *s, struct idem__tree_node node,
                     uint32_t *ret_number);

/* "a text", for errors. */
const char *idem__value_kind(const struct idem__tree_node *node);

/* ---- Texts: each gives a value made of a part, or of other values --------- */

int idem__value_literal(struct idem_selector *s, const struct idem__part *part);
int idem__value_to_text(struct idem_selector *s, uint32_t input);
int idem__value_join(struct idem_selector *s, uint32_t left, uint32_t right);
int idem__value_downcase(struct idem_selector *s, uint32_t input);
int idem__value_of_json(struct idem_selector *s, uint32_t input);
int idem__value_of_base64(struct idem_selector *s, uint32_t input);

/* ---- selector_reader.c ---- */

/* Reading a selector: its signs and words, what is refused, and the parts that are added
 * to the compiled form. A failure is kept, and everything after it does nothing. */

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

/* The length of a name, or of the signs up to the next one. */
size_t idem__reader_word_len(const char *p);

void idem__reader_skip(struct idem__reader *r);

/* Takes @sign, if it is the next one. */
bool idem__reader_take(struct idem__reader *r, const char *sign);

/* Takes @sign; if another one is next, refuses that: @named is expected. */
void idem__reader_want(struct idem__reader *r, const char *sign,
                       const char *named);

/* ---- Refusing: 0, as for a part that is missing --------------------------- */

/* @what is the fault at @at. */
uint32_t idem__reader_refuse(struct idem__reader *r, const char *at,
                             const char *what);

/* The next word is not part of a selector; @expected is. */
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

/* A part with the text that was added to selector->text since it had @from bytes. */
uint32_t idem__reader_add_text(struct idem__reader *r,
                               enum idem__part_kind kind,
                               enum idem__tree_kind literal, size_t from);

/* ---- selector_request.c: an HTTP request as a tree ---- */

/* Adds what idem_selector_run_request() describes to an empty @tree.
 *
 * IDEM_EINVALID  The name of an argument or header is not UTF-8, or the body is
 *                too long.
 * IDEM_ENOMEM
 */
int idem__request_tree(const struct idem_selector_request *request,
                       struct idem__tree *tree, struct idem_error *ret_error);

/* Reads the header Idempotency-Key in .headers of the node 0, if it is there, as
 * idem_http_key() does: its name is in lower case then, and its value the key.
 *
 * IDEM_EINVALID  It is not a key, or there are two that differ.
 * IDEM_ENOMEM
 */
int idem__request_read_key(struct idem__tree *tree,
                           struct idem_error *ret_error);

#endif
