/* Pseudo-random choices: everything that a test does follows from its seed.
 *
 * Never make two choices in one expression: compilers differ in the order in which they
 * would make them. */
#ifndef TEST_RNG_H
#define TEST_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

/* SplitMix64. */
static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

/* One of 0 to @n - 1. */
static inline unsigned rng_below(struct rng *rng, unsigned n)
{
    return (unsigned)((rng_next(rng) >> 32) * n >> 32);
}

/* True @permille times in a thousand. */
static inline bool rng_chance(struct rng *rng, unsigned permille)
{
    return rng_below(rng, 1000) < permille;
}

/* One of @low to @high; they are less than 2^32 apart. */
static inline int64_t rng_between(struct rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)rng_below(rng, (unsigned)(high - low + 1));
}

static inline void rng_fill(struct rng *rng, uint8_t *buf, size_t len)
{
    uint64_t word = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        if (i % 8 == 0) {
            word = rng_next(rng);
        }
        buf[i] = (uint8_t)(word >> i % 8 * 8);
    }
}

/* Where one choice among several is weighted: the index into @weights. */
static inline unsigned rng_weighted(struct rng *rng, const unsigned *weights,
                                    unsigned n)
{
    unsigned total = 0;
    unsigned at;
    unsigned i;

    for (i = 0; i < n; i++) {
        total += weights[i];
    }
    at = rng_below(rng, total);
    for (i = 0; at >= weights[i]; i++) {
        at -= weights[i];
    }
    return i;
}

#endif
