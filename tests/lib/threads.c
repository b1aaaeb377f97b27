/* Threads that start together, and children of fork(). */
#include "threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CHILD_MS = 120000
};

struct runner {
    pthread_t thread;
    pthread_barrier_t *start;
    void (*work)(void *ctx, size_t i);
    void *ctx;
    size_t i;
};

static void die(const char *what)
{
    perror(what);
    abort();
}

static void *run_one(void *arg)
{
    struct runner *runner = arg;

    (void)pthread_barrier_wait(runner->start);
    runner->work(runner->ctx, runner->i);
    return NULL;
}

void threads_run(size_t n, void (*work)(void *ctx, size_t i), void *ctx)
{
    struct runner *runners = calloc(n, sizeof(*runners));
    pthread_barrier_t start;
    size_t i;

    if (runners == NULL || pthread_barrier_init(&start, NULL, (unsigned)n)) {
        die("threads_run");
    }
    for (i = 0; i < n; i++) {
        runners[i] = (struct runner){0, &start, work, ctx, i};
        if (pthread_create(&runners[i].thread, NULL, run_one, &runners[i])) {
            die("pthread_create");
        }
    }
    for (i = 0; i < n; i++) {
        (void)pthread_join(runners[i].thread, NULL);
    }
    (void)pthread_barrier_destroy(&start);
    free(runners);
}

struct thread {
    pthread_t thread;
    void (*work)(void *ctx);
    void *ctx;
};

static void *run_alone(void *arg)
{
    struct thread *thread = arg;

    thread->work(thread->ctx);
    return NULL;
}

struct thread *thread_start(void (*work)(void *ctx), void *ctx)
{
    struct thread *thread = calloc(1, sizeof(*thread));

    if (thread == NULL) {
        die("thread_start");
    }
    thread->work = work;
    thread->ctx = ctx;
    if (pthread_create(&thread->thread, NULL, run_alone, thread) != 0) {
        die("pthread_create");
    }
    return thread;
}

void thread_join(struct thread *thread)
{
    (void)pthread_join(thread->thread, NULL);
    free(thread);
}

int child_run(int (*work)(void *ctx), void *ctx)
{
    long long until_ms = now_ms() + CHILD_MS;
    int status = 0;
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid < 0) {
        die("fork");
    }
    if (pid == 0) {
        _exit(work(ctx));
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ms() > until_ms) {
            (void)kill(pid, SIGKILL);
        }
        sleep_ms(2);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

long long now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void sleep_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&ts, NULL);
}
