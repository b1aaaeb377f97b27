/* driver: machines that share a table, each with clocks and a journal of its own.
 * A machine is a process; it may be killed, and another one goes on from what it
 * left on its disk. */
#include "owner.h"

#include "ledger.h"

#include <idem/dynamodb.h>

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: driver --store URL --into DIRECTORY [--machines N] [--threads N]\n"
    "              [--ops N] [--keys N] [--seed N] [--kills N] [--every MS]\n"
    "              [--cold] [--naive]\n"
    "\n"
    "Each thread makes N calls. DIRECTORY gets the ledger (its lines: owner.h),\n"
    "the parts of the history, and each machine's journal. --kills: so many\n"
    "processes are killed, one every MS, and others go on until the last kill; then\n"
    "the machines are told to stop. --cold: a machine claims before it knows the service's\n"
    "time. --naive: takes no answer for \"not done\".\n";

enum {
    MACHINES_MAX = 64,
    THREADS_MAX = 64,
    TIMEOUT_MS = 3000,
    IMPATIENT_MS = 150,
};

struct plan {
    const char *store;
    const char *into;
    unsigned machines;
    unsigned threads;
    unsigned ops;
    unsigned keys;
    unsigned kills;
    unsigned every_ms;
    uint64_t seed;
    bool cold;
    bool naive;
};

/* ---- Clocks ---- */

/* What is wrong with the clocks of a machine. */
struct clocks {
    int64_t wall_ms;
    int64_t boot_ms;
    int64_t ppm;
    uint8_t boot_id[16];
};

