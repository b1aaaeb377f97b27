/* Lines of a bounded length. */
#include "text/lines.h"

#include <stdlib.h>

enum {
    FIRST_ROOM = 65536
};

/* Makes room for one more byte and the NUL. */
static bool make_room(struct cli_lines *lines)
{
    size_t room = lines->room == 0 ? FIRST_ROOM : lines->room * 2;
    char *line;

    if (lines->len + 1 < lines->room) {
        return true;
    }
    line = realloc(lines->line, room);
    if (line == NULL) {
        return false;
    }
    lines->line = line;
    lines->room = room;
    return true;
}

/* Reads to the end of a line that is too long. */
static enum cli_lines_got skip_rest(struct cli_lines *lines)
{
    int c;

    do {
        c = getc_unlocked(lines->f);
    } while (c != EOF && c != '\n');
    return ferror(lines->f) ? CLI_LINES_FAILED : CLI_LINES_TOO_LONG;
}

enum cli_lines_got cli_lines_next(struct cli_lines *lines)
{
    int c;

    lines->len = 0;
    lines->number++;
    if (!make_room(lines)) {
        return CLI_LINES_FAILED;
    }
    while ((c = getc_unlocked(lines->f)) != EOF && c != '\n') {
        if (lines->len == lines->max) {
            return skip_rest(lines);
        }
        if (!make_room(lines)) {
            return CLI_LINES_FAILED;
        }
        lines->line[lines->len++] = (char)c;
    }
    lines->line[lines->len] = '\0';
    if (ferror(lines->f)) {
        return CLI_LINES_FAILED;
    }
    return c == EOF && lines->len == 0 ? CLI_LINES_END : CLI_LINES_ONE;
}

void cli_lines_finish(struct cli_lines *lines)
{
    free(lines->line);
    lines->line = NULL;
}
