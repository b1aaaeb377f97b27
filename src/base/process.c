/* Tells this process from its children, starts threads, and watches children. */
#include "base/process.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every call of a handle checks whether it crossed a fork(), and getpid() enters the
 * kernel each time. So this keeps the number in a page that the kernel clears in a
 * child (MADV_WIPEONFORK); no other way notices every fork. */

/* The page; NULL: not mapped yet, or this kernel cannot. */
static long *kept;

static long *make_page(void)
{
    const size_t len = sizeof(long); /* The kernel makes it a page. */
    long *none = NULL;
    long *page = mmap(NULL, len, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        return NULL;
    }
    if (madvise(page, len, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, len);
        return NULL;
    }
    if (!__atomic_compare_exchange_n(&kept, &none, page, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        (void)munmap(page, len);
        return none;
    }
    return page;
}

long idem__process(void)
{
    long *page = __atomic_load_n(&kept, __ATOMIC_ACQUIRE);
    long pid = page != NULL ? __atomic_load_n(page, __ATOMIC_RELAXED) : 0;

    if (pid != 0) {
        return pid;
    }
    pid = (long)getpid();
    if (page == NULL) {
        page = make_page();
    }
    if (page != NULL) {
        __atomic_store_n(page, pid, __ATOMIC_RELAXED);
    }
    return pid;
}

/* Blocks all signals around the creation: a thread inherits the mask that its creator
 * has at that moment. */
int idem__thread_start(pthread_t *ret_thread, void *(*run)(void *arg),
                       void *arg)
{
    sigset_t all;
    sigset_t old;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(ret_thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

/* ---- Children ------------------------------------------------------------ */

int idem__child_open(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

void idem__die_with_parent(int signo)
{
    (void)prctl(PR_SET_PDEATHSIG, (long)signo, 0L, 0L, 0L);
}

int idem__adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
}
