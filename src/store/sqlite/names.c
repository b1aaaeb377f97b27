/* One file under two names is two stores: is there only one?
 *
 * Log, index and lock lie beside the name by which the file was opened. A hard
 * link in another directory, or a bind mount of the file alone ("docker run -v
 * FILE:FILE"), has others: two processes then write to one database under two
 * locks, and each knows only its own log. Device numbers do not tell: on
 * overlayfs those of a file and of its directory differ by themselves. The mount
 * that a name leads through does.
 */
#include "store/sqlite/names.h"

#include "core/error.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Linux 5.8 answers both; what is not answered cannot be judged. */
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
        return idem__error(error, IDEM_ECONFIG,
                           "%.120s has %u hard links: each name would be a "
                           "store of its own, and work would run twice; keep "
                           "one",
                           path, (unsigned)file.stx_nlink);
    }
    if (is_mount_root(&file) || is_other_mount(&file, directory)) {
        return idem__error(error, IDEM_ECONFIG,
                           "%.120s is mounted without its directory: its log "
                           "and lock would be others, and work would run "
                           "twice; mount the directory",
                           path);
    }
    return 0;
}
