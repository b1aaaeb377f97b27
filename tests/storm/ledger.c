/* What has happened, noted outside of every store. */
#include "ledger.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int fd = -1;

void ledger_open(const char *path)
{
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror(path);
        abort();
    }
}

void ledger_note(bool durable, const char *format, ...)
{
    char line[400];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line, sizeof(line) - 1, format, args);
    va_end(args);
    line[len++] = '\n';
    if (write(fd, line, (size_t)len) != len ||
        (durable && fdatasync(fd) != 0)) {
        perror("ledger");
        abort();
    }
}
