/* The values of a run: numbers of nodes, which are made within bounds. */
#ifndef IDEM_KEY_SELECTOR_VALUE_H
#define IDEM_KEY_SELECTOR_VALUE_H

#include "key/selector.h"

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

#endif
