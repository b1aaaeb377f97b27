/* Shows a person what is wrong with a history. */
#ifndef HISTORY_EXPLAIN_H
#define HISTORY_EXPLAIN_H

#include "search.h"

/* Prints to stdout why @key's @ops cannot be explained: the first answer that no order
 * explains, and the earlier answers that contradict it. */
void explain(const struct history *h, word key, const struct op *const *ops,
             size_t len, uint64_t budget);

#endif
