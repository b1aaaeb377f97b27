/* A disk that fails on demand. */
#include "vfs_fail.h"

#include <sqlite3.h>

static struct {
    enum vfs_call call;
    long left; /* Negative: never. */
    bool on;
    bool hit;
    int sqlite_rc;
    long again; /* Negative: never. */
    long flushes;
    long cuts;
} fault = {.left = -1, .again = -1};

static int fail(enum vfs_file file, enum vfs_call call, int64_t at,
                const void *data, size_t len)
{
    fault.flushes += file == VFS_DB && call == VFS_SYNC;
    fault.cuts += file == VFS_WAL && call == VFS_TRUNCATE && at == 0;
    (void)data;
    (void)len;
    if (fault.left < 0 || fault.call != call) {
        return SQLITE_OK;
    }
    if (fault.left > 0) {
        fault.left--;
        return SQLITE_OK;
    }
    fault.hit = true;
    if (!fault.on) {
        fault.left = fault.again;
        fault.again = -1;
    }
    return fault.sqlite_rc;
}

void vfs_fail_install(void)
{
    vfs_install(fail);
}

void vfs_fail(enum vfs_call call, long n, bool on, int sqlite_rc)
{
    fault.call = call;
    fault.left = n;
    fault.on = on;
    fault.hit = false;
    fault.sqlite_rc = sqlite_rc;
    fault.flushes = 0;
    fault.cuts = 0;
    fault.again = -1;
}

void vfs_fail_again(long n)
{
    fault.again = n;
}

long vfs_fail_flushes(void)
{
    return fault.flushes;
}

long vfs_fail_cuts(void)
{
    return fault.cuts;
}

bool vfs_fail_pending(void)
{
    return fault.left >= 0 || fault.again >= 0;
}

bool vfs_fail_never(void)
{
    fault.left = -1;
    return fault.hit;
}
