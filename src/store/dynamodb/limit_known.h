/* What this handle knows of the shards of windows: upper bounds of what is left.
 *
 * Nothing that is decided relies on how new it is: a bound is never too low. */
#ifndef IDEM_STORE_DYNAMODB_LIMIT_KNOWN_H
#define IDEM_STORE_DYNAMODB_LIMIT_KNOWN_H

#include "store/dynamodb/limit_request.h"

struct idem__limit_bounds {
    uint8_t window[IDEM_ID_LEN];
    bool is_used;
    bool was_read;
    int64_t read_boot_ms; /* When the shards were read last. */
    uint64_t left[IDEM__LIMIT_SHARDS_MAX];
    uint64_t refusals;
};

struct idem__limit_known;

/* NULL: no memory. */
struct idem__limit_known *idem__limit_known_create(void);
void idem__limit_known_destroy(struct idem__limit_known *known);

/* The bounds of @op's window; those of another window give way. Valid until the
 * next call. */
struct idem__limit_bounds *idem__limit_known_of(struct idem__limit_known *known,
                                                const struct idem_op *op);

/* Shard @shard has @left. */
void idem__limit_bounds_lower(struct idem__limit_bounds *bounds, unsigned shard,
                              uint64_t left);

uint64_t idem__limit_bounds_sum(const struct idem__limit_bounds *bounds);

/* From which shards to take @cost, which is at most the sum: from one if there is
 * one that has it, beginning with @first. */
void idem__limit_bounds_plan(const struct idem__limit_bounds *bounds,
                             unsigned shards, unsigned first, uint64_t cost,
                             uint64_t ret_takes[IDEM__LIMIT_SHARDS_MAX]);

#endif
