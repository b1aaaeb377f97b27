/* Provides closefrom() if the C library lacks it. Programs call it after fork(), so it
 * must not allocate. */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum {
    MOST = 1 << 20 /* The kernel's own default limit for descriptors. */
};

/* Before Linux 5.9 this closes each descriptor by itself, up to the limit of the
 * process. It misses a descriptor above the limit, which the process opened before it
 * lowered the limit. */
void closefrom(int lowest)
{
    struct rlimit limit;
    int end = MOST;
    int fd;

    if (syscall(SYS_close_range, (unsigned)lowest, ~0u, 0u) == 0) {
        return;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < MOST) {
        end = (int)limit.rlim_max;
    }
    for (fd = lowest; fd < end; fd++) {
        (void)close(fd);
    }
}
