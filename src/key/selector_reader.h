/* Reading a selector: its signs and words, what is refused, and the parts that are added
 * to the compiled form. A failure is kept, and everything after it does nothing. */
#ifndef IDEM_KEY_SELECTOR_READER_H
#define IDEM_KEY_SELECTOR_READER_H

#include "key/selector.h"

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

#endif
