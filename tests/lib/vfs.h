/* The system's own file system for SQLite, with a hook before every call. */
#ifndef TEST_VFS_H
#define TEST_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vfs_file {
    VFS_DB,
    VFS_WAL,
    VFS_OTHER,
};

enum vfs_call {
    VFS_WRITE,
    VFS_SYNC,
    VFS_READ,
    VFS_TRUNCATE,
};

/* A hook returns this for a flush that succeeds without the disk. */
#define VFS_SKIP (-1)

/* Called before each call, from any thread: SQLITE_OK lets it happen, another SQLite result
 * fails it; a write that fails has written the first half of its bytes. @at is the offset,
 * or the new size of a truncation. */
typedef int vfs_hook(enum vfs_file file, enum vfs_call call, int64_t at,
                     const void *data, size_t len);

/* With @plain the disk promises nothing: it may tear a write, change sectors beside one, and
 * keep no order. Otherwise it promises what the system's does. */
void vfs_plain(bool plain);

/* Puts @hook before every call of every connection. */
void vfs_install(vfs_hook *hook);

#endif
