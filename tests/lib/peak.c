/* A preloaded library: at the end of a program it writes to the file $IDEM_PEAK how many KB
 * of memory the program had at most. The figure of wait4() would also count the memory of
 * the process that forked it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((destructor)) static void write_peak(void)
{
    const char *path = getenv("IDEM_PEAK");
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    int fd;

    if (path == NULL || status == NULL) {
        return;
    }
    while (fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
            if (fd >= 0 && write(fd, line + 6, strlen(line + 6)) < 0) {
                abort();
            }
            (void)close(fd);
        }
    }
    (void)fclose(status);
}
