/* lines.h: reads a file line by line, in bounded memory however long a line is. */
#ifndef IDEM_CLI_TEXT_LINES_H
#define IDEM_CLI_TEXT_LINES_H

#include <idem.h>
#include <stdio.h>

enum cli_lines_got {
    CLI_LINES_END,
    CLI_LINES_ONE,      /* line and len are set; no newline, a NUL at the
                           end. */
    CLI_LINES_TOO_LONG, /* The whole line was skipped. */
    CLI_LINES_FAILED,   /* errno says why. */
};

/* Zeroed but for @f and @max. */
struct cli_lines {
    FILE *f;
    size_t max; /* The longest line, in bytes. */
    char *line;
    size_t len;
    size_t room;
    uint64_t number; /* Of the line; the first one is 1. */
};

enum cli_lines_got cli_lines_next(struct cli_lines *lines);
void cli_lines_finish(struct cli_lines *lines);

#endif
