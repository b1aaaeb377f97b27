/* Can the locks of this file system be trusted?
 *
 * A kernel that knows nothing of the other hosts grants a lock to each of them,
 * and shared memory does not reach them at all. So a file system that may be
 * mounted elsewhere is refused, by its number or by its name; one that is known
 * for a local disk is taken; and of all others it is tested, each time, whether
 * another process of this host sees a lock of ours.
 */
#include "store/sqlite/filesystem.h"

#include "core/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* Numbers of statfs(2), and one number of several names. */
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

/* FUSE has one number for all, and some lie over a file system that does not
 * show. A guest shares with its host and with other guests: these are several
 * kernels too. After "fuse." the name is the maker's own. */
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
        return idem__error(error, IDEM_ECONFIG, "cannot look at %.120s: %s",
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
