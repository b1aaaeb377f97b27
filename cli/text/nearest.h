/* nearest.h: what somebody who mistyped may have meant. */
#ifndef IDEM_CLI_TEXT_NEAREST_H
#define IDEM_CLI_TEXT_NEAREST_H

#include <stddef.h>

/* Zeroed but for @word; offer it words, then look at @best. */
struct cli_nearest {
    const char *word;
    const char *best; /* NULL: none is near. */
    size_t distance;
};
void cli_nearest_offer(struct cli_nearest *nearest, const char *candidate);

#endif
