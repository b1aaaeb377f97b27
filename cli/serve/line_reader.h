/* line_reader.h: the bytes of a client as lines of a bounded length. */
#ifndef IDEM_CLI_SERVE_LINE_READER_H
#define IDEM_CLI_SERVE_LINE_READER_H

#include "base/bytes.h"

enum {
    SERVE_LINE_MAX = 24 << 20, /* Bytes of a line, without its newline. */
};

/* Drops the bytes of @bytes before *@from, which becomes 0, but only once they are as
 * many as the rest: so many short pieces do not move the rest once each. */
void serve_drop(struct idem__buffer *bytes, size_t *from);

/* Zeroed before the first use. */
struct serve_lines {
    struct idem__buffer bytes;
    size_t from;    /* Where the next line begins ... */
    size_t scanned; /* ... and up to where it has no newline. */
    bool skips;     /* The line is too long: the rest of it is skipped. */
};

enum serve_line {
    SERVE_LINE_NONE, /* The end of the line has not come yet. */
    SERVE_LINE_ONE,
    SERVE_LINE_TOO_LONG, /* Returned once, as soon as it is known. */
};

/* Makes room for @len bytes of the client; the caller then tells serve_lines_added() how
 * many came. NULL: no memory. */
uint8_t *serve_lines_room(struct serve_lines *lines, size_t len);
void serve_lines_added(struct serve_lines *lines, size_t len);

/* The next line, without its newline, valid until there is room for more. */
enum serve_line serve_lines_next(struct serve_lines *lines,
                                 struct idem_slice *ret_line);

void serve_lines_finish(struct serve_lines *lines);

#endif
