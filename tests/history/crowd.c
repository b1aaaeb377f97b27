/* The parent of a crowd, and what its processes share. */
#include "crowd.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int stopped; /* Atomic. */

static void stop(int signal)
{
    (void)signal;
    __atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
}

/* ---- A process ---- */

void crowd_caller(const struct crowd *crowd, unsigned life, unsigned number,
                  struct idem_store *store, struct caller *caller)
{
    unsigned who = life * crowd->threads + number + 1;
    char path[4096];

    memset(caller, 0, sizeof(*caller));
    caller->store = store;
    caller->rng.state = (uint64_t)crowd->seed * 1000003 + who;
    caller->calls = crowd->calls;
    caller->keys = crowd->keys;
    caller->stopped = &stopped;
    if (snprintf(path, sizeof(path), "%s/history-%u-%u", crowd->into, life,
                 number) >= (int)sizeof(path)) {
        abort();
    }
    if (!writer_open(&caller->writer, path, who, /* copies= */ false)) {
        perror(path);
        exit(1);
    }
}

struct job {
    struct caller *caller;
    void (*run)(struct caller *caller);
};

static void *run_job(void *arg)
{
    struct job *job = arg;

    job->run(job->caller);
    return NULL;
}

void crowd_threads(struct caller *const *callers, unsigned n,
                   void (*run)(struct caller *caller))
{
    struct job jobs[CROWD_THREADS_MAX];
    pthread_t threads[CROWD_THREADS_MAX];
    unsigned i;

    for (i = 0; i < n; i++) {
        jobs[i] = (struct job){callers[i], run};
        if (pthread_create(&threads[i], NULL, run_job, &jobs[i]) != 0) {
            abort();
        }
    }
    for (i = 0; i < n; i++) {
        (void)pthread_join(threads[i], NULL);
        writer_close(&callers[i]->writer);
    }
}

/* ---- Their parent ---- */

static pid_t start(const struct crowd *crowd, unsigned place, unsigned life)
{
    sigset_t term;
    sigset_t before;
    pid_t pid;

    /* A signal to stop would kill it before it has its handler. */
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, &before);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGTERM, stop);
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        exit(crowd->live(crowd, place, life));
    }
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

static int64_t read_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Returns the place whose process has ended; -1: none has before the next kill. */
static int wait_for(const struct crowd *crowd, pid_t *pids, int *ret_status)
{
    struct timespec tick = {0, 2000000};
    int64_t until_ms = read_ms() + crowd->every_ms;
    unsigned i;

    for (;;) {
        pid_t pid = waitpid(-1, ret_status, WNOHANG);

        for (i = 0; pid > 0 && i < crowd->processes; i++) {
            if (pids[i] == pid) {
                pids[i] = 0;
                return (int)i;
            }
        }
        if (read_ms() >= until_ms) {
            return -1;
        }
        (void)nanosleep(&tick, NULL);
    }
}

static void send_all(const struct crowd *crowd, const pid_t *pids, int signal)
{
    unsigned i;

    for (i = 0; i < crowd->processes; i++) {
        if (pids[i] > 0) {
            (void)kill(pids[i], signal);
        }
    }
}

/* Kills a process, if the chosen place is not empty. */
static bool kill_one(const struct crowd *crowd, const pid_t *pids,
                     struct rng *rng)
{
    pid_t pid = pids[rng_below(rng, crowd->processes)];

    return pid > 0 && kill(pid, SIGKILL) == 0;
}

/* Stops a process, if the chosen place has one that is awake, and sets @wake_ms of the place
 * to the time of its wake-up. */
static bool stop_one(const struct crowd *crowd, const pid_t *pids,
                     int64_t *wake_ms, struct rng *rng)
{
    unsigned place = rng_below(rng, crowd->processes);
    unsigned least_ms = crowd->pause_ms / 30;

    if (pids[place] <= 0 || wake_ms[place] != 0 ||
        kill(pids[place], SIGSTOP) != 0) {
        return false;
    }
    wake_ms[place] =
        read_ms() + least_ms + rng_below(rng, crowd->pause_ms - least_ms + 1);
    return true;
}

