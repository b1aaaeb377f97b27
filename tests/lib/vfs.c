/* The system's own file system for SQLite, with a hook before every call. */
#include "vfs.h"

#include <sqlite3.h>
#include <stdlib.h>

/* Lies in memory after the file of the system's VFS. That file's table of functions is
 * replaced by a copy with ours in it, so the functions of the system still get their own
 * file. This works with a VFS that never changes the table of an open file, such as the
 * system's. */
struct file {
    const sqlite3_io_methods *real;
    sqlite3_io_methods methods;
    enum vfs_file which;
};

static sqlite3_vfs *system_vfs;
static sqlite3_vfs vfs;
static vfs_hook *hook;
static bool plain;

static size_t system_len(void)
{
    return ((size_t)system_vfs->szOsFile + 7) / 8 * 8;
}

static struct file *ours(sqlite3_file *file)
{
    return (struct file *)(void *)((char *)file + system_len());
}

static int ask(sqlite3_file *file, enum vfs_call call, int64_t at,
               const void *data, size_t len)
{
    return hook == NULL ? SQLITE_OK
                        : hook(ours(file)->which, call, at, data, len);
}

static int file_read(sqlite3_file *file, void *buf, int len, sqlite3_int64 at)
{
    int rc = ask(file, VFS_READ, at, NULL, (size_t)len);

    return rc != SQLITE_OK ? rc : ours(file)->real->xRead(file, buf, len, at);
}

static int file_write(sqlite3_file *file, const void *buf, int len,
                      sqlite3_int64 at)
{
    int rc = ask(file, VFS_WRITE, at, buf, (size_t)len);

    if (rc != SQLITE_OK) {
        (void)ours(file)->real->xWrite(file, buf, len / 2, at);
        return rc;
    }
    return ours(file)->real->xWrite(file, buf, len, at);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 len)
{
    int rc = ask(file, VFS_TRUNCATE, len, NULL, 0);

    return rc != SQLITE_OK ? rc : ours(file)->real->xTruncate(file, len);
}

static int file_sync(sqlite3_file *file, int flags)
{
    int rc = ask(file, VFS_SYNC, 0, NULL, 0);

    if (rc == VFS_SKIP) {
        return SQLITE_OK;
    }
    return rc != SQLITE_OK ? rc : ours(file)->real->xSync(file, flags);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    if (plain && op == SQLITE_FCNTL_POWERSAFE_OVERWRITE) {
        *(int *)arg = 0;
        return SQLITE_OK;
    }
    return ours(file)->real->xFileControl(file, op, arg);
}

static int file_traits(sqlite3_file *file)
{
    return plain ? 0 : ours(file)->real->xDeviceCharacteristics(file);
}

/* Version 3 would add files that are mapped. */
static void set_up(sqlite3_file *file, int flags)
{
    struct file *f = ours(file);

    f->real = file->pMethods;
    f->methods = *f->real;
    f->methods.iVersion = 2;
    f->methods.xRead = file_read;
    f->methods.xWrite = file_write;
    f->methods.xTruncate = file_truncate;
    f->methods.xSync = file_sync;
    f->methods.xFileControl = file_control;
    f->methods.xDeviceCharacteristics = file_traits;
    f->which = (flags & SQLITE_OPEN_MAIN_DB) != 0 ? VFS_DB
               : (flags & SQLITE_OPEN_WAL) != 0   ? VFS_WAL
                                                  : VFS_OTHER;
    file->pMethods = &f->methods;
}

static int vfs_open(sqlite3_vfs *self, const char *name, sqlite3_file *file,
                    int flags, int *flags_out)
{
    int rc;

    (void)self;
    file->pMethods = NULL;
    rc = system_vfs->xOpen(system_vfs, name, file, flags, flags_out);
    if (file->pMethods != NULL) {
        set_up(file, flags);
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

/* Runs before any store is opened: the library keeps the file system that it finds
 * first. */
__attribute__((constructor)) static void begin(void)
{
    system_vfs = sqlite3_vfs_find(NULL);
    vfs = *system_vfs;
    vfs.zName = "hooked";
    vfs.szOsFile = (int)(system_len() + sizeof(struct file));
    vfs.xOpen = vfs_open;
    if (sqlite3_vfs_register(&vfs, /* makeDflt= */ 1) != SQLITE_OK) {
        abort();
    }
}
