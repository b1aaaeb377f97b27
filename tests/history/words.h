/* Words, each kept once and known by a number. */
#ifndef HISTORY_WORDS_H
#define HISTORY_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t word;

enum {
    WORD_NONE = 0
};

struct words {
    char **texts; /* By number, from 1. */
    size_t len;
    size_t cap;
    word *table; /* By hash. */
    size_t table_len;
    uint32_t *tags; /* By number: the caller's own, 0 at first. */
};

void words_init(struct words *words);
void words_finish(struct words *words);

/* Returns the number of @text, which it adds if it is new. */
word words_add(struct words *words, const char *text);

/* Returns the text of @w; "-" for WORD_NONE. */
const char *words_text(const struct words *words, word w);

#endif
