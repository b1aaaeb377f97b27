/* The lock between processes, and the lock file that it is on.
 *
 * The lock of the kernel belongs to the process, not to a thread or a descriptor. So a
 * mutex orders the threads of this process, and all handles of a store in one process
 * share one entry of the registry, with one descriptor. */
#include "store/sqlite/place.h"

#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/process.h"
#include "core/error.h"
#include "store/sqlite/filesystem.h"
#include "store/sqlite/ticket_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct idem__lock {
    struct idem__lock *next;
    dev_t dev;
    ino_t ino;
    /* The process that opened it: fork() copies the entry, but not the locks. */
    long pid;
    unsigned users;
    int fd;
    pthread_mutex_t mutex; /* Between the threads of this process. */
    struct idem__ticket_lock
        tickets; /* Between the processes; for the holder of the mutex. */
};

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct idem__lock *registry;

static int open_error(const char *path, int err, struct idem_error *error)
{
    struct stat st;

    switch (err) {
    case ENOMEM:
        return idem__error_plain(error, IDEM_ENOMEM);
    case ENOSPC:
    case EDQUOT:
        return idem__error(error, IDEM_EFULL,
                           "cannot create %.120s: %s; make room on its disk",
                           path, strerror(err));
    case ENOENT:
    case ENOTDIR:
        return idem__error(error, IDEM_ECONFIG,
                           "cannot create %.120s: create its directory first",
                           path);
    case EMFILE:
    case ENFILE:
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "cannot open %.120s: %s; raise the limit of open "
                           "files (ulimit -n)",
                           path, strerror(err));
    default:
        return idem__error(
            error, IDEM_EDENIED,
            lstat(path, &st) == 0
                ? "cannot open %.120s: %s; run as the owner of the store, or "
                  "share it (idem-store(7), Permissions)"
                : "cannot create %.120s: %s; name a directory "
                  "that this user may write to",
            path, strerror(err));
    }
}

static struct idem__lock *find(const struct stat *st)
{
    struct idem__lock *lock;

    for (lock = registry; lock != NULL; lock = lock->next) {
        /* After a fork the entries of the parent are copies: their locks are not ours. */
        if (idem__lock_is_file(lock, st) && lock->pid == idem__process()) {
            return lock;
        }
    }
    return NULL;
}

/* 0, or an errno. */
static int add(int fd, struct idem__lock **ret_lock)
{
    struct idem__lock *lock = idem__zalloc(sizeof(*lock));
    struct stat st;
    int rc;

    if (lock == NULL) {
        return ENOMEM;
    }
    rc = fstat(fd, &st) != 0 ? errno
                             : idem__ticket_lock_open(&lock->tickets, fd);
    if (rc == 0) {
        rc = pthread_mutex_init(&lock->mutex, NULL);
    }
    if (rc != 0) {
        idem__ticket_lock_close(&lock->tickets);
        idem__free(lock);
        return rc;
    }
    lock->dev = st.st_dev;
    lock->ino = st.st_ino;
    lock->pid = idem__process();
    lock->fd = fd;
    lock->next = registry;
    registry = lock;
    *ret_lock = lock;
    return 0;
}

/* With the registry's mutex held. Look up an existing file before opening it: closing a
 * second descriptor of it would drop the locks that this process has on it (POSIX). */
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
            return open_error(path, errno, error);
        }
        rc = add(fd, &lock);
        if (rc != 0) {
            (void)close(fd);
            return open_error(path, rc, error);
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
    /* Only the last user may close the file: close() drops all locks that this process has
     * on it (POSIX). */
    if (--lock->users == 0) {
        while (*at != lock) {
            at = &(*at)->next;
        }
        *at = lock->next;
        idem__ticket_lock_close(&lock->tickets);
        (void)close(lock->fd);
        (void)pthread_mutex_destroy(&lock->mutex);
        idem__free(lock);
    }
    (void)pthread_mutex_unlock(&registry_mutex);
}

int idem__lock_acquire_for(struct idem__lock *lock, int64_t deadline_ms,
                           const bool *ends, struct idem_error *error)
{
    struct timespec until = {
        .tv_sec = (time_t)(deadline_ms / 1000),
        .tv_nsec = (long)(deadline_ms % 1000) * 1000000,
    };
    /* The threads first, then the processes: a process waits in line only once. */
    int rc = pthread_mutex_clocklock(&lock->mutex, CLOCK_MONOTONIC, &until);

    if (rc == 0) {
        rc = idem__ticket_lock_take(&lock->tickets, deadline_ms, ends);
        if (rc != 0) {
            (void)pthread_mutex_unlock(&lock->mutex);
        }
    }
    /* Nothing has begun, so the answer may be that nothing was done. */
    if (rc == ETIMEDOUT) {
        return idem__error(
            error, IDEM_EUNAVAILABLE,
            "the store is busy: other processes held its lock for too long; "
            "nothing was done");
    }
    if (rc != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "the store's lock cannot be taken: %s",
                           strerror(rc));
    }
    return 0;
}

int idem__lock_acquire(struct idem__lock *lock, int64_t deadline_ms,
                       struct idem_error *error)
{
    return idem__lock_acquire_for(lock, deadline_ms, /* ends= */ NULL, error);
}

bool idem__lock_release(struct idem__lock *lock)
{
    /* Release the lock before the mutex. The lock belongs to the process: a thread that
     * came in between would already have it, and lose it to this unlock. */
    bool is_linked = idem__ticket_lock_pass(&lock->tickets);

    (void)pthread_mutex_unlock(&lock->mutex);
    return is_linked;
}

bool idem__lock_is_deleted(const struct idem__lock *lock)
{
    return lock->tickets.deleted;
}

bool idem__lock_is_file(const struct idem__lock *lock, const struct stat *st)
{
    return lock->dev == st->st_dev && lock->ino == st->st_ino;
}

uint32_t idem__lock_turn(const struct idem__lock *lock)
{
    return lock->tickets.ticket;
}

bool idem__lock_was_emptied(struct idem__lock *lock)
{
    bool emptied = lock->tickets.emptied;

    lock->tickets.emptied = false;
    return emptied;
}

uint64_t idem__lock_generation(const struct idem__lock *lock, off_t len)
{
    return idem__ticket_lock_generation(&lock->tickets, len);
}

void idem__lock_change(struct idem__lock *lock, bool begins)
{
    idem__ticket_lock_change(&lock->tickets, begins);
}

int idem__lock_test(const struct idem__lock *lock, struct idem_error *error)
{
    return idem__lock_test_file(lock->fd, error);
}

int idem__lock_fd(const struct idem__lock *lock)
{
    return lock->fd;
}
