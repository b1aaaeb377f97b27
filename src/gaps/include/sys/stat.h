/* <sys/stat.h> with statx() if the C library lacks it. */
#pragma GCC system_header
#include_next <sys/stat.h>

#if defined(IDEM_NO_STATX) && !defined(IDEM_GAPS_STATX)
#define IDEM_GAPS_STATX

#include <fcntl.h>
#include <stdint.h>

/* Parts of <linux/stat.h>, which cannot be included beside <sys/stat.h>. */
#ifndef AT_STATX_DONT_SYNC
#define AT_STATX_DONT_SYNC 0x4000
#endif
#define STATX_NLINK 0x0004u
#define STATX_MNT_ID 0x1000u
#define STATX_ATTR_MOUNT_ROOT 0x2000u

struct statx {
    uint32_t stx_mask;
    uint32_t stx_blksize;
    uint64_t stx_attributes;
    uint32_t stx_nlink;
    uint32_t stx_uid;
    uint32_t stx_gid;
    uint16_t stx_mode;
    uint16_t stx_spare;
    uint64_t stx_ino;
    uint64_t stx_size;
    uint64_t stx_blocks;
    uint64_t stx_attributes_mask;
    uint64_t stx_times[8];
    uint32_t stx_devices[4];
    uint64_t stx_mnt_id;
    uint64_t stx_more[13];
};

_Static_assert(sizeof(struct statx) == 256, "The kernel writes 256 bytes.");

/* statx(2). Returns -1 with errno, which is ENOSYS before Linux 4.11. */
int statx(int directory, const char *path, int flags, unsigned mask,
          struct statx *ret_stx);

#endif
