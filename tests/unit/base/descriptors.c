/* Descriptors that say something: events, timers, watches of several, children. */
#include "base/host.h"

#include "base/process.h"
#include "base/wait.h"
#include "test.h"
#include "threads.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool readable(int fd, int ms)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};

    return poll(&pollfd, 1, ms) == 1;
}

/* An event is readable from the first time it is set until it is cleared. */
TEST(event, isReadableWhileItIsSet)
{
    int event = idem__event_open();

    assert_true(event >= 0);
    assert_false(readable(event, 0));
    idem__event_clear(event);
    idem__event_set(event);
    idem__event_set(event);
    assert_true(readable(event, 0));
    idem__event_clear(event);
    assert_false(readable(event, 0));
    (void)close(event);
}

/* A timer is readable at its moment and not before, also at one that is over. */
TEST(timer, isReadableInTime)
{
    int timer = idem__timer_open();
    int64_t since_ms = idem__mono_ms();

    assert_true(timer >= 0);
    assert_false(readable(timer, 0));
    idem__timer_set(timer, since_ms + 20);
    assert_true(readable(timer, -1));
    assert_true(idem__mono_ms() >= since_ms + 20);
    idem__timer_set(timer, IDEM_NEVER);
    assert_false(readable(timer, 0));
    idem__timer_set(timer, 0);
    assert_true(readable(timer, -1));
    (void)close(timer);
}

/* A moment after 2038 is not one of 1901. */
TEST(timer, hasSecondsOf64Bits)
{
    int timer = idem__timer_open();

    idem__timer_set(timer, (INT64_C(1) << 33) * 1000);
    assert_false(readable(timer, 20));
    (void)close(timer);
}

/* A watch says which of several is ready, and for what. */
TEST(watch, saysWhatIsReady)
{
    int watch = idem__watch_open();
    int a = idem__event_open();
    int b = idem__event_open();
    struct pollfd ready[2];

    assert_int_equal(idem__watch_add(watch, a, POLLIN), 0);
    assert_int_equal(idem__watch_add(watch, b, POLLIN), 0);
    assert_int_equal(idem__watch_wait(watch, ready, 2, 0), 0);
    assert_false(readable(watch, 0));
    idem__event_set(b);
    assert_true(readable(watch, 0));
    assert_int_equal(idem__watch_wait(watch, ready, 2, 0), 1);
    assert_int_equal(ready[0].fd, b);
    assert_int_equal(ready[0].revents, POLLIN);

    assert_int_equal(idem__watch_change(watch, a, POLLIN | POLLOUT), 0);
    assert_int_equal(idem__watch_remove(watch, b), 0);
    assert_int_equal(idem__watch_wait(watch, ready, 2, -1), 1);
    assert_int_equal(ready[0].fd, a);
    assert_int_equal(ready[0].revents, POLLOUT);
    (void)close(watch);
    (void)close(a);
    (void)close(b);
}

static pid_t start(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (;;) {
            (void)pause();
        }
    }
    assert_true(pid > 0);
    return pid;
}

/* The descriptor of a child is readable from the end of the child on, also after
 * another part of the program has reaped it. */
TEST(child, endMakesItsDescriptorReadable)
{
    pid_t pid = start();
    int child = idem__child_open(pid);

    if (child < 0) {
        assert_return_code(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        skip();
    }
    assert_false(readable(child, 0));
    assert_return_code(kill(pid, SIGKILL), 0);
    assert_true(readable(child, -1));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(readable(child, 0));
    (void)close(child);
}

/* ---- Which process this is ---- */

/* 0 if a child of @child knows its own number, twice. */
static int status_of(pid_t child)
{
    int status;

    if (child == 0) {
        _exit(idem__process() == (long)getpid() &&
                      idem__process() == (long)getpid()
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Also where the C library does not see the fork. */
TEST(process, isAskedAnewInAChild)
{
    long pid = (long)getpid();

    assert_int_equal(idem__process(), pid);
    assert_int_equal(status_of(fork()), 0);
    assert_int_equal(status_of((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)),
                     0);
    assert_int_equal(idem__process(), pid);
}
