/* A disk that remembers: every write, truncation and flush of the database and
 * its log is written down. */
#include "disk.h"

#include "vfs.h"

#include <assert.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct disk_log *recording;

/* ---- The log ---- */

static void note(enum disk_file file, enum disk_event_kind kind, int64_t at,
                 const void *data, size_t len)
{
    struct disk_event *event;

    (void)pthread_mutex_lock(&mutex);
    if (recording != NULL) {
        if (recording->len == recording->cap) {
            recording->cap = recording->cap * 2 + 64;
            recording->events =
                realloc(recording->events,
                        recording->cap * sizeof(recording->events[0]));
        }
        event = &recording->events[recording->len++];
        *event = (struct disk_event){.kind = kind,
                                     .file = file,
                                     .at = at,
                                     .len = len};
        if (len > 0) {
            event->data = malloc(len);
            memcpy(event->data, data, len);
        }
    }
    (void)pthread_mutex_unlock(&mutex);
}

void disk_start(struct disk_log *log)
{
    memset(log, 0, sizeof(*log));
    (void)pthread_mutex_lock(&mutex);
    recording = log;
    (void)pthread_mutex_unlock(&mutex);
}

void disk_stop(void)
{
    (void)pthread_mutex_lock(&mutex);
    recording = NULL;
    (void)pthread_mutex_unlock(&mutex);
}

size_t disk_moment(void)
{
    size_t len;

    (void)pthread_mutex_lock(&mutex);
    len = recording->len;
    (void)pthread_mutex_unlock(&mutex);
    return len;
}

size_t disk_flush_moment(void)
{
    size_t i;

    (void)pthread_mutex_lock(&mutex);
    for (i = recording->len; i > 0; i--) {
        if (recording->events[i - 1].kind == DISK_SYNC_BEGIN) {
            break;
        }
    }
    (void)pthread_mutex_unlock(&mutex);
    return i;
}

void disk_log_free(struct disk_log *log)
{
    size_t i;

    for (i = 0; i < log->len; i++) {
        free(log->events[i].data);
    }
    free(log->events);
    memset(log, 0, sizeof(*log));
}

/* The real flush is left out: the image is what counts, and this is faster. */
static int remember(enum vfs_file which, enum vfs_call call, int64_t at,
                    const void *data, size_t len)
{
    enum disk_file file = which == VFS_DB ? DISK_DB : DISK_WAL;

    if (which == VFS_OTHER || call == VFS_READ) {
        return SQLITE_OK;
    }
    if (call == VFS_WRITE) {
        note(file, DISK_WRITE, at, data, len);
    } else if (call == VFS_TRUNCATE) {
        note(file, DISK_TRUNCATE, at, NULL, 0);
    } else {
        note(file, DISK_SYNC_BEGIN, 0, NULL, 0);
        note(file, DISK_SYNC_END, 0, NULL, 0);
        return VFS_SKIP;
    }
    return SQLITE_OK;
}

/* ---- The lock file, which is not SQLite's ---- */

ssize_t __real_pwrite64(int fd, const void *buf, size_t len, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t at);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

static bool is_lock_file(int fd)
{
    static const char ending[] = "-lock";
    char link[64];
    char name[600];
    ssize_t len;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, name, sizeof(name));
    return len > (ssize_t)sizeof(ending) &&
           memcmp(name + len - (sizeof(ending) - 1), ending,
                  sizeof(ending) - 1) == 0;
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t at)
{
    if (is_lock_file(fd)) {
        note(DISK_LOCK, DISK_WRITE, at, buf, len);
    }
    return __real_pwrite64(fd, buf, len, at);
}

int __wrap_fsync(int fd)
{
    if (!is_lock_file(fd)) {
        return __real_fsync(fd);
    }
    note(DISK_LOCK, DISK_SYNC_BEGIN, 0, NULL, 0);
    note(DISK_LOCK, DISK_SYNC_END, 0, NULL, 0);
    return 0;
}

void disk_install(void)
{
    vfs_install(remember);
}

/* ---- Images ---- */

static void resize(struct disk_bytes *bytes, size_t len)
{
    if (len > bytes->cap) {
        bytes->cap = len * 2;
        bytes->data = realloc(bytes->data, bytes->cap);
    }
    if (len > bytes->len) {
        memset(bytes->data + bytes->len, 0, len - bytes->len);
    }
    bytes->len = len;
}

void disk_apply(struct disk_bytes *bytes, const struct disk_event *event,
                size_t from, size_t len)
{
    size_t end;

    if (event->kind == DISK_TRUNCATE) {
        resize(bytes, (size_t)event->at);
    } else if (event->kind == DISK_WRITE) {
        end = (size_t)event->at + from + len;
        if (end > bytes->len) {
            resize(bytes, end);
        }
        memcpy(bytes->data + (size_t)event->at + from, event->data + from, len);
    }
}

static const char *const endings[DISK_FILES] = {"", "-wal", "-lock"};

void disk_load(struct disk_image *image, const char *path)
{
    int i;

    memset(image, 0, sizeof(*image));
    for (i = 0; i < DISK_FILES; i++) {
        char name[600];
        FILE *f;

        (void)snprintf(name, sizeof(name), "%s%s", path, endings[i]);
        f = fopen(name, "rb");
        if (f != NULL) {
            long len;

            (void)fseek(f, 0, SEEK_END);
            len = ftell(f);
            (void)fseek(f, 0, SEEK_SET);
            resize(&image->files[i], (size_t)len);
            if (fread(image->files[i].data, 1, (size_t)len, f) != (size_t)len) {
                abort();
            }
            (void)fclose(f);
        }
    }
}

void disk_save(const struct disk_image *image, const char *path)
{
    char name[600];
    int i;

    (void)snprintf(name, sizeof(name), "%s-shm", path);
    (void)unlink(name);
    for (i = 0; i < DISK_FILES; i++) {
        const struct disk_bytes *bytes = &image->files[i];
        FILE *f;

        (void)snprintf(name, sizeof(name), "%s%s", path, endings[i]);
        (void)unlink(name);
        if (bytes->len == 0) {
            continue;
        }
        f = fopen(name, "wb");
        if (f == NULL || fwrite(bytes->data, 1, bytes->len, f) != bytes->len ||
            fclose(f) != 0) {
            abort();
        }
        (void)chmod(name, 0600);
    }
}

void disk_copy(struct disk_image *to, const struct disk_image *from)
{
    int i;

    memset(to, 0, sizeof(*to));
    for (i = 0; i < DISK_FILES; i++) {
        resize(&to->files[i], from->files[i].len);
        if (from->files[i].len > 0) {
            memcpy(to->files[i].data, from->files[i].data, from->files[i].len);
        }
    }
}

void disk_image_free(struct disk_image *image)
{
    int i;

    for (i = 0; i < DISK_FILES; i++) {
        free(image->files[i].data);
    }
    memset(image, 0, sizeof(*image));
}
