/* Runs: many schedules or small worlds, in several processes. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "world.h"

enum {
    JOBS_MAX = 64
};

struct run {
    unsigned jobs;
    struct forced forced;
    bool go_on; /* After a violation. */
    bool trace;

    /* Seeded schedules. */
    uint64_t seed;
    uint64_t schedules;
    bool hashes;
    const char *history; /* Where histories are written; NULL: nowhere. */

    /* Small worlds. */
    const char *script; /* Its name, or "all"; NULL: none. */
    unsigned faults_max;
    unsigned delays_max;
    bool twice;
    const char *path; /* Only this one execution. */
};

/* What a job does; not 0: it found something. */
typedef int run_fn(const struct run *run, unsigned job, void *shared);

/* Runs @job in @run->jobs processes, which share @len bytes that are zero at
 * first. True if none of them found anything. */
bool run_jobs(const struct run *run, run_fn *job, size_t len,
              void **ret_shared);

/* Each process has one world. */
extern struct world run_world;

/* Says what is wrong with run_world, and how it is met again. */
typedef void run_say_fn(const char *id, const char *text);

/* An assertion of the library, or worse, is a violation, too. */
void run_catch_signals(run_say_fn *say);

const char *mode_name(enum mode mode);

/* A line "KIND WHAT N". */
void run_line(const char *kind, const char *what, uint64_t n);

int run_seeds(const struct run *run);
int run_small(const struct run *run);

#endif
