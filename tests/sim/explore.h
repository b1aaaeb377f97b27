/* explore.h: every execution of a small world, one after the other.
 *
 * Where a choice has to be made the explorer makes it: at first always the first
 * one, and in each further execution the last choice that has another left is
 * made another way. So all paths are gone, depth first. An execution ends early
 * where it comes into a state that was met before with as few faults: all that
 * can follow was, or will be, followed from there.
 *
 *     while (explore_next(e)) {
 *         run: explore_choose() at each choice, explore_met() at each step
 *     }
 */
#ifndef SIM_EXPLORE_H
#define SIM_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PATH_MAX_LEN = 600,
    CALLS_COUNTED = 40
};

/* What is known of a state or a step, by its hash. Open addressing. */
struct place {
    uint64_t hash; /* 0: it is free. */
    uint64_t value;
};

struct places {
    struct place *at;
    size_t cap; /* A power of two. */
    size_t len;
};

struct explore {
    unsigned faults_max; /* In one execution. */
    unsigned delays_max; /* Likewise: time passes, and somebody could go on. */
    /* Follows each state twice, where it is met twice: the same choices must
     * lead to the same states again. If not, a state is not all that matters. */
    bool twice;

    uint8_t chosen[PATH_MAX_LEN];
    uint8_t options[PATH_MAX_LEN];
    unsigned path_len; /* Choices that were laid down. */
    unsigned at;       /* Choices that this execution has made. */
    unsigned faults;   /* That it has met. */
    unsigned delays;
    bool started;
    bool too_long; /* A path did not fit: what follows was not explored. */

    /* States: with how few faults each was met so far, and 256 for each time. */
    struct places met;
    /* Under twice, which state followed: from a state, by some choices. */
    struct places steps;
    uint64_t
        steps_again;     /* That were taken a second time, from another path. */
    uint64_t last_state; /* 0: none in this execution. */
    unsigned last_at;
    unsigned last_faults;
    bool unsound; /* One led elsewhere. */

    uint64_t executions;
    uint64_t ended; /* At their end, and not in a state that was met before. */
    uint64_t choices;
    unsigned longest; /* Path. */
    unsigned most_calls;
    uint64_t
        by_calls[CALLS_COUNTED]; /* Executions that ended, by store calls. */
    uint64_t by_fault[16];       /* As its world counts them. */
};

void explore_init(struct explore *e, unsigned faults_max, unsigned delays_max);
void explore_finish(struct explore *e);

/* Goes on to the next execution; false: there is none. */
bool explore_next(struct explore *e);

/* One of 0 to @n - 1. */
unsigned explore_choose(struct explore *e, unsigned n);

/* Likewise; all but 0 are faults, and there may be no more than so many. */
unsigned explore_fault(struct explore *e, unsigned n);
bool explore_may_fault(const struct explore *e);

/* False on the way that was gone before, whose states are known: most steps are
 * there, and to compute a state takes longer than a step. */
bool explore_asks(const struct explore *e);

/* True if @state needs not be followed any further. */
bool explore_met(struct explore *e, uint64_t state);

/* It came to its end after so many store calls. */
void explore_ended(struct explore *e, unsigned calls);

#endif
