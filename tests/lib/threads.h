/* Many threads at once, and children of fork(). */
#ifndef TEST_THREADS_H
#define TEST_THREADS_H

#include <stddef.h>

/* Runs @work(@ctx, 0) to @work(@ctx, @n - 1) in as many threads, which all start at the
 * same moment, and waits for them. @work must not assert anything: cmocka can end a test in
 * its own thread only. */
void threads_run(size_t n, void (*work)(void *ctx, size_t i), void *ctx);

/* Starts @work(@ctx) in a thread; thread_join() waits for it. */
struct thread;
struct thread *thread_start(void (*work)(void *ctx), void *ctx);
void thread_join(struct thread *thread);

/* Runs @work in a forked child and returns what it returned, at most 255. -1: it
 * died of a signal, or ran longer than two minutes. */
int child_run(int (*work)(void *ctx), void *ctx);

/* CLOCK_MONOTONIC. */
long long now_ms(void);
void sleep_ms(long ms);

#endif
