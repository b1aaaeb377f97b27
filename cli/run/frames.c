/* Reads recorded output back and prints it. */
#include "run/frames.h"

#include "cli.h"
#include "run/io.h"

#include <errno.h>
#include <stdlib.h>

int frame_next(struct idem_slice *frames, struct frame *ret_frame)
{
    const uint8_t *p = frames->base;
    size_t len;

    if (frames->len == 0) {
        return 0;
    }
    if (frames->len < FRAME_HEADER ||
        (p[0] != FRAME_STDOUT && p[0] != FRAME_STDERR)) {
        return -1;
    }
    len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    if (len == 0 || len > frames->len - FRAME_HEADER) {
        return -1;
    }
    ret_frame->stream = p[0];
    p += FRAME_HEADER;
    ret_frame->bytes = idem_bytes(p, len);
    *frames = idem_bytes(p + len, frames->len - FRAME_HEADER - len);
    return 1;
}

uint64_t frames_payload(struct idem_slice frames)
{
    struct frame frame;
    uint64_t sum = 0;

    while (frame_next(&frames, &frame) == 1) {
        sum += frame.bytes.len;
    }
    return sum;
}

static int check_all(struct idem_slice frames)
{
    struct frame frame;
    int rc;

    do {
        rc = frame_next(&frames, &frame);
    } while (rc == 1);
    return rc;
}

int cli_frames_write(struct idem_slice bytes, int out, int err,
                     int *ret_out_error)
{
    struct frame frame;

    /* Half of a damaged recording must not pass for the whole of it. */
    if (check_all(bytes) != 0) {
        return -1;
    }
    *ret_out_error = 0;
    while (frame_next(&bytes, &frame) == 1) {
        int *fd = frame.stream == FRAME_STDOUT ? &out : &err;

        if (*fd >= 0 &&
            io_write_all(*fd, frame.bytes.base, frame.bytes.len) != 0) {
            *ret_out_error = fd == &out ? errno : *ret_out_error;
            *fd = -1;
        }
    }
    return 0;
}

/* The number behind @word in @line; -1 if it does not start with that word or
 * the number is above @max. */
static int number_after(const char *line, const char *word, long max)
{
    size_t len = strlen(word);
    char *end;
    long n;

    if (strncmp(line, word, len) != 0 || line[len] < '0' || line[len] > '9') {
        return -1;
    }
    n = strtol(line + len, &end, 10);
    return *end == '\n' && n <= max ? (int)n : -1;
}

int cli_meta_status(struct idem_slice meta)
{
    char line[16] = "";
    int n;

    memcpy(line, meta.len > 0 ? meta.base : "",
           meta.len < sizeof(line) - 1 ? meta.len : sizeof(line) - 1);
    n = number_after(line, "exit ", 255);
    if (n < 0) {
        n = number_after(line, "signal ", 127);
        n = n < 0 ? -1 : 128 + n;
    }
    return n;
}
