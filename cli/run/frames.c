/* Records what a command prints, and prints what was recorded. */
#include "run/frames.h"

#include "base/crash.h"
#include "process/descriptors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

/* ---- The spool ---- */

/* A file that nobody else can open and that goes away with its descriptor. */
static int open_unnamed(void)
{
    const char *dir = secure_getenv("TMPDIR");
    char path[PATH_MAX];
    int fd;

    if (dir == NULL || *dir == '\0') {
        dir = "/tmp";
    }
    fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        return fd;
    }

    /* Not every file system has files without a name. */
    if (snprintf(path, sizeof(path), "%s/idem-run.XXXXXX", dir) >=
        (int)sizeof(path)) {
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

static int move_to_file(struct spool *spool)
{
    if (spool->fd < 0) {
        spool->fd = open_unnamed();
    }
    if (spool->fd < 0 ||
        io_write_all(spool->fd, spool->memory, spool->memory_len) != 0) {
        return -1;
    }
    IDEM__CRASH_POINT("run/spool/moved");
    spool->filed += spool->memory_len;
    spool->memory_len = 0;
    return 0;
}

void spool_init(struct spool *spool)
{
    memset(spool, 0, sizeof(*spool));
    spool->fd = -1;
}

int spool_append(struct spool *spool, const void *bytes, size_t len)
{
    assert(len <= SPOOL_MEMORY && spool->map == NULL);
    if (spool->memory == NULL) {
        spool->memory = malloc(SPOOL_MEMORY);
    }
    if (spool->memory == NULL) {
        return -1;
    }
    /* Never split an append, so that spool_patch() writes to one place. */
    if (len > SPOOL_MEMORY - spool->memory_len && move_to_file(spool) != 0) {
        return -1;
    }
    memcpy(spool->memory + spool->memory_len, bytes, len);
    spool->memory_len += len;
    return 0;
}

int spool_patch(struct spool *spool, size_t at, const void *bytes, size_t len)
{
    if (at >= spool->filed) {
        memcpy(spool->memory + (at - spool->filed), bytes, len);
        return 0;
    }
    return pwrite(spool->fd, bytes, len, (off_t)at) == (ssize_t)len ? 0 : -1;
}

size_t spool_len(const struct spool *spool)
{
    return spool->filed + spool->memory_len;
}

int spool_bytes(struct spool *spool, struct idem_slice *ret_bytes)
{
    if (spool->fd < 0) {
        *ret_bytes = idem_bytes(spool->memory, spool->memory_len);
        return 0;
    }
    if (move_to_file(spool) != 0) {
        return -1;
    }
    spool->map = mmap(NULL, spool->filed, PROT_READ, MAP_PRIVATE, spool->fd, 0);
    if (spool->map == MAP_FAILED) {
        spool->map = NULL;
        return -1;
    }
    *ret_bytes = idem_bytes(spool->map, spool->filed);
    return 0;
}

void spool_finish(struct spool *spool)
{
    if (spool->map != NULL) {
        (void)munmap(spool->map, spool->filed);
    }
    io_close(&spool->fd);
    free(spool->memory);
    spool_init(spool);
}

/* ---- Recording ---- */

void recorder_drop(struct recorder *recorder)
{
    recorder->not_kept = true;
    spool_finish(&recorder->spool);
}

/* Write the length of the last frame, known now that it ends. */
static int close_frame(struct recorder *recorder)
{
    uint8_t bytes[4];
    size_t len;

    if (recorder->stream == 0) {
        return 0;
    }
    len = spool_len(&recorder->spool) - recorder->frame_at - FRAME_HEADER;
    bytes[0] = (uint8_t)(len >> 24);
    bytes[1] = (uint8_t)(len >> 16);
    bytes[2] = (uint8_t)(len >> 8);
    bytes[3] = (uint8_t)len;
    return spool_patch(&recorder->spool, recorder->frame_at + 1, bytes, 4);
}

static int open_frame(struct recorder *recorder, enum frame_stream stream)
{
    uint8_t header[FRAME_HEADER] = {(uint8_t)stream};

    if (close_frame(recorder) != 0) {
        return -1;
    }
    recorder->stream = stream;
    recorder->frame_at = spool_len(&recorder->spool);
    return spool_append(&recorder->spool, header, sizeof(header));
}

void recorder_init(struct recorder *recorder, size_t max)
{
    memset(recorder, 0, sizeof(*recorder));
    recorder->max = max;
    spool_init(&recorder->spool);
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
        need > IDEM_RESULT_MAX - spool_len(&recorder->spool) ||
        (fresh && open_frame(recorder, stream) != 0) ||
        spool_append(&recorder->spool, bytes, len) != 0) {
        recorder_drop(recorder);
        return;
    }
    recorder->len += len;
}

void recorder_result(struct recorder *recorder, struct idem_result *result)
{
    /* Output to stdout alone is recorded without frames, so that every front end can
     * replay it. */
    bool framed = recorder->stream == FRAME_STDERR || recorder->frame_at > 0;

    if (!recorder->not_kept &&
        (close_frame(recorder) != 0 ||
         spool_bytes(&recorder->spool, &result->bytes) != 0)) {
        recorder_drop(recorder);
    }
    result->content_type =
        idem_str(framed ? IDEM_FORM_FRAMES_TYPE : IDEM_FORM_BYTES_TYPE);
    if (!framed && result->bytes.len > 0) {
        result->bytes =
            idem_bytes((const uint8_t *)result->bytes.base + FRAME_HEADER,
                       result->bytes.len - FRAME_HEADER);
    }
    result->not_kept = recorder->not_kept;
}

void recorder_finish(struct recorder *recorder)
{
    spool_finish(&recorder->spool);
}
