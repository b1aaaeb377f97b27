/* Fails the n-th call of a function of the C library, and can then kill. */
#include "nth.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static struct nth_page *page;

static const char *const names[] = {
    "alloc", "open",   "read",   "write",  "sync", "truncate",
    "stat",  "lock",   "map",    "fork",   "pipe", "send",
    "clock", "random", "thread", "change", NULL,
};

const char *nth_name(int class)
{
    return names[class];
}

void nth_use(struct nth_page *new_page)
{
    page = new_page;
}

void nth_fail(enum nth_class class, int64_t n, bool on, int error)
{
    page->class = (int32_t) class;
    page->on = on;
    page->error = error;
    page->failed = 0;
    __atomic_store_n(&page->left, n, __ATOMIC_SEQ_CST);
}

void nth_stop(void)
{
    __atomic_store_n(&page->left, -1, __ATOMIC_SEQ_CST);
}

/* ---- Counting ---------------------------------------------------------- */

static void die(void)
{
    page->killed = (int64_t)getpid();
    (void)syscall(SYS_kill, getpid(), SIGKILL);
}

/* Counts down to the planned kill. */
static void live_on(void)
{
    if (page->failed > 0 && page->kill > 0 &&
        __atomic_sub_fetch(&page->kill, 1, __ATOMIC_SEQ_CST) == 0) {
        die();
    }
}

/* True for the n-th call, and with @on for all after it. */
static bool is_due(void)
{
    int64_t left = __atomic_load_n(&page->left, __ATOMIC_SEQ_CST);

    while (left >= 0) {
        int64_t next = left > 0 ? left - 1 : (page->on ? 0 : -1);

        if (__atomic_compare_exchange_n(&page->left, &left, next, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            return left == 0;
        }
    }
    return false;
}

/* True if this call must fail; errno says why. */
static bool fails(enum nth_class class)
{
    if (page == NULL) {
        return false;
    }
    live_on();
    (void)__atomic_add_fetch(&page->calls[class], 1, __ATOMIC_SEQ_CST);
    if (page->class != (int32_t) class || !is_due()) {
        return false;
    }
    if (page->kill == 0) {
        die();
    }
    (void)__atomic_add_fetch(&page->failed, 1, __ATOMIC_SEQ_CST);
    errno = page->error;
    return true;
}

static void count_block(int64_t by)
{
    if (page != NULL) {
        (void)__atomic_add_fetch(&page->blocks, by, __ATOMIC_SEQ_CST);
    }
}

/* Returns the next definition of a function, which ours hides. */
static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL) {
        abort();
    }
    return found;
}

