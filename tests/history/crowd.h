/* A crowd of callers: processes of several threads on one store, some of which
 * are killed on the way and replaced by others, or stopped for a while. */
#ifndef HISTORY_CROWD_H
#define HISTORY_CROWD_H

#include "caller.h"

#include <getopt.h>

enum {
    CROWD_PROCESSES_MAX = 160,
    CROWD_THREADS_MAX = 64
};

struct crowd {
    const char *store;
    const char
        *into; /* A folder, which has each caller's part of the history. */
    unsigned processes;
    unsigned threads; /* Of each process. */
    unsigned calls;   /* Of each thread. */
    unsigned keys;
    unsigned kills;
    unsigned pauses;
    unsigned pause_ms; /* One of them, at most. */
    unsigned every_ms; /* Between two of either. */
    unsigned seed;
    bool until_killed; /* All are told to stop after the last of them. */

    /* Is one process: number @life of all, in the place of number @place. Returns
     * its exit status. */
    int (*live)(const struct crowd *crowd, unsigned place, unsigned life);
};

/* The main function of a program that is a crowd: reads options into @crowd, which
 * has their defaults, starts the processes, kills, replaces and waits. @flags are
 * the program's own options, which take no value. */
int crowd_main(int argc, char **argv, struct crowd *crowd,
               const struct option *flags, const char *usage);

#define CROWD_USAGE                                                            \
    " --store URL --into DIRECTORY [--processes N] [--threads N]\n"            \
    "           [--calls N] [--keys N] [--seed N] [--kills N] [--pauses N]\n"  \
    "           [--every MS]\n"

/* For live(): sets up caller @number of process @life. */
void crowd_caller(const struct crowd *crowd, unsigned life, unsigned number,
                  struct idem_store *store, struct caller *caller);

/* For live(): runs @run for each of @n callers, each in a thread, to their ends. */
void crowd_threads(struct caller *const *callers, unsigned n,
                   void (*run)(struct caller *caller));

#endif
