/* A crowd of callers: processes of several threads on one store. Some of them are killed
 * and replaced, or stopped for a while. */
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
    unsigned every_ms; /* Between two kills or pauses. */
    unsigned seed;
    bool until_killed; /* After the last kill all are told to stop. */

    /* Runs one process: number @life of all, in place number @place. Returns its exit
     * status. */
    int (*live)(const struct crowd *crowd, unsigned place, unsigned life);
};

/* The main function of a program that is a crowd: reads options into @crowd, which has
 * their defaults, starts the processes, kills and replaces some, and waits for all.
 * @flags are the program's own options, which take no value. */
int crowd_main(int argc, char **argv, struct crowd *crowd,
               const struct option *flags, const char *usage);

#define CROWD_USAGE                                                            \
    " --store URL --into DIRECTORY [--processes N] [--threads N]\n"            \
    "           [--calls N] [--keys N] [--seed N] [--kills N] [--pauses N]\n"  \
    "           [--every MS]\n"

/* For live(): sets up caller @number of process @life. */
void crowd_caller(const struct crowd *crowd, unsigned life, unsigned number,
                  struct idem_store *store, struct caller *caller);

/* For live(): runs @run for each of @n callers in a thread, and waits for all. */
void crowd_threads(struct caller *const *callers, unsigned n,
                   void (*run)(struct caller *caller));

#endif
