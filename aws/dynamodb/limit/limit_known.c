/* This handle's knowledge of the shards of windows. */
#include "aws/dynamodb/limit/limit_known.h"

#include "base/heap.h"

enum {
    PLACES = 256 /* Windows at the same time, about. */
};

struct idem__limit_known {
    struct idem__limit_bounds places[PLACES];
};

struct idem__limit_known *idem__limit_known_create(void)
{
    return idem__zalloc(sizeof(struct idem__limit_known));
}

void idem__limit_known_destroy(struct idem__limit_known *known)
{
    idem__free(known);
}

static bool is_of(const struct idem__limit_bounds *bounds,
                  const struct idem_op *op)
{
    return bounds->is_used &&
           memcmp(bounds->window, op->u.limit.window, IDEM_ID_LEN) == 0;
}

bool idem__limit_known_is_marked(const struct idem__limit_known *known,
                                 const struct idem_op *op)
{
    const struct idem__limit_bounds *bounds =
        &known->places[op->u.limit.window[0] % PLACES];

    return is_of(bounds, op) && bounds->is_marked;
}

struct idem__limit_bounds *idem__limit_known_of(struct idem__limit_known *known,
                                                const struct idem_op *op)
{
    const uint8_t *window = op->u.limit.window;
    struct idem__limit_bounds *bounds = &known->places[window[0] % PLACES];

    if (is_of(bounds, op)) {
        return bounds;
    }
    memset(bounds, 0, sizeof(*bounds));
    memcpy(bounds->window, window, IDEM_ID_LEN);
    bounds->is_used = true;
    return bounds;
}

void idem__limit_bounds_see(struct idem__limit_bounds *bounds,
                            const struct idem_limit_state *small, bool big)
{
    bounds->is_marked = bounds->is_marked || big;
    bounds->has_small =
        bounds->has_small || small->used > 0 || small->refusals > 0;
    if (small->used > bounds->small_used) {
        bounds->small_used = small->used;
    }
}

void idem__limit_bounds_raise(struct idem__limit_bounds *bounds, unsigned shard,
                              uint64_t used)
{
    if (used > bounds->used[shard]) {
        bounds->used[shard] = used;
    }
}

/* ---- Shares ---- */

/* @budget in equal parts for those that are in; the first ones get what cannot be
 * divided. */
static void divide(uint64_t budget, const bool in[IDEM__LIMIT_SHARDS_MAX],
                   uint64_t shares[IDEM__LIMIT_SHARDS_MAX])
{
    uint64_t n = 0;
    uint64_t rank = 0;
    unsigned i;

    for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        n += in[i];
    }
    for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        shares[i] = 0;
        if (in[i]) {
            shares[i] = budget / n + (rank < budget % n);
            rank++;
        }
    }
}

void idem__limit_bounds_shares(const struct idem__limit_bounds *bounds,
                               const struct idem_limit_request *limit,
                               uint64_t ret_shares[IDEM__LIMIT_SHARDS_MAX])
{
    bool in[IDEM__LIMIT_SHARDS_MAX] = {false};
    uint64_t budget =
        limit->max -
        (bounds->small_used < limit->max ? bounds->small_used : limit->max);
    bool excess;
    unsigned i;

    for (i = 0; i < idem__limit_shards(limit); i++) {
        in[i] = true;
    }
    /* Of a larger limit, which had more shards. */
    for (; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        budget -= budget < bounds->used[i] ? budget : bounds->used[i];
    }
    /* One that was taken beyond its share leaves the others less, and then another
     * one may be beyond its own. */
    do {
        excess = false;
        divide(budget, in, ret_shares);
        for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
            if (in[i] && bounds->used[i] > ret_shares[i]) {
                budget -= budget < bounds->used[i] ? budget : bounds->used[i];
                in[i] = false;
                excess = true;
            }
        }
    } while (excess);
}

static uint64_t left_of(const struct idem__limit_bounds *bounds,
                        const uint64_t shares[IDEM__LIMIT_SHARDS_MAX],
                        unsigned i)
{
    return shares[i] > bounds->used[i] ? shares[i] - bounds->used[i] : 0;
}

uint64_t idem__limit_bounds_left(const struct idem__limit_bounds *bounds,
                                 const uint64_t shares[IDEM__LIMIT_SHARDS_MAX])
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        sum += left_of(bounds, shares, i);
    }
    return sum;
}

void idem__limit_bounds_plan(const struct idem__limit_bounds *bounds,
                             const uint64_t shares[IDEM__LIMIT_SHARDS_MAX],
                             unsigned shards, unsigned first, uint64_t cost,
                             uint64_t ret_takes[IDEM__LIMIT_SHARDS_MAX])
{
    unsigned i;

    memset(ret_takes, 0, IDEM__LIMIT_SHARDS_MAX * sizeof(*ret_takes));
    for (i = 0; i < shards; i++) {
        unsigned shard = (first + i) % shards;

        if (left_of(bounds, shares, shard) >= cost) {
            ret_takes[shard] = cost;
            return;
        }
    }
    for (i = 0; i < shards && cost > 0; i++) {
        unsigned shard = (first + i) % shards;
        uint64_t left = left_of(bounds, shares, shard);

        ret_takes[shard] = left < cost ? left : cost;
        cost -= ret_takes[shard];
    }
}
