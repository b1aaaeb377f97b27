/* A line of a log that no kill cuts in two. */
#ifndef TESTS_WHOLE_LINE_H
#define TESTS_WHOLE_LINE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    /* Linux copies a write into its cache page by page, and a process that was killed
     * stops between two pages. A size that divides a page, for every line of the
     * file, keeps each line within one. */
    WHOLE_LINE = 256,
};

/* Appends a line, filled up with spaces, to @fd, which was opened with O_APPEND. False: it
 * is too long or cannot be written. */
__attribute__((format(printf, 2, 0))) static inline bool vappend_whole_line(
    int fd, const char *format, va_list args)
{
    char line[WHOLE_LINE];
    int len = vsnprintf(line, sizeof(line), format, args);

    if (len < 0 || len >= WHOLE_LINE) {
        return false;
    }
    memset(line + len, ' ', (size_t)(WHOLE_LINE - 1 - len));
    line[WHOLE_LINE - 1] = '\n';
    return write(fd, line, WHOLE_LINE) == WHOLE_LINE;
}

__attribute__((format(printf, 2, 3))) static inline bool append_whole_line(
    int fd, const char *format, ...)
{
    va_list args;
    bool done;

    va_start(args, format);
    done = vappend_whole_line(fd, format, args);
    va_end(args);
    return done;
}

#endif
