/* small.h: small worlds, explored completely.
 *
 * Two clients follow a script (script.h) about one key. At each step the explorer
 * chooses: which client runs on, which operation under way goes on, whether time
 * passes until the next sleeper wakes, whether a client is killed or started
 * again; and for each store call what becomes of it. The library, the simulated
 * stores and the judges are those of the seeded schedules. */
#ifndef SIM_SMALL_H
#define SIM_SMALL_H

#include "explore.h"
#include "script.h"
#include "world.h"

/* Faults that are counted; those of a store call first. */
#define SMALL_FAULT_MAP(X)                                                     \
    X(NONE, "none")                                                            \
    X(LOSE_ANSWER, "done, answer lost")                                        \
    X(FAIL, "not done, answer lost")                                           \
    X(REFUSE, "refused")                                                       \
    X(DOUBLE, "done twice")                                                    \
    X(LATE, "done late")                                                       \
    X(SLOW, "answered late")                                                   \
    X(LATENT, "failed, found done or not")                                     \
    X(FULL, "disk full")                                                       \
    X(FLIPPED, "read damaged")                                                 \
    X(CRASH, "client killed")

enum small_fault {
#define X(name, text) SMALL_##name,
    SMALL_FAULT_MAP(X)
#undef X
    SMALL_FAULTS
};

/* When a client that sleeps for @ms wakes: time goes in large steps, so that few
 * of its moments are different. */
int64_t small_wake(const struct world *w, int64_t ms);

const char *small_fault_name(enum small_fault fault);

/* Runs one execution of @script with @e's choices. */
void small_run(struct world *w, const struct script *script, enum mode mode,
               struct explore *e, struct stats *stats, bool live);

#endif
