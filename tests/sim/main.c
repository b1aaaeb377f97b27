/* sim: runs libidem through seeded schedules and judges what comes of it. */
#include "world.h"

#include "heap.h"
#include "history.h"

#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    JOBS_MAX = 64
};

static const char usage[] =
    "usage: sim [--seed S] [--schedules N] [--jobs J]\n"
    "           [--mode embedded|remote|both] [--trace] [--hashes]\n"
    "           [--clients N] [--rounds N] [--history FILE]\n"
    "\n"
    "--history writes what clients were answered, and leaves the judgement to\n"
    "tests/history/check: one file for each job, FILE.0, FILE.1 ...\n";

struct run {
    uint64_t seed;
    uint64_t schedules;
    unsigned jobs;
    struct forced forced;
    const char *history; /* Where histories are written; NULL: nowhere. */
    bool trace;
    bool hashes;
};

/* What a job tells its parent, in memory that they share. */
struct report {
    struct stats stats;
    uint64_t seed; /* That is being run. */
    bool failed;
};

static struct world world;
static struct report *current;

static const char *mode_name(int mode)
{
    return mode == EMBEDDED ? "embedded" : "remote";
}

static void say_violation(uint64_t seed, int mode, const char *id,
                          const char *text)
{
    printf("violation: %s in seed %" PRIu64 " (%s)\n# %s\n", id, seed,
           mode_name(mode), text);
    trace_print(&world.trace);
    printf("# reproduce: sim --seed %" PRIu64 " --schedules 1 --mode %s "
           "--trace\n",
           seed, mode_name(mode));
    (void)fflush(stdout);
}

/* An assertion of the library, or worse. */
static void on_signal(int signo)
{
    say_violation(current->seed, (int)world.config.mode, "CRASH",
                  strsignal(signo));
    current->failed = true;
    _exit(1);
}

static void catch_signals(void)
{
    static char stack[64 * 1024];
    stack_t where = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

    (void)sigaltstack(&where, NULL);
    (void)sigaction(SIGABRT, &action, NULL);
    (void)sigaction(SIGSEGV, &action, NULL);
    (void)sigaction(SIGBUS, &action, NULL);
}

static void open_history(const struct run *run, unsigned job)
{
    char path[PATH_MAX];

    if (run->history == NULL) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s.%u", run->history, job);
    if (!history_open(path)) {
        perror(path);
        _exit(1);
    }
    world.unjudged = true;
}

/* Every @run->jobs'th seed from @job on. */
static int run_job(const struct run *run, unsigned job, struct report *report)
{
    uint64_t i;

    current = report;
    catch_signals();
    open_history(run, job);
    heap_install();
    for (i = job; i < run->schedules; i += run->jobs) {
        report->seed = run->seed + i;
        world_run(&world, report->seed, &run->forced, &report->stats,
                  run->trace);
        if (run->hashes) {
            printf("seed %" PRIu64 " %016" PRIx64 "\n", report->seed,
                   world.trace.hash);
        }
        if (world.violation.found) {
            say_violation(report->seed, (int)world.config.mode,
                          world.violation.id, world.violation.text);
            report->failed = true;
            return 1;
        }
    }
    history_close();
    return 0;
}

static double now_s(void)
{
    struct timeval tv;

    (void)gettimeofday(&tv, NULL);
    return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static int run_all(const struct run *run)
{
    struct report *reports =
        mmap(NULL, run->jobs * sizeof(*reports), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct stats total = {0};
    double start = now_s();
    bool failed = false;
    unsigned i;

    if (reports == MAP_FAILED) {
        perror("sim");
        return 1;
    }
    for (i = 0; i < run->jobs; i++) {
        (void)fflush(stdout);
        if (fork() == 0) {
            int rc = run_job(run, i, &reports[i]);

            (void)fflush(stdout);
            _exit(rc);
        }
    }
    for (i = 0; i < run->jobs; i++) {
        int status = 0;

        if (wait(&status) < 0 || status != 0) {
            failed = true;
        }
    }
    for (i = 0; i < run->jobs; i++) {
        stats_add(&total, &reports[i].stats);
    }
    stats_print(&total);
    printf("%-8s %-34s %.0f\n", "rate", "schedules per second",
           (double)total.schedules / (now_s() - start));
    return failed ? 1 : 0;
}

static int parse_mode(const char *name)
{
    if (strcmp(name, "both") == 0) {
        return -1;
    }
    if (strcmp(name, "embedded") != 0 && strcmp(name, "remote") != 0) {
        (void)fputs(usage, stderr);
        exit(64);
    }
    return strcmp(name, "remote") == 0 ? REMOTE : EMBEDDED;
}

static void parse(int argc, char **argv, struct run *run)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"schedules", required_argument, NULL, 'n'},
        {"jobs", required_argument, NULL, 'j'},
        {"mode", required_argument, NULL, 'm'},
        {"clients", required_argument, NULL, 'c'},
        {"rounds", required_argument, NULL, 'r'},
        {"history", required_argument, NULL, 'H'},
        {"trace", no_argument, NULL, 't'},
        {"hashes", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 's':
            run->seed = strtoull(optarg, NULL, 10);
            break;
        case 'n':
            run->schedules = strtoull(optarg, NULL, 10);
            break;
        case 'j':
            run->jobs = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'm':
            run->forced.mode = parse_mode(optarg);
            break;
        case 'c':
            run->forced.clients = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'r':
            run->forced.rounds = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'H':
            run->history = optarg;
            break;
        case 't':
            run->trace = true;
            break;
        case 'h':
            run->hashes = true;
            break;
        default:
            (void)fputs(usage, stderr);
            exit(64);
        }
    }
}

int main(int argc, char **argv)
{
    struct run run = {.seed = 1,
                      .schedules = 1000,
                      .jobs = 1,
                      .forced = {.mode = -1}};

    parse(argc, argv, &run);
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* Jobs share it, line by line. */
    if (run.jobs < 1 || run.jobs > JOBS_MAX ||
        run.forced.clients > CLIENTS_MAX) {
        (void)fputs(usage, stderr);
        return 64;
    }
    return run_all(&run);
}
