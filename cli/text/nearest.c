/* The nearest word: what somebody who mistyped may have meant. */
#include "text/nearest.h"

#include <string.h>

#define WORD_MAX 32

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* How many letters must be put in, taken out, changed or swapped with their
 * neighbour to make @b of @a. @table[i][j] is that for the first i letters of
 * @a and the first j of @b. */
static size_t edit_distance(const char *a, size_t a_len, const char *b,
                            size_t b_len)
{
    size_t table[WORD_MAX + 1][WORD_MAX + 1];
    size_t i;
    size_t j;

    for (i = 0; i <= a_len; i++) {
        table[i][0] = i;
    }
    for (j = 0; j <= b_len; j++) {
        table[0][j] = j;
    }
    for (i = 1; i <= a_len; i++) {
        for (j = 1; j <= b_len; j++) {
            table[i][j] = min3(table[i - 1][j] + 1, table[i][j - 1] + 1,
                               table[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1] && table[i - 2][j - 2] < table[i][j]) {
                table[i][j] = table[i - 2][j - 2] + 1;
            }
        }
    }
    return table[a_len][b_len];
}

void cli_nearest_offer(struct cli_nearest *nearest, const char *candidate)
{
    size_t word_len = strlen(nearest->word);
    size_t len = strlen(candidate);
    size_t distance;

    if (word_len > WORD_MAX || len > WORD_MAX) {
        return;
    }
    distance = edit_distance(nearest->word, word_len, candidate, len);
    if (word_len > 1 && strncmp(nearest->word, candidate, word_len) == 0) {
        distance = 1; /* The beginning of it was typed. */
    }
    if (distance > (len > 4 ? 2 : 1) ||
        (nearest->best != NULL && distance >= nearest->distance)) {
        return;
    }
    nearest->best = candidate;
    nearest->distance = distance;
}
