/* Checks whether a store can be in this place: whether the locks of the file system can
 * be trusted, and whether the file has one name. */
#include "store/sqlite/filesystem.h"

#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>

/* The kind of the file system.
 *
 * Each host's kernel grants locks without knowing of the other hosts, and shared memory
 * does not reach them at all. So a file system that may be mounted elsewhere is refused,
 * by its number or by its name; one that is known as a local disk is accepted; and any
 * other is tested each time a store is opened: another process of this host must see our
 * lock. */

/* Known file systems, by their numbers in statfs(2). */
static const struct {
    unsigned long magic;
    enum idem__trust trust;
} by_magic[] = {
    {0xef53, IDEM__TRUST_LOCAL},       /* ext2, ext3, ext4 */
    {0x58465342, IDEM__TRUST_LOCAL},   /* XFS */
    {0x9123683e, IDEM__TRUST_LOCAL},   /* Btrfs */
    {0x01021994, IDEM__TRUST_LOCAL},   /* tmpfs */
    {0x858458f6, IDEM__TRUST_LOCAL},   /* ramfs */
    {0x2fc12fc1, IDEM__TRUST_LOCAL},   /* ZFS */
    {0xca451a4e, IDEM__TRUST_LOCAL},   /* bcachefs */
    {0xf2f52010, IDEM__TRUST_LOCAL},   /* F2FS */
    {0x3153464a, IDEM__TRUST_LOCAL},   /* JFS */
    {0x52654973, IDEM__TRUST_LOCAL},   /* ReiserFS */
    {0x6969, IDEM__TRUST_NETWORK},     /* NFS */
    {0x517b, IDEM__TRUST_NETWORK},     /* SMB */
    {0xff534d42, IDEM__TRUST_NETWORK}, /* CIFS */
    {0xfe534d42, IDEM__TRUST_NETWORK}, /* SMB2 */
    {0x5346414f, IDEM__TRUST_NETWORK}, /* AFS */
    {0x6b414653, IDEM__TRUST_NETWORK}, /* AFS, the kernel's */
    {0x73757245, IDEM__TRUST_NETWORK}, /* Coda */
    {0x564c, IDEM__TRUST_NETWORK},     /* NCP */
    {0x01021997, IDEM__TRUST_NETWORK}, /* 9P */
    {0x00c36400, IDEM__TRUST_NETWORK}, /* Ceph */
    {0x0bd00bd0, IDEM__TRUST_NETWORK}, /* Lustre */
    {0x7461636f, IDEM__TRUST_NETWORK}, /* OCFS2 */
    {0x01161970, IDEM__TRUST_NETWORK}, /* GFS2 */
    {0x47504653, IDEM__TRUST_NETWORK}, /* GPFS */
    {0x19830326, IDEM__TRUST_NETWORK}, /* BeeGFS */
    {0x786f4256, IDEM__TRUST_NETWORK}, /* VirtualBox's shared folders */
    {0xbacbacbc, IDEM__TRUST_NETWORK}, /* VMware's */
    {0x7c7c6673, IDEM__TRUST_NETWORK}, /* Parallels' */
    {0x00c0ffee, IDEM__TRUST_NETWORK}, /* User Mode Linux: its host's */
};

/* All FUSE file systems have one number, and some hide the file system below them, so
 * these go by their names. A guest shares some with its host and with other guests, which
 * are several kernels, too. The part of a name after "fuse." is the maker's own. */
static const char *const network_names[] = {
    "9p",          "beegfs",     "blobfuse",  "blobfuse2",     "ceph",
    "ceph-fuse",   "cifs",       "curlftpfs", "cvmfs2",        "davfs",
    "davfs2",      "fakeowner",  "gcsfuse",   "glusterfs",     "goofys",
    "grpcfuse",    "gvfsd-fuse", "hdfs",      "juicefs",       "lizardfs",
    "mfs",         "moosefs",    "mount-s3",  "mountpoint-s3", "nfs",
    "nfs4",        "osxfs",      "rclone",    "s3backer",      "s3fs",
    "seaweedfs",   "smb3",       "smbnetfs",  "sshfs",         "virtiofs",
    "vmhgfs-fuse",
};

