/* Counts the answers to ops, for all stores. */
#ifndef IDEM_STORE_SHARED_TALLY_H
#define IDEM_STORE_SHARED_TALLY_H

#include "contract/parts.h"

/* Every counter, by its name in struct idem_counters. Meters have them in this
 * order: a new one goes to the end. */
#define IDEM__COUNTER_MAP(IDEM__X)                                             \
    IDEM__X(started)                                                           \
    IDEM__X(takeovers)                                                         \
    IDEM__X(completed)                                                         \
    IDEM__X(failed)                                                            \
    IDEM__X(unknown)                                                           \
    IDEM__X(released)                                                          \
    IDEM__X(replayed)                                                          \
    IDEM__X(busy)                                                              \
    IDEM__X(mismatch)                                                          \
    IDEM__X(lost)                                                              \
    IDEM__X(resolved)                                                          \
    IDEM__X(purged)                                                            \
    IDEM__X(retried)

enum idem__counter {
#define IDEM__X(name) IDEM__COUNTER_##name,
    IDEM__COUNTER_MAP(IDEM__X)
#undef IDEM__X
    IDEM__COUNTERS,
};

struct idem__tally {
    uint64_t n[IDEM__COUNTERS];
};

extern const char *const idem__counter_names[IDEM__COUNTERS];

/* Counts the answer of @op. */
void idem__tally_op(struct idem__tally *tally, const struct idem_op *op);

/* Answers an IDEM_OP_COUNT. */
void idem__tally_answer(const struct idem__tally *tally, struct idem_op *op);

#endif
