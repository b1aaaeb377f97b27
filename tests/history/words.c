/* A table of texts, by hash. */
#include "words.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *block)
{
    if (block == NULL) {
        abort();
    }
    return block;
}

void words_init(struct words *words)
{
    memset(words, 0, sizeof(*words));
    words->table_len = 64;
    words->table = must(calloc(words->table_len, sizeof(word)));
}

void words_finish(struct words *words)
{
    size_t i;

    for (i = 1; i <= words->len; i++) {
        free(words->texts[i]);
    }
    free(words->texts);
    free(words->tags);
    free(words->table);
}

/* Returns the slot in which @text is or would be. */
static word *find(const struct words *words, const char *text)
{
    size_t at = 5381;
    const char *p;

    for (p = text; *p != '\0'; p++) {
        at = at * 33 + (unsigned char)*p;
    }
    for (;; at++) {
        word *w = &words->table[at & (words->table_len - 1)];

        if (*w == WORD_NONE || strcmp(words->texts[*w], text) == 0) {
            return w;
        }
    }
}

static void grow(struct words *words)
{
    size_t i;

    if (words->len + 1 >= words->cap) {
        words->cap = words->cap == 0 ? 64 : words->cap * 2;
        words->texts = must(realloc(words->texts, words->cap * sizeof(char *)));
        words->tags = must(realloc(words->tags, words->cap * sizeof(uint32_t)));
    }
    if ((words->len + 1) * 2 < words->table_len) {
        return;
    }
    free(words->table);
    words->table_len *= 2;
    words->table = must(calloc(words->table_len, sizeof(word)));
    for (i = 1; i <= words->len; i++) {
        *find(words, words->texts[i]) = (word)i;
    }
}

word words_add(struct words *words, const char *text)
{
    word *w;

    grow(words);
    w = find(words, text);
    if (*w == WORD_NONE) {
        *w = (word)++words->len;
        words->texts[*w] = must(strdup(text));
        words->tags[*w] = 0;
    }
    return *w;
}

const char *words_text(const struct words *words, word w)
{
    return w == WORD_NONE ? "-" : words->texts[w];
}
