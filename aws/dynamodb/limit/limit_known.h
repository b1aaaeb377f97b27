/* This handle's knowledge of the shards of windows: lower bounds of what was
 * taken from each, and so upper bounds of what is left.
 *
 * Each shard has its share of the limit. Where a larger limit of before took more
 * from a shard than that, the excess is taken off the shares of the others: all
 * shares together are the limit. Taking within the shares changes none of them, so
 * that all handles know the same ones. The requests that a small limit took
 * before or beside it are taken off all shares likewise. Nothing that is
 * decided relies on how new a bound is but this: a handle that has not read an
 * excess yet, for BOUNDS_MS, may admit so much more. */
#ifndef IDEM_AWS_DYNAMODB_LIMIT_LIMIT_KNOWN_H
#define IDEM_AWS_DYNAMODB_LIMIT_LIMIT_KNOWN_H

#include "aws/dynamodb/limit/limit_request.h"

struct idem__limit_bounds {
    uint8_t window[IDEM_ID_LEN];
    bool is_used;
    bool was_read;
    int64_t read_boot_ms; /* When the shards were read last. */
    uint64_t used[IDEM__LIMIT_SHARDS_MAX];
    uint64_t refusals;
    bool is_marked;      /* Small limits know that there are shards. */
    bool has_small;      /* A small limit counted in this window, */
    uint64_t small_used; /* and took this. */
};

struct idem__limit_known;

/* NULL: no memory. */
struct idem__limit_known *idem__limit_known_create(void);
void idem__limit_known_destroy(struct idem__limit_known *known);

/* The bounds of @op's window; those of another window give way. Valid until the
 * next call. */
struct idem__limit_bounds *idem__limit_known_of(struct idem__limit_known *known,
                                                const struct idem_op *op);

/* True if @op's window is known to have shards; nothing gives way. */
bool idem__limit_known_is_marked(const struct idem__limit_known *known,
                                 const struct idem_op *op);

/* The facts of the window in the item of small limits. */
void idem__limit_bounds_see(struct idem__limit_bounds *bounds,
                            const struct idem_limit_state *small, bool big);

/* From shard @shard @used was taken. */
void idem__limit_bounds_raise(struct idem__limit_bounds *bounds, unsigned shard,
                              uint64_t used);

/* The number that may be taken from each shard until the end of the window,
 * those taken included. */
void idem__limit_bounds_shares(const struct idem__limit_bounds *bounds,
                               const struct idem_limit_request *limit,
                               uint64_t ret_shares[IDEM__LIMIT_SHARDS_MAX]);

/* The number left in all shards. */
uint64_t idem__limit_bounds_left(const struct idem__limit_bounds *bounds,
                                 const uint64_t shares[IDEM__LIMIT_SHARDS_MAX]);

/* From which shards to take @cost, which is at most what is left: from one if there
 * is one that has it, beginning with @first. */
void idem__limit_bounds_plan(const struct idem__limit_bounds *bounds,
                             const uint64_t shares[IDEM__LIMIT_SHARDS_MAX],
                             unsigned shards, unsigned first, uint64_t cost,
                             uint64_t ret_takes[IDEM__LIMIT_SHARDS_MAX]);

#endif
