/* Does another process see a lock of ours on this file? */
#include "store/sqlite/lock_test.h"

#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum {
    TEST_BYTE = 2, /* After those of lock.c. */
    STACK = 16 * 1024
};

struct other {
    int fd;
    short found; /* The type of the lock that is in its way. */
    char stack[STACK] __attribute__((aligned(16)));
};

/* For all threads of a process a lock is one: who lets it go, lets it go. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct flock test_byte(short type)
{
    return (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = TEST_BYTE,
        .l_len = 1,
    };
}

/* In a process that shares our memory, but not our descriptors, and so has no
 * lock of ours. */
static int look(void *arg)
{
    struct other *other = arg;
    struct flock range = test_byte(F_WRLCK);

    if (fcntl(other->fd, F_GETLK, &range) == 0) {
        other->found = range.l_type;
    }
    return 0;
}

/* 0, or an errno. No signal handler of the caller's must run in there. */
static int look_as_other(struct other *other)
{
    sigset_t all;
    sigset_t before;
    int rc = 0;
    pid_t pid;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = clone(look, other->stack + STACK, CLONE_VM | CLONE_VFORK, other);
    if (pid < 0) {
        rc = errno;
    }
    while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR) {
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* With the mutex held. 0, or an errno; ENOLCK: the lock was not seen. */
static int test(struct other *other, int *ret_clone_rc)
{
    struct flock range = test_byte(F_WRLCK);

    if (fcntl(other->fd, F_SETLK, &range) != 0) {
        /* Another process tests too, and we see it. */
        return errno == EAGAIN || errno == EACCES ? 0 : errno;
    }
    *ret_clone_rc = look_as_other(other);
    range = test_byte(F_UNLCK);
    (void)fcntl(other->fd, F_SETLK, &range);
    return other->found == F_WRLCK ? 0 : ENOLCK;
}

int idem__lock_test_file(int fd, struct idem_error *error)
{
    struct other other = {.fd = fd, .found = F_UNLCK};
    int clone_rc = 0;
    int rc;

    (void)pthread_mutex_lock(&mutex);
    rc = test(&other, &clone_rc);
    (void)pthread_mutex_unlock(&mutex);
    if (clone_rc != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "cannot test the locks of the store's file system: "
                           "%s",
                           strerror(clone_rc));
    }
    if (rc != 0) {
        return idem__error(error, IDEM_ECONFIG,
                           "the locks of the store's file system cannot be "
                           "trusted, another process does not see them (%s): "
                           "use a local disk",
                           strerror(rc));
    }
    return 0;
}
