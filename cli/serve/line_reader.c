/* The bytes of a client as lines of a bounded length. */
#include "serve/line_reader.h"

enum {
    KEEP = 64 * 1024 /* Memory that stays after a long line. */
};

void serve_drop(struct idem__buffer *bytes, size_t *from)
{
    size_t left = bytes->len - *from;

    if (left == 0) {
        idem__buffer_reset(bytes, KEEP);
    } else if (*from >= left) {
        memmove(bytes->base, bytes->base + *from, left);
        bytes->len = left;
    } else {
        return;
    }
    *from = 0;
}

uint8_t *serve_lines_room(struct serve_lines *lines, size_t len)
{
    size_t from = lines->from;

    serve_drop(&lines->bytes, &lines->from);
    lines->scanned -= from - lines->from;
    return idem__buffer_room(&lines->bytes, len);
}

void serve_lines_added(struct serve_lines *lines, size_t len)
{
    lines->bytes.len += len;
}

/* The bytes before @to are not needed any more. */
static void pass(struct serve_lines *lines, size_t to)
{
    lines->from = to;
    lines->scanned = to;
}

enum serve_line serve_lines_next(struct serve_lines *lines,
                                 struct idem_slice *ret_line)
{
    const uint8_t *base = lines->bytes.base;
    size_t end = lines->bytes.len;

    while (lines->scanned < end) {
        const uint8_t *newline =
            memchr(base + lines->scanned, '\n', end - lines->scanned);
        size_t to = newline == NULL ? end : (size_t)(newline - base);
        size_t from = lines->from;
        bool skips = lines->skips;

        lines->scanned = to;
        if (to - from > SERVE_LINE_MAX || (skips && newline == NULL)) {
            lines->skips = newline == NULL;
            pass(lines, newline == NULL ? to : to + 1);
            if (!skips) {
                return SERVE_LINE_TOO_LONG;
            }
        } else if (newline != NULL) {
            lines->skips = false;
            pass(lines, to + 1);
            if (!skips) {
                *ret_line = idem_bytes(base + from, to - from);
                return SERVE_LINE_ONE;
            }
        }
    }
    return SERVE_LINE_NONE;
}

void serve_lines_finish(struct serve_lines *lines)
{
    idem__buffer_free(&lines->bytes);
}
