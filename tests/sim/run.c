/* Processes, what they share, and signals. */
#include "run.h"

#include "heap.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct world run_world;

static run_say_fn *say_violation;

const char *mode_name(enum mode mode)
{
    static const char *const names[MODES] = {
        [EMBEDDED] = "embedded",
        [REMOTE] = "remote",
        [DYNAMODB] = "dynamodb",
        [POSTGRES] = "postgres",
    };

    return names[mode];
}

void run_line(const char *kind, const char *what, uint64_t n)
{
    printf("%-8s %-34s %" PRIu64 "\n", kind, what, n);
}

static void on_signal(int signo)
{
    say_violation("CRASH", strsignal(signo));
    _exit(1);
}

void run_catch_signals(run_say_fn *say)
{
    static char stack[64 * 1024];
    stack_t where = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

    say_violation = say;
    (void)sigaltstack(&where, NULL);
    (void)sigaction(SIGABRT, &action, NULL);
    (void)sigaction(SIGSEGV, &action, NULL);
    (void)sigaction(SIGBUS, &action, NULL);
}

static void start(const struct run *run, run_fn *job, unsigned no, void *shared)
{
    int rc;

    (void)fflush(stdout);
    if (fork() == 0) {
        heap_install();
        rc = job(run, no, shared);
        (void)fflush(stdout);
        _exit(rc);
    }
}

bool run_jobs(const struct run *run, run_fn *job, size_t len, void **ret_shared)
{
    void *shared = mmap(NULL, len, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool fine = true;
    unsigned i;

    if (shared == MAP_FAILED) {
        perror("sim");
        exit(71);
    }
    for (i = 0; i < run->jobs; i++) {
        start(run, job, i, shared);
    }
    for (i = 0; i < run->jobs; i++) {
        int status = 0;

        if (wait(&status) < 0 || status != 0) {
            fine = false;
        }
    }
    *ret_shared = shared;
    return fine;
}
