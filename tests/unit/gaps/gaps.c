/* Tests of src/gaps: functions that a C library may lack. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool is_old; /* The kernel has neither statx() nor close_range(). */

long __real_syscall(long number, long a, long b, long c, long d, long e);
long __wrap_syscall(long number, long a, long b, long c, long d, long e);

long __wrap_syscall(long number, long a, long b, long c, long d, long e)
{
    if (is_old && (number == SYS_statx || number == SYS_close_range)) {
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e);
}

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec at;

    (void)clock_gettime(clock, &at);
    at.tv_nsec += ms * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static bool is_over(clockid_t clock, const struct timespec *until)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return now.tv_sec > until->tv_sec ||
           (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

static void *wait_shortly(void *mutex)
{
    struct timespec until = in_ms(CLOCK_MONOTONIC, 150);
    int rc = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);

    return rc == ETIMEDOUT && is_over(CLOCK_MONOTONIC, &until) ? mutex : NULL;
}

/* A mutex that another holds is waited for until the moment on that clock; a free one
 * is taken, also when the moment is past. */
TEST(clocklock, waitsUntilTheMoment)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct timespec past = {0};
    pthread_t thread;
    void *done;

    assert_int_equal(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past),
                     0);
    assert_int_equal(pthread_create(&thread, NULL, wait_shortly, &mutex), 0);
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_ptr_equal(done, &mutex);
    assert_int_equal(pthread_mutex_unlock(&mutex), 0);
}

/* Whether a child that calls closefrom(@lowest) has exactly the descriptors below. */
static bool closes_from(int lowest)
{
    int how;
    pid_t pid = fork();

    if (pid == 0) {
        closefrom(lowest);
        _exit(fcntl(lowest - 1, F_GETFD) >= 0 && fcntl(lowest, F_GETFD) < 0 &&
                      fcntl(lowest + 1, F_GETFD) < 0
                  ? 0
                  : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return how == 0;
}

/* All from one on are closed, with close_range() and without. */
TEST(closefrom, closesAllFromOneOn)
{
    int fds[3];
    int i;

    for (i = 0; i < 3; i++) {
        fds[i] = fcntl(STDERR_FILENO, F_DUPFD, 100 + i);
        assert_int_equal(fds[i], 100 + i);
    }
    assert_true(closes_from(101));
    is_old = true;
    assert_true(closes_from(101));
    is_old = false;
    for (i = 0; i < 3; i++) {
        (void)close(fds[i]);
    }
}

/* The links of a file are those that stat() finds; without the call it fails. */
TEST(statx, isTheKernels)
{
    struct statx file;
    struct stat st;

    assert_int_equal(stat("/proc/self/exe", &st), 0);
    assert_int_equal(statx(AT_FDCWD, "/proc/self/exe", 0, STATX_NLINK, &file),
                     0);
    assert_true((file.stx_mask & STATX_NLINK) != 0);
    assert_int_equal(file.stx_nlink, st.st_nlink);
    is_old = true;
    assert_int_equal(statx(AT_FDCWD, "/proc/self/exe", 0, STATX_NLINK, &file),
                     -1);
    assert_int_equal(errno, ENOSYS);
    is_old = false;
}
