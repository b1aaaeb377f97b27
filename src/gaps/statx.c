/* Provides statx() if the C library lacks it. */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int statx(int directory, const char *path, int flags, unsigned mask,
          struct statx *ret_stx)
{
    return (int)syscall(SYS_statx, directory, path, flags, mask, ret_stx);
}
