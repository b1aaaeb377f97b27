/* Calls to the system that fail, or kill, when a test says so. */
#include "calls.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct {
    enum calls_do what;
    long left; /* Negative: never. */
    bool on;
    bool hit;
    int why;
} fault = {.left = -1};

static long made;
static long names;
static unsigned flushes;

long calls_made(void)
{
    return made;
}

long calls_names(void)
{
    return names;
}

unsigned calls_flushes(void)
{
    return flushes;
}

void calls_fail(enum calls_do what, long n, bool on, int why)
{
    fault.what = what;
    fault.left = n;
    fault.on = on;
    fault.hit = false;
    fault.why = why;
    made = 0;
    names = 0;
    flushes = 0;
}

bool calls_fail_never(void)
{
    fault.left = -1;
    return fault.hit;
}

/* What is to become of this call. */
enum due {
    WELL,
    FAILS, /* errno is set. */
    SHORT,
    DIES_AFTER
};

static enum due before(void)
{
    made++;
    if (fault.left != 0) {
        fault.left -= fault.left > 0;
        return WELL;
    }
    fault.hit = true;
    fault.left = fault.on ? 0 : -1;
    switch (fault.what) {
    case CALLS_KILL_BEFORE:
        (void)kill(getpid(), SIGKILL);
        break;
    case CALLS_FAIL:
        errno = fault.why;
        return FAILS;
    case CALLS_SHORT:
        return SHORT;
    case CALLS_KILL_AFTER:
        break;
    }
    return DIES_AFTER;
}

static void after(enum due due)
{
    if (due == DIES_AFTER) {
        (void)kill(getpid(), SIGKILL);
    }
}

#define WRAP(type, name, failed, params, args)                                 \
    type __real_##name params;                                                 \
    type __wrap_##name params;                                                 \
    type __wrap_##name params                                                  \
    {                                                                          \
        enum due due = before();                                               \
        type rc = due == FAILS ? failed : __real_##name args;                  \
                                                                               \
        after(due);                                                            \
        return rc;                                                             \
    }

WRAP(int, open64, -1, (const char *path, int flags, mode_t mode),
     (path, flags, mode))
WRAP(int, openat64, -1, (int fd, const char *path, int flags, mode_t mode),
     (fd, path, flags, mode))
WRAP(int, mkdir, -1, (const char *path, mode_t mode), (path, mode))
WRAP(int, fstat64, -1, (int fd, struct stat64 *st), (fd, st))
WRAP(int, fstatat64, -1,
     (int fd, const char *path, struct stat64 *st, int flags),
     (fd, path, st, flags))
WRAP(int, flock, -1, (int fd, int how), (fd, how))

static int note_flush(void)
{
    flushes++;
    return 0;
}

WRAP(int, fsync, -1, (int fd), (fd) + note_flush())
WRAP(int, renameat, -1, (int a, const char *from, int b, const char *to),
     (a, from, b, to))
WRAP(ssize_t, pread64, -1, (int fd, void *buf, size_t len, off64_t at),
     (fd, buf, len, at))
WRAP(DIR *, fdopendir, NULL, (int fd), (fd))
static DIR *note_name(DIR *stream)
{
    names++;
    return stream;
}

WRAP(struct dirent64 *, readdir64, NULL, (DIR * stream), (note_name(stream)))

static struct {
    bool given;
    uint64_t all;
    uint64_t available;
} disk;

void calls_disk(uint64_t all, uint64_t available)
{
    disk.given = true;
    disk.all = all;
    disk.available = available;
}

void calls_disk_is_real(void)
{
    disk.given = false;
}

int __real_fstatvfs64(int fd, struct statvfs64 *fs);
int __wrap_fstatvfs64(int fd, struct statvfs64 *fs);
int __wrap_fstatvfs64(int fd, struct statvfs64 *fs)
{
    enum due due = before();
    int rc = due == FAILS ? -1 : __real_fstatvfs64(fd, fs);

    if (rc == 0 && disk.given) {
        fs->f_frsize = 4096;
        fs->f_blocks = disk.all / 4096;
        fs->f_bavail = disk.available / 4096;
    }
    after(due);
    return rc;
}

/* What has failed is tidied up. */
int __real_unlinkat(int fd, const char *path, int flags);
int __wrap_unlinkat(int fd, const char *path, int flags);
int __wrap_unlinkat(int fd, const char *path, int flags)
{
    enum due due = fault.what != CALLS_FAIL ? before() : WELL;
    int rc = __real_unlinkat(fd, path, flags);

    after(due);
    return rc;
}

ssize_t __real_pwrite64(int fd, const void *buf, size_t len, off64_t at);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off64_t at);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off64_t at)
{
    enum due due = before();
    ssize_t rc;

    /* One that is killed here has written no more than half of it. */
    len = due >= SHORT ? (len + 1) / 2 : len;
    rc = due == FAILS ? -1 : __real_pwrite64(fd, buf, len, at);
    after(due);
    return rc;
}
