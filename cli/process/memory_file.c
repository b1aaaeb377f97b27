/* Files without a name, in memory. */
#include "process/memory_file.h"

#include "process/io.h"

#include <sys/mman.h>
#include <unistd.h>

int memory_file_open(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}

int memory_file_of(const char *name, const void *bytes, size_t len)
{
    int fd = memory_file_open(name);

    if (fd >= 0 &&
        (io_write_all(fd, bytes, len) != 0 || lseek(fd, 0, SEEK_SET) != 0)) {
        io_close(&fd);
    }
    return fd;
}
