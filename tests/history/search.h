/* The search: does an order of the operations, one after the other, explain every answer?
 * This is the algorithm of Wing and Gong, with Lowe's memory of what was tried. */
#ifndef HISTORY_SEARCH_H
#define HISTORY_SEARCH_H

#include "spec.h"

enum found {
    FOUND_ORDER,   /* There is one. */
    FOUND_NONE,    /* There is none: something is wrong. */
    FOUND_TOO_HARD /* Not known: the budget was spent. */
};

/* The result of a search. */
struct search {
    enum found found;
    uint64_t tried;      /* States that were met. */
    struct state stuck;  /* FOUND_NONE: the state after the longest order, */
    const struct op *op; /* and the op that had to come next, at the latest. */
};

/* Searches among the ops of @key that @ops lists, in the order of their calls;
 * gives up after @budget states. */
void search(const struct history *h, const struct op *const *ops, size_t len,
            uint64_t budget, struct search *ret_search);

#endif
