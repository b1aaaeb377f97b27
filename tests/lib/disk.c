/* A small disk of our own, which a test can fill. */
#include "disk.h"

#include "temp.h"
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0) {
        (void)close(fd);
    }
    return ok;
}

/* A user who may not mount may do so as root of a user namespace. */
static bool enter(void)
{
    static int entered = -1;
    char map[64];

    if (entered >= 0) {
        return entered == 1;
    }
    entered = 0;
    if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0) {
        entered = 1;
    } else {
        (void)snprintf(map, sizeof(map), "0 %u 1\n", (unsigned)geteuid());
        entered = unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
                  write_file("/proc/self/setgroups", "deny") &&
                  write_file("/proc/self/uid_map", map);
    }
    if (entered == 1) {
        (void)mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL);
    }
    return entered == 1;
}

const char *disk_make(size_t len)
{
    const char *path = temp_path("disk");
    char size[32];

    (void)snprintf(size, sizeof(size), "size=%zu", len);
    if (!enter() || mkdir(path, 0700) != 0 ||
        mount("none", path, "tmpfs", 0, size) != 0) {
        return NULL;
    }
    return path;
}

static const char *filler(const char *disk)
{
    static char path[600];

    (void)snprintf(path, sizeof(path), "%s/filler", disk);
    return path;
}

void disk_fill(const char *disk)
{
    int fd = open(filler(disk), O_WRONLY | O_CREAT | O_APPEND, 0600);
    char block[4096] = {1};

    assert_true(fd >= 0);
    while (write(fd, block, sizeof(block)) > 0) {
    }
    (void)close(fd);
}

void disk_free(const char *disk)
{
    (void)unlink(filler(disk));
}

void disk_end(const char *disk)
{
    (void)umount2(disk, MNT_DETACH);
}

long disk_room(const char *disk)
{
    struct statvfs fs;

    assert_int_equal(statvfs(disk, &fs), 0);
    return (long)(fs.f_bavail * fs.f_frsize);
}
