/* Records what a command prints, and prints what was recorded. */
#include "run/frames.h"

#include "process/descriptors.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Printing ---- */

uint64_t frames_payload(const struct idem_form *form)
{
    struct idem_slice rest = form->bytes;
    struct idem_slice piece;
    enum idem_stream stream;
    uint64_t sum = 0;

    while (idem_form_next(form, &rest, &stream, &piece)) {
        sum += piece.len;
    }
    return sum;
}

void cli_form_write(const struct idem_form *form, int out, int err,
                    int *ret_out_error)
{
    struct idem_slice rest = form->bytes;
    struct idem_slice piece;
    enum idem_stream stream;

    *ret_out_error = 0;
    while (idem_form_next(form, &rest, &stream, &piece)) {
        int *fd = stream == IDEM_STREAM_STDOUT ? &out : &err;

        if (*fd >= 0 && io_write_all(*fd, piece.base, piece.len) != 0) {
            *ret_out_error = fd == &out ? errno : *ret_out_error;
            *fd = -1;
        }
    }
}

/* ---- Recording ---- */

void recorder_drop(struct recorder *recorder)
{
    recorder->not_kept = true;
    recorder_finish(recorder);
}

static int append(struct recorder *recorder, const void *bytes, size_t len)
{
    if (recorder->fd < 0) {
        recorder->fd = memory_file_open("output");
    }
    if (recorder->fd < 0 || io_write_all(recorder->fd, bytes, len) != 0) {
        return -1;
    }
    recorder->filed += len;
    return 0;
}

/* Write the length of the last frame, known now that it ends. */
static int close_frame(const struct recorder *recorder)
{
    size_t len = recorder->filed - recorder->frame_at - FRAME_HEADER;
    const uint8_t bytes[] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16),
                             (uint8_t)(len >> 8), (uint8_t)len};

    if (recorder->stream == 0) {
        return 0;
    }
    return pwrite(recorder->fd, bytes, sizeof(bytes),
                  (off_t)recorder->frame_at + 1) == sizeof(bytes)
               ? 0
               : -1;
}

static int open_frame(struct recorder *recorder, enum frame_stream stream)
{
    const uint8_t header[FRAME_HEADER] = {(uint8_t)stream};

    if (close_frame(recorder) != 0) {
        return -1;
    }
    recorder->stream = stream;
    recorder->frame_at = recorder->filed;
    return append(recorder, header, sizeof(header));
}

void recorder_init(struct recorder *recorder, size_t max)
{
    memset(recorder, 0, sizeof(*recorder));
    recorder->fd = -1;
    recorder->max = max;
}

void recorder_add(struct recorder *recorder, enum frame_stream stream,
                  const void *bytes, size_t len)
{
    bool fresh = stream != recorder->stream;
    size_t need = len + (fresh ? FRAME_HEADER : 0);

    if (recorder->not_kept || len == 0) {
        return;
    }
    if (len > recorder->max - recorder->len ||
        need > IDEM_RESULT_MAX - recorder->filed ||
        (fresh && open_frame(recorder, stream) != 0) ||
        append(recorder, bytes, len) != 0) {
        recorder_drop(recorder);
        return;
    }
    recorder->len += len;
}

static int map(struct recorder *recorder)
{
    void *bytes;

    if (close_frame(recorder) != 0) {
        return -1;
    }
    bytes = mmap(NULL, recorder->filed, PROT_READ, MAP_PRIVATE, recorder->fd,
                 /* offset= */ 0);
    if (bytes == MAP_FAILED) {
        return -1;
    }
    recorder->map = bytes;
    return 0;
}

void recorder_result(struct recorder *recorder, struct idem_result *result)
{
    /* Output to stdout alone is recorded without frames, so that every front end can
     * replay it. */
    bool framed = recorder->stream == FRAME_STDERR || recorder->frame_at > 0;
    size_t skipped = framed ? 0 : FRAME_HEADER;

    if (recorder->filed > 0 && map(recorder) != 0) {
        recorder_drop(recorder);
    }
    if (recorder->filed > 0) {
        result->bytes =
            idem_bytes(recorder->map + skipped, recorder->filed - skipped);
    }
    result->content_type =
        idem_str(framed ? IDEM_FORM_FRAMES_TYPE : IDEM_FORM_BYTES_TYPE);
    result->not_kept = recorder->not_kept;
}

void recorder_finish(struct recorder *recorder)
{
    if (recorder->map != NULL) {
        (void)munmap((void *)(uintptr_t)recorder->map, recorder->filed);
    }
    recorder->map = NULL;
    recorder->filed = 0;
    io_close(&recorder->fd);
}