/* ISO C has no other way from an object pointer to a function's. */
#define REAL(name)                                                             \
    static __typeof__(name) *real;                                             \
    if (real == NULL) {                                                        \
        void *found = find(#name);                                             \
        memcpy(&real, &found, sizeof(real));                                   \
    }

#define HOOK(type, name, class, failure, params, args)                         \
    type name params;                                                          \
    type name params                                                           \
    {                                                                          \
        REAL(name)                                                             \
        return fails(class) ? (failure) : real args;                           \
    }

/* ---- Memory ------------------------------------------------------------ */

/* dlsym() may allocate before we have found the real malloc. */
static char early[4096] __attribute__((aligned(16)));
static size_t early_len;

static bool is_early(const void *ptr)
{
    return (const char *)ptr >= early &&
           (const char *)ptr < early + sizeof(early);
}

static void *early_alloc(size_t len)
{
    void *ptr = early + early_len;

    early_len += (len + 15) & ~(size_t)15;
    if (early_len > sizeof(early)) {
        abort();
    }
    return ptr;
}

static __typeof__(malloc) *real_malloc;
static __typeof__(calloc) *real_calloc;
static __typeof__(realloc) *real_realloc;
static __typeof__(free) *real_free;

static bool find_heap(void)
{
    static bool finding;
    void *found[4];

    if (real_free != NULL) {
        return true;
    }
    if (finding) {
        return false;
    }
    finding = true;
    found[0] = find("malloc");
    found[1] = find("calloc");
    found[2] = find("realloc");
    found[3] = find("free");
    memcpy(&real_malloc, &found[0], sizeof(found[0]));
    memcpy(&real_calloc, &found[1], sizeof(found[1]));
    memcpy(&real_realloc, &found[2], sizeof(found[2]));
    memcpy(&real_free, &found[3], sizeof(found[3]));
    return true;
}

static void *counted(void *ptr)
{
    if (ptr != NULL) {
        count_block(1);
    }
    return ptr;
}

void *malloc(size_t len)
{
    if (!find_heap()) {
        return early_alloc(len);
    }
    return fails(NTH_ALLOC) ? NULL : counted(real_malloc(len));
}

void *calloc(size_t n, size_t len)
{
    if (!find_heap()) {
        return early_alloc(n * len);
    }
    return fails(NTH_ALLOC) ? NULL : counted(real_calloc(n, len));
}

void *realloc(void *ptr, size_t len)
{
    void *grown;

    if (!find_heap() || is_early(ptr)) {
        abort();
    }
    if (fails(NTH_ALLOC)) {
        return NULL;
    }
    grown = real_realloc(ptr, len);
    return ptr == NULL ? counted(grown) : grown;
}

void free(void *ptr)
{
    int why = errno;

    if (ptr != NULL && !is_early(ptr) && find_heap()) {
        count_block(-1);
        real_free(ptr);
    }
    errno = why;
}

void *aligned_alloc(size_t to, size_t len)
{
    REAL(aligned_alloc)

    return fails(NTH_ALLOC) ? NULL : counted(real(to, len));
}

int posix_memalign(void **ret, size_t to, size_t len)
{
    REAL(posix_memalign)
    int rc = fails(NTH_ALLOC) ? ENOMEM : real(ret, to, len);

    count_block(rc == 0);
    return rc;
}

/* ---- Files ------------------------------------------------------------- */

/* Both names of a function, with offsets of either size. */
#define HOOK_BOTH(type, name, class, failure, params, args)                    \
    HOOK(type, name, class, failure, params, args)                             \
    HOOK(type, name##64, class, failure, params, args)

#define OPEN(name, params, args)                                               \
    int name params                                                            \
    {                                                                          \
        REAL(name)                                                             \
        va_list rest;                                                          \
        mode_t mode;                                                           \
                                                                               \
        va_start(rest, flags);                                                 \
        mode = va_arg(rest, mode_t);                                           \
        va_end(rest);                                                          \
        return fails(NTH_OPEN) ? -1 : real args;                               \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...),
     (dir, path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...),
     (dir, path, flags, mode))

/* _FORTIFY_SOURCE turns calls of open() into these. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
HOOK(int, __open_2, NTH_OPEN, -1, (const char *path, int flags), (path, flags))
HOOK(int, __open64_2, NTH_OPEN, -1, (const char *path, int flags),
     (path, flags))
HOOK_BOTH(int, mkostemp, NTH_OPEN, -1, (char *path, int flags), (path, flags))

HOOK(ssize_t, read, NTH_READ, -1, (int fd, void *buf, size_t len),
     (fd, buf, len))
HOOK_BOTH(ssize_t, pread, NTH_READ, -1,
          (int fd, void *buf, size_t len, off_t at), (fd, buf, len, at))

/* A write that fails may have written some of it. */
ssize_t write(int fd, const void *buf, size_t len)
{
    REAL(write)

    if (!fails(NTH_WRITE)) {
        return real(fd, buf, len);
    }
    (void)!real(fd, buf, len / 2);
    errno = page->error;
    return -1;
}

#define PWRITE(name)                                                           \
    ssize_t name(int fd, const void *buf, size_t len, off_t at)                \
    {                                                                          \
        REAL(name)                                                             \
                                                                               \
        if (!fails(NTH_WRITE)) {                                               \
            return real(fd, buf, len, at);                                     \
        }                                                                      \
        (void)!real(fd, buf, len / 2, at);                                     \
        errno = page->error;                                                   \
        return -1;                                                             \
    }

PWRITE(pwrite)
PWRITE(pwrite64)

HOOK(int, fsync, NTH_SYNC, -1, (int fd), (fd))
HOOK(int, fdatasync, NTH_SYNC, -1, (int fd), (fd))
HOOK_BOTH(int, ftruncate, NTH_TRUNCATE, -1, (int fd, off_t len), (fd, len))
HOOK_BOTH(int, fallocate, NTH_TRUNCATE, -1,
          (int fd, int mode, off_t at, off_t len), (fd, mode, at, len))

HOOK(int, stat, NTH_STAT, -1, (const char *path, struct stat *st), (path, st))
HOOK(int, lstat, NTH_STAT, -1, (const char *path, struct stat *st), (path, st))
HOOK(int, fstat, NTH_STAT, -1, (int fd, struct stat *st), (fd, st))
HOOK(int, stat64, NTH_STAT, -1, (const char *path, struct stat64 *st),
     (path, st))
HOOK(int, lstat64, NTH_STAT, -1, (const char *path, struct stat64 *st),
     (path, st))
HOOK(int, fstat64, NTH_STAT, -1, (int fd, struct stat64 *st), (fd, st))
HOOK(int, statfs, NTH_STAT, -1, (const char *path, struct statfs *fs),
     (path, fs))
HOOK(int, statfs64, NTH_STAT, -1, (const char *path, struct statfs64 *fs),
     (path, fs))
HOOK(int, access, NTH_STAT, -1, (const char *path, int mode), (path, mode))
HOOK(ssize_t, readlink, NTH_STAT, -1, (const char *path, char *buf, size_t len),
     (path, buf, len))
HOOK(char *, getcwd, NTH_STAT, NULL, (char *buf, size_t len), (buf, len))

HOOK(int, chmod, NTH_CHANGE, -1, (const char *path, mode_t mode), (path, mode))
HOOK(int, fchmod, NTH_CHANGE, -1, (int fd, mode_t mode), (fd, mode))
HOOK(int, fchown, NTH_CHANGE, -1, (int fd, uid_t uid, gid_t gid),
     (fd, uid, gid))
HOOK(int, lchown, NTH_CHANGE, -1, (const char *path, uid_t uid, gid_t gid),
     (path, uid, gid))
HOOK(int, unlink, NTH_CHANGE, -1, (const char *path), (path))
HOOK(int, rename, NTH_CHANGE, -1, (const char *from, const char *to),
     (from, to))
HOOK(int, mkdir, NTH_CHANGE, -1, (const char *path, mode_t mode), (path, mode))

/* To unlock the whole of a lock needs no memory, so it cannot fail. */
static bool takes_lock(int cmd, const void *arg)
{
    switch (cmd) {
    case F_GETLK:
    case F_OFD_GETLK:
        return true;
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        return ((const struct flock *)arg)->l_type != F_UNLCK;
    default:
        return false;
    }
}

#define FCNTL(name)                                                            \
    int name(int fd, int cmd, ...)                                             \
    {                                                                          \
        REAL(name)                                                             \
        va_list rest;                                                          \
        void *arg;                                                             \
                                                                               \
        va_start(rest, cmd);                                                   \
        arg = va_arg(rest, void *);                                            \
        va_end(rest);                                                          \
        return takes_lock(cmd, arg) && fails(NTH_LOCK) ? -1                    \
                                                       : real(fd, cmd, arg);   \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

HOOK_BOTH(void *, mmap, NTH_MAP, MAP_FAILED,
          (void *to, size_t len, int prot, int flags, int fd, off_t at),
          (to, len, prot, flags, fd, at))

/* ---- Processes, descriptors, clocks ------------------------------------ */

HOOK(pid_t, fork, NTH_FORK, -1, (void), ())

/* No function can wrap vfork(), which returns twice into one frame. */
pid_t vfork(void)
{
    REAL(fork)

    return fails(NTH_FORK) ? -1 : real();
}

int pthread_create(pthread_t *ret, const pthread_attr_t *attr,
                   void *(*start)(void *), void *arg)
{
    REAL(pthread_create)

    return fails(NTH_THREAD) ? page->error : real(ret, attr, start, arg);
}

HOOK(int, pipe, NTH_PIPE, -1, (int fds[2]), (fds))
HOOK(int, pipe2, NTH_PIPE, -1, (int fds[2], int flags), (fds, flags))
HOOK(int, socketpair, NTH_PIPE, -1,
     (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds))
HOOK(int, eventfd, NTH_PIPE, -1, (unsigned value, int flags), (value, flags))
HOOK(int, signalfd, NTH_PIPE, -1, (int fd, const sigset_t *set, int flags),
     (fd, set, flags))
HOOK(int, timerfd_create, NTH_PIPE, -1, (int clock, int flags), (clock, flags))
HOOK(int, memfd_create, NTH_PIPE, -1, (const char *name, unsigned flags),
     (name, flags))
HOOK(ssize_t, sendmsg, NTH_SEND, -1,
     (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))
HOOK(ssize_t, recvmsg, NTH_SEND, -1, (int fd, struct msghdr *msg, int flags),
     (fd, msg, flags))
HOOK(int, clock_gettime, NTH_CLOCK, -1, (clockid_t clock, struct timespec *ts),
     (clock, ts))
HOOK(int, gettimeofday, NTH_CLOCK, -1, (struct timeval * tv, void *zone),
     (tv, zone))
HOOK(ssize_t, getrandom, NTH_RANDOM, -1,
     (void *buf, size_t len, unsigned flags), (buf, len, flags))

/* SQLite sleeps ten seconds in all before it gives up a lock. Once every call fails, no
 * wait can help, so it is short. */
int usleep(useconds_t us)
{
    REAL(usleep)

    return page != NULL && page->on && page->failed > 0 ? real(us / 64)
                                                        : real(us);
}

/* ---- Preloaded --------------------------------------------------------- */

/* The page is the file NTH_PAGE. Only the program NTH_PROGRAM counts in it: programs that it
 * starts inherit both variables, and are not under test. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("NTH_PAGE");
    const char *program = getenv("NTH_PROGRAM");
    char self[4096];
    ssize_t len;
    void *map;
    int fd;

    if (path == NULL || program == NULL) {
        return;
    }
    len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[len < 0 ? 0 : len] = '\0';
    if (strcmp(self, program) != 0) {
        return;
    }
    fd = open(path, O_RDWR | O_CLOEXEC);
    map = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        abort();
    }
    (void)close(fd);
    page = map;
}
