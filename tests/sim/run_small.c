/* Small worlds, each explored by one process. */
#include "run.h"

#include "small.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct shared {
    unsigned next; /* World that nobody explores yet. */
    bool incomplete;
    struct stats stats[JOBS_MAX];
    uint64_t by_fault[SMALL_FAULTS];
    uint64_t by_calls[CALLS_COUNTED];
};

static struct explore explore;

static void say(const char *id, const char *text)
{
    const char *name = run_world.script->name;
    const char *mode = mode_name(run_world.config.mode);
    unsigned i;

    printf("violation: %s in %s (%s), execution %" PRIu64 "\n# %s\n", id, name,
           mode, explore.executions, text);
    trace_print(&run_world.trace);
    printf("# reproduce: sim --small %s --mode %s --faults %u --delays %u "
           "--trace --path ",
           name, mode, explore.faults_max, explore.delays_max);
    for (i = 0; i < explore.at; i++) {
        printf("%u.", explore.chosen[i]);
    }
    printf("\n");
    (void)fflush(stdout);
}

/* ---- One world ---- */

static void line(const char *script, enum mode mode, const char *what,
                 uint64_t n)
{
    char words[64];

    (void)snprintf(words, sizeof(words), "%s %s: %s", script, mode_name(mode),
                   what);
    run_line("small", words, n);
}

static void account(const struct script *script, enum mode mode,
                    struct shared *shared)
{
    unsigned i;

    line(script->name, mode, "faults at most", explore.faults_max);
    line(script->name, mode, "delays at most", explore.delays_max);
    line(script->name, mode, "executions", explore.executions);
    line(script->name, mode, "states", explore.met.len);
    line(script->name, mode, "choices", explore.choices);
    if (explore.twice) {
        line(script->name, mode, "steps", explore.steps.len);
        line(script->name, mode, "steps again", explore.steps_again);
        line(script->name, mode, "steps elsewhere", explore.unsound);
    }
    line(script->name, mode, "most store calls", explore.most_calls);
    for (i = 0; i < SMALL_FAULTS; i++) {
        (void)__atomic_fetch_add(&shared->by_fault[i], explore.by_fault[i],
                                 __ATOMIC_RELAXED);
    }
    for (i = 0; i < CALLS_COUNTED; i++) {
        (void)__atomic_fetch_add(&shared->by_calls[i], explore.by_calls[i],
                                 __ATOMIC_RELAXED);
    }
}

/* True if something is wrong. */
static bool go_through(const struct run *run, const struct script *script,
                       enum mode mode, struct stats *stats,
                       struct shared *shared)
{
    struct world *w = &run_world;
    bool found = false;

    explore_init(&explore, run->faults_max, run->delays_max);
    explore.twice = run->twice;
    while (!found && explore_next(&explore)) {
        small_run(w, script, mode, &explore, stats, /* live= */ false);
        if (w->violation.found) {
            say(w->violation.id, w->violation.text);
            found = true;
        }
        if (explore.too_long || explore.unsound) {
            shared->incomplete = true;
            break;
        }
    }
    if (explore.unsound) {
        printf("violation: SIM in %s: a state is not all that matters\n",
               script->name);
        found = true;
    }
    account(script, mode, shared);
    explore_finish(&explore);
    return found;
}

/* ---- All of them ---- */

static bool is_wanted(const struct run *run, unsigned task)
{
    const char *name = scripts[task / 2].name;

    return (strcmp(run->script, "all") == 0 ||
            strcmp(run->script, name) == 0) &&
           (run->forced.mode < 0 || run->forced.mode == (int)(task % 2));
}

static int job(const struct run *run, unsigned no, void *memory)
{
    struct shared *shared = memory;
    bool found = false;

    run_catch_signals(say);
    while (!found || run->go_on) {
        unsigned task = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);

        if (task >= 2 * scripts_len) {
            break;
        }
        if (is_wanted(run, task)) {
            found = go_through(run, &scripts[task / 2], (enum mode)(task % 2),
                               &shared->stats[no], shared) ||
                    found;
        }
    }
    return found;
}

/* ---- One execution ---- */

static void take_path(const char *path)
{
    char *end = NULL;

    for (; *path != '\0'; path = *end == '.' ? end + 1 : end) {
        explore.chosen[explore.path_len] = (uint8_t)strtoul(path, &end, 10);
        explore.options[explore.path_len] = UINT8_MAX;
        explore.path_len++;
    }
}

static int again(const struct run *run, unsigned no, void *memory)
{
    struct world *w = &run_world;
    struct shared *shared = memory;
    unsigned task = 0;

    (void)no;
    while (task < 2 * scripts_len && !is_wanted(run, task)) {
        task++;
    }
    if (task == 2 * scripts_len) {
        return 64;
    }
    run_catch_signals(say);
    explore_init(&explore, run->faults_max, run->delays_max);
    take_path(run->path);
    explore.executions = 1;
    small_run(w, &scripts[task / 2], (enum mode)(task % 2), &explore,
              shared->stats, run->trace);
    if (w->violation.found) {
        say(w->violation.id, w->violation.text);
    }
    return w->violation.found;
}

int run_small(const struct run *run)
{
    struct stats total = {0};
    struct shared *shared;
    void *memory;
    char words[32];
    unsigned i;
    bool fine = run_jobs(run, run->path != NULL ? again : job,
                         sizeof(struct shared), &memory);

    shared = memory;
    for (i = 0; i < run->jobs; i++) {
        stats_add(&total, &shared->stats[i]);
    }
    stats_print_met(&total);
    for (i = 0; i < SMALL_FAULTS; i++) {
        run_line("fault", small_fault_name((enum small_fault)i),
                 shared->by_fault[i]);
    }
    for (i = 0; i < CALLS_COUNTED; i++) {
        (void)snprintf(words, sizeof(words), "%u store calls", i);
        if (shared->by_calls[i] > 0) {
            run_line("ended", words, shared->by_calls[i]);
        }
    }
    run_line("total", "incomplete", shared->incomplete);
    return fine ? 0 : 1;
}
