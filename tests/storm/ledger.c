/* What has happened, noted outside of every store. */
#include "ledger.h"

#include "../lib/whole_line.h"

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
    va_list args;
    bool done;

    va_start(args, format);
    done = vappend_whole_line(fd, format, args);
    va_end(args);
    if (!done || (durable && fdatasync(fd) != 0)) {
        perror("ledger");
        abort();
    }
}
