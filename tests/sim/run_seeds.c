/* Schedules by seed. */
#include "run.h"

#include "history.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    /* Seeds that a job takes in a row: the mode goes by odd and even. */
    ROW = 64
};

/* What a job tells its parent. */
struct report {
    struct stats stats;
    uint64_t seed; /* That is being run. */
};

static struct report *current;

static void say(const char *id, const char *text)
{
    const char *mode = mode_name(run_world.config.mode);
    const char *class = class_name(run_world.config.class);

    printf("violation: %s in seed %" PRIu64 " (%s, %s)\n# %s\n", id,
           current->seed, mode, class, text);
    trace_print(&run_world.trace);
    printf("# reproduce: sim --seed %" PRIu64 " --schedules 1 --mode %s "
           "--class %s --trace\n",
           current->seed, mode, class);
    (void)fflush(stdout);
}

static void open_history(const struct run *run, unsigned no)
{
    char path[PATH_MAX];

    if (run->history == NULL) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s.%u", run->history, no);
    if (!history_open(path)) {
        perror(path);
        _exit(1);
    }
    run_world.unjudged = true;
}

static int job(const struct run *run, unsigned no, void *shared)
{
    struct world *w = &run_world;
    bool found = false;
    uint64_t i;

    current = (struct report *)shared + no;
    run_catch_signals(say);
    open_history(run, no);
    for (i = 0; i < run->schedules && (!found || run->go_on); i++) {
        if (i / ROW % run->jobs != no) {
            continue;
        }
        current->seed = run->seed + i;
        world_run(w, current->seed, &run->forced, &current->stats, run->trace);
        if (run->hashes) {
            printf("seed %" PRIu64 " %016" PRIx64 "\n", current->seed,
                   w->trace.hash);
        }
        if (w->violation.found && !found) {
            say(w->violation.id, w->violation.text);
            found = true;
        }
    }
    history_close();
    return found;
}

static double now_s(void)
{
    struct timeval tv;

    (void)gettimeofday(&tv, NULL);
    return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

int run_seeds(const struct run *run)
{
    struct stats total = {0};
    double start = now_s();
    void *shared;
    unsigned i;
    bool fine = run_jobs(run, job, run->jobs * sizeof(struct report), &shared);

    for (i = 0; i < run->jobs; i++) {
        stats_add(&total, &((struct report *)shared)[i].stats);
    }
    stats_print(&total);
    run_line("rate", "schedules per second",
             (uint64_t)((double)total.schedules / (now_s() - start)));
    return fine ? 0 : 1;
}
