/* Sleeping until a word changes: woken by a thread or by another process, or at
 * the deadline. */
#include "base/wait.h"

#include "base/host.h"
#include "test.h"
#include "threads.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct word {
    uint32_t value;
    enum idem__futex_reach reach;
};

static void change(void *ctx)
{
    struct word *word = ctx;

    sleep_ms(20);
    __atomic_store_n(&word->value, 1, __ATOMIC_RELEASE);
    idem__futex_wake(&word->value, word->reach);
}

static void sleep_on(struct word *word)
{
    while (__atomic_load_n(&word->value, __ATOMIC_ACQUIRE) == 0) {
        assert_true(idem__futex_wait(&word->value, 0, IDEM_NEVER, word->reach));
    }
}

/* A word that has changed already is not slept on. */
TEST(wait, looksFirst)
{
    uint32_t word = 1;

    assert_true(idem__futex_wait(&word, 0, IDEM_NEVER, IDEM__FUTEX_PROCESS));
}

/* At the deadline it gives up, not before; also at one that is over. */
TEST(wait, endsAtTheDeadline)
{
    int64_t since_ns = idem__mono_ns();
    uint32_t word = 0;

    assert_false(idem__futex_wait(&word, 0, since_ns + idem__time_ns(30),
                                  IDEM__FUTEX_PROCESS));
    assert_true(idem__mono_ns() - since_ns >= idem__time_ns(30));
    assert_false(idem__futex_wait(&word, 0, since_ns, IDEM__FUTEX_PROCESS));
    assert_false(idem__futex_wait(&word, 0, 0, IDEM__FUTEX_HOST));
}

/* A thread wakes another. */
TEST(wake, reachesAThread)
{
    struct word word = {0, IDEM__FUTEX_PROCESS};
    struct thread *thread = thread_start(change, &word);

    sleep_on(&word);
    thread_join(thread);
}

/* A process wakes another, over memory that both have mapped. */
TEST(wake, reachesAProcess)
{
    struct word *word = mmap(NULL, sizeof(*word), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t pid;

    assert_true(word != MAP_FAILED);
    word->reach = IDEM__FUTEX_HOST;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        change(word);
        _exit(0);
    }
    sleep_on(word);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)munmap(word, sizeof(*word));
}

/* Milliseconds become nanoseconds, and what is for ever stays so. */
TEST(time, knowsNever)
{
    assert_int_equal(idem__time_ns(0), 0);
    assert_int_equal(idem__time_ns(1500), 1500000000);
    assert_int_equal(idem__time_ns(IDEM_NEVER), IDEM_NEVER);
    assert_int_equal(idem__time_ns(IDEM_NEVER / 1000000 + 1), IDEM_NEVER);
}
