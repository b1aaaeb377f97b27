/* Which process this is, in a parent and in its children. */
#include "base/process.h"

#include "test.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
