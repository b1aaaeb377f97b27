/* Which process this is.
 *
 * Every call of a handle asks whether it crossed a fork(), and getpid() goes to
 * the kernel each time. The number is kept in a page that the kernel clears in a
 * child (MADV_WIPEONFORK); no other way of learning of a fork sees all of them.
 */
#include "base/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* The page, or NULL: it was not made yet, or cannot be. */
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
