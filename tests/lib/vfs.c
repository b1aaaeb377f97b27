/* A file system for SQLite with a hook before every call: the system's own. */
#include "vfs.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* The file of the system's VFS follows ours in memory. */
struct file {
    sqlite3_file base;
    sqlite3_file *real;
    enum vfs_file which;
};

static sqlite3_vfs *system_vfs;
static sqlite3_vfs vfs;
static vfs_hook *hook;
static bool plain;

static int ask(sqlite3_file *file, enum vfs_call call, int64_t at,
               const void *data, size_t len)
{
    return hook == NULL
               ? SQLITE_OK
               : hook(((struct file *)file)->which, call, at, data, len);
}

static sqlite3_file *real(sqlite3_file *file)
{
    return ((struct file *)file)->real;
}

static int file_close(sqlite3_file *file)
{
    return real(file)->pMethods->xClose(real(file));
}

static int file_read(sqlite3_file *file, void *buf, int len, sqlite3_int64 at)
{
    int rc = ask(file, VFS_READ, at, NULL, (size_t)len);

    return rc != SQLITE_OK
               ? rc
               : real(file)->pMethods->xRead(real(file), buf, len, at);
}

static int file_write(sqlite3_file *file, const void *buf, int len,
                      sqlite3_int64 at)
{
    int rc = ask(file, VFS_WRITE, at, buf, (size_t)len);

    if (rc != SQLITE_OK) {
        (void)real(file)->pMethods->xWrite(real(file), buf, len / 2, at);
        return rc;
    }
    return real(file)->pMethods->xWrite(real(file), buf, len, at);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 len)
{
    int rc = ask(file, VFS_TRUNCATE, len, NULL, 0);

    return rc != SQLITE_OK ? rc
                           : real(file)->pMethods->xTruncate(real(file), len);
}

static int file_sync(sqlite3_file *file, int flags)
{
    int rc = ask(file, VFS_SYNC, 0, NULL, 0);

    if (rc == VFS_SKIP) {
        return SQLITE_OK;
    }
    return rc != SQLITE_OK ? rc
                           : real(file)->pMethods->xSync(real(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real(file)->pMethods->xFileSize(real(file), size);
}

static int file_lock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xLock(real(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xUnlock(real(file), level);
}

static int file_check_lock(sqlite3_file *file, int *held)
{
    return real(file)->pMethods->xCheckReservedLock(real(file), held);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    if (plain && op == SQLITE_FCNTL_POWERSAFE_OVERWRITE) {
        *(int *)arg = 0;
        return SQLITE_OK;
    }
    return real(file)->pMethods->xFileControl(real(file), op, arg);
}

static int file_sector_size(sqlite3_file *file)
{
    return real(file)->pMethods->xSectorSize(real(file));
}

static int file_traits(sqlite3_file *file)
{
    return plain ? 0 : real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int file_shm_map(sqlite3_file *file, int page, int size, int extend,
                        void volatile **map)
{
    return real(file)->pMethods->xShmMap(real(file), page, size, extend, map);
}

static int file_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    return real(file)->pMethods->xShmLock(real(file), at, n, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    real(file)->pMethods->xShmBarrier(real(file));
}

static int file_shm_unmap(sqlite3_file *file, int delete_it)
{
    return real(file)->pMethods->xShmUnmap(real(file), delete_it);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static int vfs_open(sqlite3_vfs *self, const char *name, sqlite3_file *file,
                    int flags, int *flags_out)
{
    struct file *f = (struct file *)file;
    int rc;

    (void)self;
    memset(f, 0, sizeof(*f));
    f->real = (sqlite3_file *)(f + 1);
    f->which = (flags & SQLITE_OPEN_MAIN_DB) != 0 ? VFS_DB
               : (flags & SQLITE_OPEN_WAL) != 0   ? VFS_WAL
                                                  : VFS_OTHER;
    rc = system_vfs->xOpen(system_vfs, name, f->real, flags, flags_out);
    if (f->real->pMethods != NULL) {
        f->base.pMethods = &methods;
    }
    return rc;
}

void vfs_plain(bool is_plain)
{
    plain = is_plain;
}

void vfs_install(vfs_hook *new_hook)
{
    hook = new_hook;
}

/* Before any store is opened: the library keeps to the file system that it finds
 * first. */
__attribute__((constructor)) static void begin(void)
{
    system_vfs = sqlite3_vfs_find(NULL);
    vfs = *system_vfs;
    vfs.zName = "hooked";
    vfs.szOsFile = (int)sizeof(struct file) + system_vfs->szOsFile;
    vfs.xOpen = vfs_open;
    if (sqlite3_vfs_register(&vfs, /* makeDflt= */ 1) != SQLITE_OK) {
        abort();
    }
}