static bool is_network_name(const char *name)
{
    size_t i;

    if (strncmp(name, "fuse.", 5) == 0) {
        name += 5;
    }
    for (i = 0; i < sizeof(network_names) / sizeof(network_names[0]); i++) {
        if (strcasecmp(name, network_names[i]) == 0) {
            return true;
        }
    }
    return strstr(name, "://") != NULL;
}

enum idem__trust idem__filesystem_trust(unsigned long magic, const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(by_magic) / sizeof(by_magic[0]); i++) {
        if (by_magic[i].magic == magic) {
            return by_magic[i].trust;
        }
    }
    return name != NULL && is_network_name(name) ? IDEM__TRUST_NETWORK
                                                 : IDEM__TRUST_UNKNOWN;
}

/* See proc(5): "36 35 98:0 /root /mount rw,opts tag:1 - type source opts". */
bool idem__filesystem_name(const char *line, unsigned major, unsigned minor,
                           char ret_name[64])
{
    const char *rest = strstr(line, " - ");
    unsigned found_major;
    unsigned found_minor;
    char type[64];
    char source[64];

    if (rest == NULL ||
        sscanf(line, "%*u %*u %u:%u", &found_major, &found_minor) != 2 ||
        found_major != major || found_minor != minor ||
        sscanf(rest, " - %63s %63s", type, source) != 2) {
        return false;
    }
    (void)strcpy(ret_name, strcmp(type, "fuse") == 0 ? source : type);
    return true;
}

/* Finds the name of the file system of @path. */
static bool find_name(const char *path, char ret_name[64])
{
    char *line = NULL;
    size_t cap = 0;
    bool found = false;
    struct stat st;
    FILE *f;

    if (stat(path, &st) != 0) {
        return false;
    }
    f = fopen("/proc/self/mountinfo", "re");
    if (f == NULL) {
        return false;
    }
    while (!found && getline(&line, &cap, f) >= 0) {
        found = idem__filesystem_name(line, major(st.st_dev), minor(st.st_dev),
                                      ret_name);
    }
    free(line);
    (void)fclose(f);
    return found;
}

bool idem__filesystem_look(const char *path, char ret_name[64],
                           enum idem__trust *ret_trust)
{
    struct statfs fs;

    if (statfs(path, &fs) != 0) {
        return false;
    }
    if (!find_name(path, ret_name)) {
        ret_name[0] = '\0';
    }
    *ret_trust = idem__filesystem_trust((unsigned long)fs.f_type,
                                        ret_name[0] != '\0' ? ret_name : NULL);
    return true;
}

int idem__filesystem_check(const char *path, bool *ret_test,
                           struct idem_error *error)
{
    char buf[64];
    const char *name = NULL;
    enum idem__trust trust;
    struct statfs fs;

    if (statfs(path, &fs) != 0) {
        return idem__error(error, IDEM_ECONFIG, "cannot inspect %.120s: %s",
                           path, strerror(errno));
    }
    trust = idem__filesystem_trust((unsigned long)fs.f_type, /* name= */ NULL);
    if (trust != IDEM__TRUST_LOCAL && find_name(path, buf)) {
        name = buf;
        trust = idem__filesystem_trust((unsigned long)fs.f_type, name);
    }
    if (trust == IDEM__TRUST_NETWORK) {
        return idem__error(error, IDEM_ECONFIG,
                           "%.120s is on a network file system (%s), whose "
                           "locks cannot be trusted: use a local disk",
                           path, name != NULL ? name : "by its number");
    }
    *ret_test = trust == IDEM__TRUST_UNKNOWN;
    return 0;
}

/* One file under two names is two stores, so the file must have one name.
 *
 * Log, index and lock lie beside the name by which the file was opened. A hard link in
 * another directory, or a bind mount of the file alone ("docker run -v FILE:FILE"), has
 * others: two processes then write to one database under two locks, and each knows only
 * its own log. Device numbers do not show it: on overlayfs a file and its directory have
 * different ones anyway. The mount that a name leads through shows it. */

