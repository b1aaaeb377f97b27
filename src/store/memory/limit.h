/* Counts requests against rate limits, in memory. */
#ifndef IDEM_STORE_MEMORY_LIMIT_H
#define IDEM_STORE_MEMORY_LIMIT_H

#include "contract/store.h"

/* Zeroed: empty. */
struct idem__memory_limits {
    /* A ring; this window is the next to be checked for expiry. */
    struct idem__memory_window *windows;
    struct idem__memory_entry **buckets;
    size_t buckets_len; /* A power of two, or 0. */
    size_t len;
};

/* Counts a request. */
void idem__memory_limit(struct idem__memory_limits *limits, struct idem_op *op,
                        const struct idem_now *now);

/* Frees the windows that have expired. */
void idem__memory_limits_purge(struct idem__memory_limits *limits,
                               const struct idem_now *now);

void idem__memory_limits_finish(struct idem__memory_limits *limits);

#endif
