/* Collects what a command prints, as frames. */
#include "run/frames.h"
#include "run/spool.h"

void recorder_drop(struct recorder *recorder)
{
    recorder->not_kept = true;
    spool_finish(&recorder->spool);
}

/* The length of a frame is known when the next one starts. */
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
    /* One frame of standard output is better kept as what it is. */
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
