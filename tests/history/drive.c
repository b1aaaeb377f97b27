/* drive: real processes and threads on a real store, each of which writes down
 * what it was told; check says whether it can be true. */
#include "caller.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: drive --store URL --into DIRECTORY [--processes N] [--threads N]\n"
    "             [--calls N] [--keys N] [--lease MS] [--seed N] [--kills N]\n"
    "             [--copies]\n"
    "\n"
    "Each thread makes N calls and writes DIRECTORY/PROCESS-THREAD.txt, for\n"
    "`check --merge DIRECTORY/*`. --kills: so many processes are killed on the\n"
    "way, and others started in their place. --copies: the store may send a\n"
    "request more than once.\n";

enum {
    PROCESSES_MAX = 64,
    THREADS_MAX = 64,
    KILL_EVERY_MS = 400
};

struct plan {
    const char *store;
    const char *into;
    unsigned processes;
    unsigned threads;
    unsigned calls;
    unsigned keys;
    unsigned kills;
    int64_t lease_ms;
    uint64_t seed;
    bool copies;
};

/* ---- A process ---- */

static void *run_caller(void *arg)
{
    caller_run(arg);
    return NULL;
}

static int run_process(const struct plan *plan, unsigned process)
{
    struct caller callers[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    struct idem_store *store;
    struct idem_error error;
    unsigned i;

    if (idem_open(plan->store, NULL, &store, &error) != 0) {
        fprintf(stderr, "drive: %s: %s\n", plan->store, error.text);
        return 1;
    }
    for (i = 0; i < plan->threads; i++) {
        unsigned who = process * plan->threads + i + 1;
        char path[4096];

        memset(&callers[i], 0, sizeof(callers[i]));
        callers[i].store = store;
        callers[i].ops = plan->calls;
        callers[i].keys = plan->keys;
        callers[i].lease_ms = plan->lease_ms;
        callers[i].seed = plan->seed * 1000003 + who;
        (void)snprintf(path, sizeof(path), "%s/%u-%u.txt", plan->into, process,
                       i);
        if (!writer_open(&callers[i].writer, path, who, plan->copies)) {
            perror(path);
            return 1;
        }
    }
    for (i = 0; i < plan->threads; i++) {
        if (pthread_create(&threads[i], NULL, run_caller, &callers[i]) != 0) {
            abort();
        }
    }
    for (i = 0; i < plan->threads; i++) {
        (void)pthread_join(threads[i], NULL);
        writer_close(&callers[i].writer);
    }
    idem_close(store);
    return 0;
}

/* ---- Their parent ---- */

static pid_t start(const struct plan *plan, unsigned process)
{
    pid_t pid = fork();

    if (pid == 0) {
        _exit(run_process(plan, process));
    }
    if (pid < 0) {
        perror("drive");
        exit(1);
    }
    return pid;
}

/* Waits for any of them; false: none ended within @ms. */
static bool wait_for(pid_t *pids, unsigned n, int64_t ms, int *ret_status,
                     unsigned *ret_which)
{
    struct timespec tick = {0, 5000000};
    int64_t waited;
    unsigned i;

    for (waited = 0; waited < ms; waited += 5) {
        pid_t pid = waitpid(-1, ret_status, WNOHANG);

        for (i = 0; pid > 0 && i < n; i++) {
            if (pids[i] == pid) {
                pids[i] = 0;
                *ret_which = i;
                return true;
            }
        }
        (void)nanosleep(&tick, NULL);
    }
    return false;
}

static int run(const struct plan *plan)
{
    pid_t pids[PROCESSES_MAX];
    unsigned started = 0;
    unsigned killed = 0;
    unsigned running = 0;
    uint64_t random = plan->seed;
    bool failed = false;

    while (started < plan->processes) {
        pids[started] = start(plan, started);
        started++;
        running++;
    }
    while (running > 0) {
        int status = 0;
        unsigned which;

        if (wait_for(pids, plan->processes, KILL_EVERY_MS, &status, &which)) {
            running--;
            failed = failed || (status != 0 && !WIFSIGNALED(status)) ||
                     (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL);
            if (WIFSIGNALED(status)) {
                pids[which] = start(plan, started++);
                running++;
            }
            continue;
        }
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        which = (unsigned)(random >> 33) % plan->processes;
        if (killed < plan->kills && pids[which] > 0) {
            (void)kill(pids[which], SIGKILL);
            killed++;
        }
    }
    printf("%u processes, %u of them killed\n", started, killed);
    return failed ? 1 : 0;
}

static unsigned number(const char *text, unsigned most)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*end != '\0' || n > most) {
        fprintf(stderr, "drive: %s: a number of at most %u\n", text, most);
        exit(64);
    }
    return (unsigned)n;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"store", required_argument, NULL, 's'},
        {"into", required_argument, NULL, 'i'},
        {"processes", required_argument, NULL, 'p'},
        {"threads", required_argument, NULL, 't'},
        {"calls", required_argument, NULL, 'c'},
        {"keys", required_argument, NULL, 'k'},
        {"lease", required_argument, NULL, 'l'},
        {"seed", required_argument, NULL, 'r'},
        {"kills", required_argument, NULL, 'x'},
        {"copies", no_argument, NULL, 'C'},
        {NULL, 0, NULL, 0},
    };
    struct plan plan = {.processes = 1,
                        .threads = 1,
                        .calls = 200,
                        .keys = 3,
                        .lease_ms = IDEM_LEASE_MIN_MS,
                        .seed = 1};
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 's':
            plan.store = optarg;
            break;
        case 'i':
            plan.into = optarg;
            break;
        case 'p':
            plan.processes = number(optarg, PROCESSES_MAX);
            break;
        case 't':
            plan.threads = number(optarg, THREADS_MAX);
            break;
        case 'c':
            plan.calls = number(optarg, 1000000);
            break;
        case 'k':
            plan.keys = number(optarg, 1000);
            break;
        case 'l':
            plan.lease_ms = number(optarg, 3600000);
            break;
        case 'r':
            plan.seed = number(optarg, UINT32_MAX);
            break;
        case 'x':
            plan.kills = number(optarg, 100000);
            break;
        case 'C':
            plan.copies = true;
            break;
        default:
            (void)fputs(usage, stderr);
            return 64;
        }
    }
    if (plan.store == NULL || plan.into == NULL || plan.processes == 0 ||
        plan.threads == 0 || plan.keys == 0) {
        (void)fputs(usage, stderr);
        return 64;
    }
    return run(&plan);
}