static int64_t read_ms(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int read_clocks(void *ctx, struct idem_clock_reading *ret_reading)
{
    const struct clocks *clocks = ctx;
    int64_t boot_ms = read_ms(CLOCK_BOOTTIME);

    ret_reading->boot_ms =
        boot_ms + boot_ms * clocks->ppm / 1000000 + clocks->boot_ms;
    ret_reading->wall_ms = read_ms(CLOCK_REALTIME) + clocks->wall_ms;
    memcpy(ret_reading->boot_id, clocks->boot_id, sizeof(clocks->boot_id));
    return 0;
}

/* Ten seconds off or more, either way, booted at other times, and not at the same pace. */
static struct clocks clocks_of(unsigned machine)
{
    struct clocks clocks = {
        .wall_ms = (machine % 2 == 0 ? -15000 : 10000) + (int64_t)machine * 500,
        .boot_ms = (int64_t)machine * 86400000,
        .ppm = (int64_t)(machine % 3) * 50 - 50,
    };

    memset(clocks.boot_id, (int)machine + 1, sizeof(clocks.boot_id));
    return clocks;
}

/* ---- A machine ---- */

static int stopped; /* Atomic. */

static void stop(int signal)
{
    (void)signal;
    __atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
}

static void *run_owner(void *arg)
{
    owner_run(arg);
    return NULL;
}

static void in(const struct plan *plan, char path[4096], const char *name,
               unsigned a, unsigned b)
{
    if (snprintf(path, 4096, "%s/%s-%u-%u", plan->into, name, a, b) >= 4096) {
        abort();
    }
}

static struct idem_journal *open_journal(const struct plan *plan,
                                         unsigned machine)
{
    struct idem_journal_options options = IDEM_JOURNAL_OPTIONS_INIT;
    struct idem_journal *journal;
    struct idem_error error;
    char path[4096];

    in(plan, path, "state", machine, 0);
    options.flags = IDEM_JOURNAL_CREATE;
    if (idem_journal_open(path, &options, &journal, &error) != 0) {
        fprintf(stderr, "driver: %s: %s\n", path, error.text);
        exit(1);
    }
    return journal;
}

static void set_up_owner(struct owner *owner, const struct plan *plan,
                         unsigned life, unsigned number)
{
    char path[4096];

    memset(owner, 0, sizeof(*owner));
    owner->ops = plan->ops;
    owner->keys = plan->keys;
    owner->naive = plan->naive;
    owner->cold = plan->cold;
    owner->stopped = &stopped;
    owner->who = life * plan->threads + number + 1;
    owner->random = plan->seed * 1000003 + owner->who;
    in(plan, path, "history", life, number);
    if (!writer_open(&owner->writer, path, owner->who, /* copies= */ false)) {
        perror(path);
        exit(1);
    }
}

/* Asks for nothing in particular until the service's time is known. */
static void warm_up(struct idem_store *store)
{
    struct idem_dynamodb_info info = IDEM_DYNAMODB_INFO_INIT;
    struct idem_answer *answer;

    while (idem_dynamodb_inspect(store, &info, NULL) == 0 &&
           !info.clock_known) {
        if (idem_get(store, idem_str(""), idem_str("time"), &answer, NULL) ==
            0) {
            idem_answer_destroy(answer);
        }
    }
}

/* @life is the number of this process among all. */
static int run_machine(const struct plan *plan, unsigned machine, unsigned life)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct clocks clocks = clocks_of(machine);
    struct owner owners[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    struct idem_journal *journal = open_journal(plan, machine);
    struct idem_store *store;
    struct idem_error error;
    char name[40];
    unsigned i;

    /* The proxy knows its clients by their key. */
    (void)snprintf(name, sizeof(name), "MACHINE%u", life);
    (void)setenv("AWS_ACCESS_KEY_ID", name, 1);
    options.timeout_ms = plan->naive ? IMPATIENT_MS : TIMEOUT_MS;
    options.host.ctx = &clocks;
    options.host.clock = read_clocks;
    if (idem_open(plan->store, &options, &store, &error) != 0) {
        fprintf(stderr, "driver: %s: %s\n", plan->store, error.text);
        return 1;
    }
    if (!plan->cold) {
        warm_up(store);
    }
    owner_replay(store, journal, life * plan->threads);
    for (i = 0; i < plan->threads; i++) {
        set_up_owner(&owners[i], plan, life, i);
        owners[i].store = store;
        owners[i].journal = journal;
        if (pthread_create(&threads[i], NULL, run_owner, &owners[i]) != 0) {
            abort();
        }
    }
    for (i = 0; i < plan->threads; i++) {
        (void)pthread_join(threads[i], NULL);
        writer_close(&owners[i].writer);
    }
    idem_journal_close(journal);
    idem_close(store);
    return 0;
}

/* ---- Their parent ---- */

static pid_t start(const struct plan *plan, unsigned machine, unsigned life)
{
    sigset_t term;
    sigset_t before;
    pid_t pid;

    /* Told to stop before it listens, it would die of that. */
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, &before);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGTERM, stop);
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        exit(run_machine(plan, machine, life));
    }
    if (pid < 0) {
        perror("driver");
        exit(1);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

/* The machine whose process has ended, or -1: none within @ms. */
static int wait_for(const struct plan *plan, pid_t *pids, int64_t ms,
                    int *ret_status)
{
    struct timespec tick = {0, 2000000};
    int64_t until_ms = read_ms(CLOCK_MONOTONIC) + ms;
    unsigned i;

    for (;;) {
        pid_t pid = waitpid(-1, ret_status, WNOHANG);

        for (i = 0; pid > 0 && i < plan->machines; i++) {
            if (pids[i] == pid) {
                pids[i] = 0;
                return (int)i;
            }
        }
        if (read_ms(CLOCK_MONOTONIC) >= until_ms) {
            return -1;
        }
        (void)nanosleep(&tick, NULL);
    }
}

static void tell_to_stop(const struct plan *plan, const pid_t *pids)
{
    unsigned i;

    for (i = 0; i < plan->machines; i++) {
        if (pids[i] > 0) {
            (void)kill(pids[i], SIGTERM);
        }
    }
}

static int run(const struct plan *plan)
{
    pid_t pids[MACHINES_MAX];
    uint64_t random = plan->seed;
    unsigned started = 0;
    unsigned killed = 0;
    unsigned running = plan->machines;
    bool failed = false;

    while (started < plan->machines) {
        pids[started] = start(plan, started, started);
        started++;
    }
    while (running > 0) {
        int status = 0;
        int ended = wait_for(plan, pids, plan->every_ms, &status);
        bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

        if (ended >= 0 && was_killed) {
            pids[ended] = start(plan, (unsigned)ended, started++);
        } else if (ended >= 0) {
            failed = failed || status != 0;
            running--;
        } else if (killed < plan->kills) {
            random = random * 6364136223846793005ULL + 1442695040888963407ULL;
            (void)kill(pids[(random >> 33) % plan->machines], SIGKILL);
            killed++;
        } else if (plan->kills > 0) {
            tell_to_stop(plan, pids);
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
        fprintf(stderr, "driver: %s: a number of at most %u\n", text, most);
        exit(64);
    }
    return (unsigned)n;
}

static int misused(void)
{
    (void)fputs(usage, stderr);
    return 64;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"store", required_argument, NULL, 's'},
        {"into", required_argument, NULL, 'i'},
        {"machines", required_argument, NULL, 'm'},
        {"threads", required_argument, NULL, 't'},
        {"ops", required_argument, NULL, 'o'},
        {"keys", required_argument, NULL, 'k'},
        {"seed", required_argument, NULL, 'r'},
        {"kills", required_argument, NULL, 'x'},
        {"every", required_argument, NULL, 'e'},
        {"cold", no_argument, NULL, 'c'},
        {"naive", no_argument, NULL, 'n'},
        {NULL, 0, NULL, 0},
    };
    struct plan plan = {.machines = 2,
                        .threads = 4,
                        .ops = 100,
                        .keys = 2,
                        .every_ms = 100,
                        .seed = 1};
    char path[4096];
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 's':
            plan.store = optarg;
            break;
        case 'i':
            plan.into = optarg;
            break;
        case 'm':
            plan.machines = number(optarg, MACHINES_MAX);
            break;
        case 't':
            plan.threads = number(optarg, THREADS_MAX);
            break;
        case 'o':
            plan.ops = number(optarg, 10000000);
            break;
        case 'k':
            plan.keys = number(optarg, 1000);
            break;
        case 'r':
            plan.seed = number(optarg, UINT32_MAX);
            break;
        case 'x':
            plan.kills = number(optarg, 1000000);
            break;
        case 'e':
            plan.every_ms = number(optarg, 60000);
            break;
        case 'c':
            plan.cold = true;
            break;
        case 'n':
            plan.naive = true;
            break;
        default:
            return misused();
        }
    }
    if (plan.store == NULL || plan.into == NULL || plan.machines == 0 ||
        plan.threads == 0 || plan.keys == 0) {
        return misused();
    }
    if (mkdir(plan.into, 0700) != 0 && errno != EEXIST) {
        perror(plan.into);
        return 1;
    }
    if (snprintf(path, sizeof(path), "%s/ledger", plan.into) >=
        (int)sizeof(path)) {
        return misused();
    }
    ledger_open(path);
    return run(&plan);
}
