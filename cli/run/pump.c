/* Carries one stream of the command to ours, and to the recording. */
#include "run/work.h"

#include "process/descriptors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define PUMP_BUFFER ((size_t)64 << 10) /* The capacity of a pipe. */

int pump_init(struct pump *pump, enum frame_stream stream, int to,
              struct recorder *recorder)
{
    memset(pump, 0, sizeof(*pump));
    pump->stream = stream;
    pump->from = -1;
    pump->to = to;
    pump->recorder = recorder;
    pump->size = PUMP_BUFFER;
    pump->buf = malloc(pump->size);
    return pump->buf == NULL ? -1 : 0;
}

void pump_connect(struct pump *pump, int from)
{
    pump->from = from;
}

struct pollfd pump_poll(const struct pump *pump)
{
    struct pollfd waits = {.fd = pump->from, .events = POLLIN};

    if (pump->len > 0) {
        waits.fd = pump->to;
        waits.events = POLLOUT;
    }
    return waits;
}

/* The sink is gone; go on recording. */
static void give_up_sink(struct pump *pump)
{
    pump->sink_error = errno;
    pump->to = -1;
    pump->len = 0;
}

/* Reads up to @max bytes after those that are held. Returns how many; 0: there
 * is no more yet, or ever. */
static size_t pull(struct pump *pump, size_t max)
{
    char *end = pump->buf + pump->off + pump->len;
    ssize_t n;

    n = read(pump->from, end, max);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n < 0) {
        recorder_drop(pump->recorder);
    }
    if (n <= 0) {
        io_close(&pump->from);
        return 0;
    }
    recorder_add(pump->recorder, pump->stream, end, (size_t)n);
    if (pump->to >= 0) {
        pump->len += (size_t)n;
    }
    return (size_t)n;
}

static void push(struct pump *pump)
{
    do {
        size_t piece = pump->len < PIPE_BUF ? pump->len : PIPE_BUF;
        ssize_t n = write(pump->to, pump->buf + pump->off, piece);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n < 0) {
            give_up_sink(pump);
            return;
        }
        pump->off += (size_t)n;
        pump->len -= (size_t)n;
    } while (pump->len > 0 && io_is_writable(pump->to));
}

void pump_move(struct pump *pump, const struct pollfd *ready)
{
    if (ready->fd < 0 || ready->revents == 0) {
        return;
    }
    if (pump->len > 0) {
        push(pump);
    } else {
        pump->off = 0;
        (void)pull(pump, pump->size);
    }
}

bool pump_is_done(const struct pump *pump)
{
    return pump->from < 0 && pump->len == 0;
}

/* Room for @more bytes after those that are held. */
static int grow(struct pump *pump, size_t more)
{
    size_t need = pump->len + more;
    char *buf;

    memmove(pump->buf, pump->buf + pump->off, pump->len);
    pump->off = 0;
    if (need <= pump->size) {
        return 0;
    }
    buf = realloc(pump->buf, need);
    if (buf == NULL) {
        return -1;
    }
    pump->buf = buf;
    pump->size = need;
    return 0;
}

/* The command can have left at most a full pipe. Later output is that of a
 * descendant, for which the loop waits a little. */
void pump_drain(struct pump *pump)
{
    int capacity = pump->from < 0 ? 0 : fcntl(pump->from, F_GETPIPE_SZ);
    size_t left = capacity > 0 ? (size_t)capacity : PUMP_BUFFER;
    size_t n = 1;

    if (pump->from < 0 || grow(pump, left) != 0) {
        return;
    }
    while (n > 0 && left > 0) {
        n = pull(pump, left);
        left -= n;
    }
}

bool pump_try(struct pump *pump)
{
    if (pump->len > 0 && io_is_writable(pump->to)) {
        push(pump);
    }
    return pump->len == 0;
}

void pump_flush(struct pump *pump)
{
    if (pump->len > 0 &&
        io_write_all(pump->to, pump->buf + pump->off, pump->len) != 0) {
        give_up_sink(pump);
    }
    pump->len = 0;
}

void pump_finish(struct pump *pump)
{
    io_close(&pump->from);
    free(pump->buf);
    memset(pump, 0, sizeof(*pump));
    pump->from = -1;
}