/* Wakes the processes that have slept long enough. True: all are awake. */
static bool wake(const struct crowd *crowd, const pid_t *pids, int64_t *wake_ms)
{
    bool all = true;
    unsigned i;

    for (i = 0; i < crowd->processes; i++) {
        if (wake_ms[i] != 0 && read_ms() >= wake_ms[i]) {
            (void)kill(pids[i], SIGCONT);
            wake_ms[i] = 0;
        }
        all = all && wake_ms[i] == 0;
    }
    return all;
}

static int run(const struct crowd *crowd)
{
    pid_t pids[CROWD_PROCESSES_MAX];
    int64_t wake_ms[CROWD_PROCESSES_MAX] = {0};
    struct rng rng = {crowd->seed};
    unsigned started = 0;
    unsigned killed = 0;
    unsigned paused = 0;
    unsigned running = crowd->processes;
    bool failed = false;

    while (started < crowd->processes) {
        pids[started] = start(crowd, started, started);
        started++;
    }
    while (running > 0) {
        int status = 0;
        int ended = wait_for(crowd, pids, &status);
        bool awake = wake(crowd, pids, wake_ms);

        if (ended >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
            pids[ended] = start(crowd, (unsigned)ended, started++);
        } else if (ended >= 0) {
            failed = failed || status != 0;
            running--;
        } else if (killed < crowd->kills) {
            killed += kill_one(crowd, pids, &rng);
        } else if (paused < crowd->pauses) {
            paused += stop_one(crowd, pids, wake_ms, &rng);
        } else if (awake && crowd->until_killed && killed + paused > 0) {
            send_all(crowd, pids, SIGTERM);
        }
    }
    printf("%u processes, %u of them killed, %u pauses\n", started, killed,
           paused);
    return failed ? 1 : 0;
}

/* ---- Options ---- */

enum {
    OPTIONS_MAX = 20
};

static unsigned number(const char *text, unsigned most)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*end != '\0' || n > most) {
        fprintf(stderr, "%s: not a number of at most %u\n", text, most);
        exit(64);
    }
    return (unsigned)n;
}

/* False: the options are not valid. */
static bool read_options(int argc, char **argv, struct crowd *crowd,
                         const struct option *flags)
{
    const struct {
        const char *name;
        unsigned *value;
        unsigned most;
    } numbers[] = {
        {"processes", &crowd->processes, CROWD_PROCESSES_MAX},
        {"threads", &crowd->threads, CROWD_THREADS_MAX},
        {"calls", &crowd->calls, 10000000},
        {"keys", &crowd->keys, 1000},
        {"seed", &crowd->seed, UINT32_MAX},
        {"kills", &crowd->kills, 1000000},
        {"pauses", &crowd->pauses, 1000000},
        {"every", &crowd->every_ms, 60000},
    };
    struct option options[OPTIONS_MAX] = {
        {"store", required_argument, NULL, 's'},
        {"into", required_argument, NULL, 'i'},
    };
    const int n = sizeof(numbers) / sizeof(numbers[0]);
    struct option *next = options + 2;
    int c;

    for (c = 0; c < n; c++) {
        *next++ =
            (struct option){numbers[c].name, required_argument, NULL, c + 1};
    }
    while (flags->name != NULL && next < options + OPTIONS_MAX - 1) {
        *next++ = *flags++;
    }
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == '?') {
            return false;
        } else if (c == 's') {
            crowd->store = optarg;
        } else if (c == 'i') {
            crowd->into = optarg;
        } else if (c > 0) {
            *numbers[c - 1].value = number(optarg, numbers[c - 1].most);
        }
    }
    return crowd->store != NULL && crowd->into != NULL &&
           crowd->processes > 0 && crowd->threads > 0 && crowd->keys > 0;
}

int crowd_main(int argc, char **argv, struct crowd *crowd,
               const struct option *flags, const char *usage)
{
    if (!read_options(argc, argv, crowd, flags)) {
        (void)fputs(usage, stderr);
        return 64;
    }
    if (mkdir(crowd->into, 0700) != 0 && errno != EEXIST) {
        perror(crowd->into);
        return 1;
    }
    return run(crowd);
}
