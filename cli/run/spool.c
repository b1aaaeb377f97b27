/* Bytes to keep, in memory first and in an unlinked file once they are many. */
#include "run/spool.h"

#include "base/crash.h"
#include "process/descriptors.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that nobody else can open, and that is gone with its descriptor. */
static int open_unnamed(void)
{
    const char *dir = secure_getenv("TMPDIR");
    char path[PATH_MAX];
    int fd;

    if (dir == NULL || *dir == '\0') {
        dir = "/tmp";
    }
    fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        return fd;
    }

    /* Not every file system has files without a name. */
    if (snprintf(path, sizeof(path), "%s/idem-run.XXXXXX", dir) >=
        (int)sizeof(path)) {
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

static int move_to_file(struct spool *spool)
{
    if (spool->fd < 0) {
        spool->fd = open_unnamed();
    }
    if (spool->fd < 0 ||
        io_write_all(spool->fd, spool->memory, spool->memory_len) != 0) {
        return -1;
    }
    IDEM__CRASH_POINT("run/spool/moved");
    spool->filed += spool->memory_len;
    spool->memory_len = 0;
    return 0;
}

void spool_init(struct spool *spool)
{
    memset(spool, 0, sizeof(*spool));
    spool->fd = -1;
}

int spool_append(struct spool *spool, const void *bytes, size_t len)
{
    assert(len <= SPOOL_MEMORY && spool->map == NULL);
    if (spool->memory == NULL) {
        spool->memory = malloc(SPOOL_MEMORY);
    }
    if (spool->memory == NULL) {
        return -1;
    }
    /* An append is never split, so that a patch has one place to go to. */
    if (len > SPOOL_MEMORY - spool->memory_len && move_to_file(spool) != 0) {
        return -1;
    }
    memcpy(spool->memory + spool->memory_len, bytes, len);
    spool->memory_len += len;
    return 0;
}

int spool_patch(struct spool *spool, size_t at, const void *bytes, size_t len)
{
    if (at >= spool->filed) {
        memcpy(spool->memory + (at - spool->filed), bytes, len);
        return 0;
    }
    return pwrite(spool->fd, bytes, len, (off_t)at) == (ssize_t)len ? 0 : -1;
}

size_t spool_len(const struct spool *spool)
{
    return spool->filed + spool->memory_len;
}

int spool_bytes(struct spool *spool, struct idem_slice *ret_bytes)
{
    if (spool->fd < 0) {
        *ret_bytes = idem_bytes(spool->memory, spool->memory_len);
        return 0;
    }
    if (move_to_file(spool) != 0) {
        return -1;
    }
    spool->map = mmap(NULL, spool->filed, PROT_READ, MAP_PRIVATE, spool->fd, 0);
    if (spool->map == MAP_FAILED) {
        spool->map = NULL;
        return -1;
    }
    *ret_bytes = idem_bytes(spool->map, spool->filed);
    return 0;
}

void spool_finish(struct spool *spool)
{
    if (spool->map != NULL) {
        (void)munmap(spool->map, spool->filed);
    }
    io_close(&spool->fd);
    free(spool->memory);
    spool_init(spool);
}