/* Linux 5.8 reports both. An older kernel does not, and then the check passes. */
static bool look(const char *path, int flags, struct statx *ret_stx)
{
    memset(ret_stx, 0, sizeof(*ret_stx));
    return statx(AT_FDCWD, path, flags | AT_STATX_DONT_SYNC,
                 STATX_NLINK | STATX_MNT_ID, ret_stx) == 0;
}

static bool is_mount_root(const struct statx *file)
{
    return (file->stx_attributes_mask & file->stx_attributes &
            STATX_ATTR_MOUNT_ROOT) != 0;
}

static bool is_other_mount(const struct statx *file, const char *directory)
{
    struct statx above;

    return (file->stx_mask & STATX_MNT_ID) != 0 && look(directory, 0, &above) &&
           (above.stx_mask & STATX_MNT_ID) != 0 &&
           above.stx_mnt_id != file->stx_mnt_id;
}

int idem__names_check(const char *path, const char *directory,
                      struct idem_error *error)
{
    struct statx file;

    if (!look(path, AT_SYMLINK_NOFOLLOW, &file)) {
        return 0;
    }
    if ((file.stx_mask & STATX_NLINK) != 0 && file.stx_nlink > 1) {
        return idem__error(
            error, IDEM_ECONFIG,
            "%.120s has %u hard links: each name would be a store of its own, "
            "and work could run twice; keep one",
            path, (unsigned)file.stx_nlink);
    }
    if (is_mount_root(&file) || is_other_mount(&file, directory)) {
        return idem__error(
            error, IDEM_ECONFIG,
            "%.120s is mounted without its directory: others would use another "
            "log and lock, and work could run twice; mount the directory",
            path);
    }
    return 0;
}

/* ---- Does another process see a lock of ours on this file? --------------- */

enum {
    TEST_BYTE = 2, /* After those of lock.c. */
    STACK = 16 * 1024
};

struct other {
    int fd;
    short found; /* Type of the lock that it found. */
    char stack[STACK] __attribute__((aligned(16)));
};

/* All threads of a process share a lock: when one releases it, it is released for
 * all. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct flock test_byte(short type)
{
    return (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = TEST_BYTE,
        .l_len = 1,
    };
}

/* Runs in a process that shares our memory, but not our descriptors, and so has none of
 * our locks. */
static int look_for_lock(void *arg)
{
    struct other *other = arg;
    struct flock range = test_byte(F_WRLCK);

    if (fcntl(other->fd, F_GETLK, &range) == 0) {
        other->found = range.l_type;
    }
    return 0;
}

/* 0, or an errno. Blocks signals, because no handler of the caller's may run in the other
 * process. */
static int look_as_other(struct other *other)
{
    sigset_t all;
    sigset_t before;
    int rc = 0;
    pid_t pid;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = clone(look_for_lock, other->stack + STACK, CLONE_VM | CLONE_VFORK,
                other);
    if (pid < 0) {
        rc = errno;
    }
    while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR) {
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* With the mutex held. 0, or an errno; ENOLCK: the lock was not seen. */
static int test(struct other *other, int *ret_clone_rc)
{
    struct flock range = test_byte(F_WRLCK);

    if (fcntl(other->fd, F_SETLK, &range) != 0) {
        /* Another process runs this test, and we see its lock: locks work. */
        return errno == EAGAIN || errno == EACCES ? 0 : errno;
    }
    *ret_clone_rc = look_as_other(other);
    range = test_byte(F_UNLCK);
    (void)fcntl(other->fd, F_SETLK, &range);
    return other->found == F_WRLCK ? 0 : ENOLCK;
}

int idem__lock_test_file(int fd, struct idem_error *error)
{
    struct other other = {.fd = fd, .found = F_UNLCK};
    int clone_rc = 0;
    int rc;

    (void)pthread_mutex_lock(&mutex);
    rc = test(&other, &clone_rc);
    (void)pthread_mutex_unlock(&mutex);
    if (clone_rc != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "cannot test the locks of the store's file system: "
                           "%s",
                           strerror(clone_rc));
    }
    if (rc != 0) {
        return idem__error(
            error, IDEM_ECONFIG,
            "the locks of the store's file system cannot be trusted (%s): "
            "another process does not see them; use a local disk",
            strerror(rc));
    }
    return 0;
}
