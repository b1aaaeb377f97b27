/* The search: is there an order of the operations, one after the other, that
 * explains every answer? After Wing and Gong, with Lowe's memory of what was
 * tried. */
#ifndef HISTORY_SEARCH_H
#define HISTORY_SEARCH_H

#include "spec.h"

enum found {
    FOUND_ORDER,   /* There is one. */
    FOUND_NONE,    /* There is none: something is wrong. */
    FOUND_TOO_HARD /* Not known: the budget was spent. */
};

/* What came of it. */
struct search {
    enum found found;
    uint64_t tried;      /* States that were met. */
    struct state stuck;  /* FOUND_NONE: where the longest order ends, */
    const struct op *op; /* and what had to come next, at the latest. */
};

/* Searches among the ops of @key that @ops lists, in the order of their calls;
 * gives up after @budget states. */
void search(const struct history *h, const struct op *const *ops, size_t len,
            uint64_t budget, struct search *ret_search);

#endif
