/* What this handle knows of the shards of windows. */
#include "store/dynamodb/limit_known.h"

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

struct idem__limit_bounds *idem__limit_known_of(struct idem__limit_known *known,
                                                const struct idem_op *op)
{
    const uint8_t *window = op->u.limit.window;
    struct idem__limit_bounds *bounds = &known->places[window[0] % PLACES];
    const struct idem_limit_request *limit = &op->u.limit.limit;
    unsigned i;

    if (bounds->is_used && memcmp(bounds->window, window, IDEM_ID_LEN) == 0) {
        return bounds;
    }
    memset(bounds, 0, sizeof(*bounds));
    memcpy(bounds->window, window, IDEM_ID_LEN);
    bounds->is_used = true;
    for (i = 0; i < idem__limit_shards(limit); i++) {
        bounds->left[i] = idem__limit_share(limit, i);
    }
    return bounds;
}

void idem__limit_bounds_lower(struct idem__limit_bounds *bounds, unsigned shard,
                              uint64_t left)
{
    if (left < bounds->left[shard]) {
        bounds->left[shard] = left;
    }
}

uint64_t idem__limit_bounds_sum(const struct idem__limit_bounds *bounds)
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
        sum += bounds->left[i];
    }
    return sum;
}

void idem__limit_bounds_plan(const struct idem__limit_bounds *bounds,
                             unsigned shards, unsigned first, uint64_t cost,
                             uint64_t ret_takes[IDEM__LIMIT_SHARDS_MAX])
{
    unsigned i;

    memset(ret_takes, 0, IDEM__LIMIT_SHARDS_MAX * sizeof(*ret_takes));
    for (i = 0; i < shards; i++) {
        unsigned shard = (first + i) % shards;

        if (bounds->left[shard] >= cost) {
            ret_takes[shard] = cost;
            return;
        }
    }
    for (i = 0; i < shards && cost > 0; i++) {
        unsigned shard = (first + i) % shards;

        ret_takes[shard] =
            bounds->left[shard] < cost ? bounds->left[shard] : cost;
        cost -= ret_takes[shard];
    }
}
