/* Lines to a command that is kept running, and from it. */
#include "consume/warm.h"
#include "process/io.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    FIRST_ROOM = 4096,
};

/* A command that does not read any more is noticed by its end. */
void warm_writer_move(struct warm_writer *writer)
{
    while (writer->fd >= 0 && writer->written < writer->len) {
        ssize_t n = write(writer->fd, writer->line + writer->written,
                          writer->len - writer->written);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            if (errno != EAGAIN) {
                writer->len = writer->written;
            }
            return;
        }
        writer->written += (size_t)n;
    }
}

/* The pipe was empty when the line began: the command had read all before it, or
 * could not have answered. */
bool warm_writer_is_unread(const struct warm_writer *writer)
{
    int unread = 0;

    return writer->fd >= 0 && ioctl(writer->fd, FIONREAD, &unread) == 0 &&
           (size_t)unread >= writer->written;
}

/* ---- Reading ---- */

static int make_room(struct warm_reader *reader)
{
    size_t size = reader->size == 0 ? FIRST_ROOM : reader->size * 2;
    char *buf;

    if (reader->taken > 0) {
        memmove(reader->buf, reader->buf + reader->taken,
                reader->len - reader->taken);
    }
    reader->len -= reader->taken;
    reader->taken = 0;
    if (reader->len < reader->size) {
        return 0;
    }
    if (size > WARM_LINE_MAX + 1) {
        size = WARM_LINE_MAX + 1;
    }
    buf = realloc(reader->buf, size);
    if (buf == NULL) {
        return -1;
    }
    reader->buf = buf;
    reader->size = size;
    return 0;
}

/* One read: a command that prints without end must not keep us from its supervisor. */
int warm_reader_move(struct warm_reader *reader)
{
    ssize_t n;

    if (reader->fd < 0 || reader->too_long) {
        return 0;
    }
    if ((reader->buf == NULL || reader->len == reader->size ||
         reader->taken == reader->len) &&
        make_room(reader) != 0) {
        return -1;
    }
    if (reader->len == reader->size) {
        return 0; /* Its lines are to be taken, or one is too long. */
    }
    do {
        n = read(reader->fd, reader->buf + reader->len,
                 reader->size - reader->len);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        reader->len += (size_t)n;
        return 1;
    }
    if (n == 0 || errno != EAGAIN) {
        io_close(&reader->fd);
    }
    return 0;
}

bool warm_reader_next(struct warm_reader *reader, struct idem_slice *ret_line)
{
    size_t left = reader->len - reader->taken;
    const char *from = left > 0 ? reader->buf + reader->taken : NULL;
    const char *end = left > 0 ? memchr(from, '\n', left) : NULL;

    if (end == NULL) {
        reader->too_long = left > WARM_LINE_MAX;
        return false;
    }
    *ret_line = idem_bytes(from, (size_t)(end - from));
    reader->taken += ret_line->len + 1;
    return true;
}

void warm_reader_finish(struct warm_reader *reader)
{
    io_close(&reader->fd);
    free(reader->buf);
    reader->buf = NULL;
    reader->len = reader->taken = reader->size = 0;
}
