/* The lock between processes.
 *
 * Classic fcntl record locks: they vanish with their process, whatever children
 * it leaves behind, which a flock does not. SQLite's own busy handler sleeps and
 * polls without any order and was seen to starve a process for ever, so fairness
 * is made here: byte 1 is a turnstile. Whoever wants the lock (byte 0) first
 * takes the turnstile and keeps it until it has the lock. A process that lets go
 * of the lock and wants it again therefore stands behind the one that waits.
 */
#include "store/sqlite/lock.h"

#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "store/sqlite/lock_test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LOCK_BYTE = 0,
    TURNSTILE_BYTE = 1
};
enum {
    PAUSE_FIRST_NS = 30 * 1000,
    PAUSE_MAX_NS = 1000 * 1000
};

struct idem__lock {
    struct idem__lock *next;
    dev_t dev;
    ino_t ino;
    long pid; /* A child's entries are its own. */
    unsigned users;
    int fd;
    pthread_mutex_t mutex; /* Between the threads of this process. */
};

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct idem__lock *registry;

static int open_error(const char *path, struct idem_error *error)
{
    switch (errno) {
    case ENOSPC:
    case EDQUOT:
        return idem__error(error, IDEM_EFULL, "cannot create %.120s: %s", path,
                           strerror(errno));
    case ENOENT:
    case ENOTDIR:
        return idem__error(error, IDEM_ECONFIG,
                           "cannot create %.120s: make its directory first",
                           path);
    case EMFILE:
    case ENFILE:
        return idem__error(error, IDEM_EUNAVAILABLE, "cannot open %.120s: %s",
                           path, strerror(errno));
    default:
        return idem__error(error, IDEM_EDENIED, "cannot open %.120s: %s", path,
                           strerror(errno));
    }
}

static struct idem__lock *find(const struct stat *st)
{
    struct idem__lock *lock;

    for (lock = registry; lock != NULL; lock = lock->next) {
        if (lock->dev == st->st_dev && lock->ino == st->st_ino &&
            lock->pid == (long)getpid()) {
            return lock;
        }
    }
    return NULL;
}

static int add(int fd, const struct stat *st, struct idem__lock **ret_lock)
{
    struct idem__lock *lock = idem__zalloc(sizeof(*lock));

    if (lock == NULL) {
        return IDEM_ENOMEM;
    }
    if (pthread_mutex_init(&lock->mutex, NULL) != 0) {
        idem__free(lock);
        return IDEM_ENOMEM;
    }
    lock->dev = st->st_dev;
    lock->ino = st->st_ino;
    lock->pid = (long)getpid();
    lock->fd = fd;
    lock->next = registry;
    registry = lock;
    *ret_lock = lock;
    return 0;
}

/* With the registry's mutex held. An existing file is looked up before it is
 * opened, because closing a second descriptor would drop the lock. */
static int find_or_open(const char *path, const struct idem__share *share,
                        struct idem__lock **ret_lock, struct idem_error *error)
{
    struct idem__lock *lock = NULL;
    struct stat st;
    int fd;
    int rc;

    if (lstat(path, &st) == 0) {
        if (!S_ISREG(st.st_mode)) {
            return idem__error(error, IDEM_EDENIED,
                               "%.120s is not a regular file", path);
        }
        lock = find(&st);
    }
    if (lock == NULL) {
        fd = idem__path_open(path, share);
        if (fd < 0) {
            return open_error(path, error);
        }
        rc = fstat(fd, &st) != 0 ? IDEM_EUNAVAILABLE : add(fd, &st, &lock);
        if (rc != 0) {
            (void)close(fd);
            return idem__error_plain(error, rc);
        }
    }
    lock->users++;
    *ret_lock = lock;
    return 0;
}

int idem__lock_open(const char *path, const struct idem__share *share,
                    struct idem__lock **ret_lock, struct idem_error *error)
{
    int rc;

    (void)pthread_mutex_lock(&registry_mutex);
    rc = find_or_open(path, share, ret_lock, error);
    (void)pthread_mutex_unlock(&registry_mutex);
    return rc;
}

void idem__lock_close(struct idem__lock *lock)
{
    struct idem__lock **at = &registry;

    (void)pthread_mutex_lock(&registry_mutex);
    if (--lock->users == 0) {
        while (*at != lock) {
            at = &(*at)->next;
        }
        *at = lock->next;
        (void)close(lock->fd);
        (void)pthread_mutex_destroy(&lock->mutex);
        idem__free(lock);
    }
    (void)pthread_mutex_unlock(&registry_mutex);
}

/* 0, or an errno. */
static int set_byte(const struct idem__lock *lock, off_t byte, short type)
{
    struct flock range = {
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = byte,
        .l_len = 1,
    };

    while (fcntl(lock->fd, F_SETLK, &range) != 0) {
        if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* There is no timed fcntl lock without a signal, so the wait polls: at first as
 * often as a commit may end, later more seldom. */
static int take_byte(const struct idem__lock *lock, off_t byte,
                     int64_t deadline_ms)
{
    struct timespec pause = {.tv_nsec = PAUSE_FIRST_NS};
    int rc;

    while ((rc = set_byte(lock, byte, F_WRLCK)) == EAGAIN || rc == EACCES) {
        if (idem__mono_ms() >= deadline_ms) {
            return ETIMEDOUT;
        }
        (void)nanosleep(&pause, NULL);
        if (pause.tv_nsec < PAUSE_MAX_NS) {
            pause.tv_nsec += pause.tv_nsec / 4;
        }
    }
    return rc;
}

static int take_both(struct idem__lock *lock, int64_t deadline_ms)
{
    int rc = take_byte(lock, TURNSTILE_BYTE, deadline_ms);

    if (rc == 0) {
        IDEM__CRASH_POINT("sqlite/lock/turnstile");
        rc = take_byte(lock, LOCK_BYTE, deadline_ms);
        (void)set_byte(lock, TURNSTILE_BYTE, F_UNLCK);
    }
    return rc;
}

int idem__lock_acquire(struct idem__lock *lock, int64_t deadline_ms,
                       struct idem_error *error)
{
    struct timespec until = {
        .tv_sec = (time_t)(deadline_ms / 1000),
        .tv_nsec = (long)(deadline_ms % 1000) * 1000000,
    };
    int rc = pthread_mutex_clocklock(&lock->mutex, CLOCK_MONOTONIC, &until);

    if (rc == 0) {
        rc = take_both(lock, deadline_ms);
        if (rc != 0) {
            (void)pthread_mutex_unlock(&lock->mutex);
        }
    }
    if (rc == ETIMEDOUT) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "the store is busy: its lock was held by others "
                           "for too long; nothing was done");
    }
    if (rc != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "the store's lock cannot be taken: %s",
                           strerror(rc));
    }
    return 0;
}

void idem__lock_release(struct idem__lock *lock)
{
    (void)set_byte(lock, LOCK_BYTE, F_UNLCK);
    (void)pthread_mutex_unlock(&lock->mutex);
}

int idem__lock_test(const struct idem__lock *lock, struct idem_error *error)
{
    return idem__lock_test_file(lock->fd, error);
}

int idem__lock_fd(const struct idem__lock *lock)
{
    return lock->fd;
}
