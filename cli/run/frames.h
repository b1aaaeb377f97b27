/* frames.h: what a command printed, as it is recorded and replayed. <idem/form.h> has
 * the drawing of a frame. Two neighbours are never of one stream. Output to stdout
 * alone is recorded without frames: every front end can replay that. */
#ifndef IDEM_CLI_RUN_FRAMES_H
#define IDEM_CLI_RUN_FRAMES_H

#include <idem.h>
#include <idem/form.h>

/* ---- Frames ---- */

enum frame_stream {
    FRAME_STDOUT = IDEM_STREAM_STDOUT,
    FRAME_STDERR = IDEM_STREAM_STDERR,
};

#define FRAME_HEADER 5 /* Bytes before the bytes. */

/* Bytes of output in @form, without the headers of frames. */
uint64_t frames_payload(const struct idem_form *form);

/* Writes each stream of @form to its own: @out and @err (descriptors; negative: left
 * out). Stops writing to one that fails. *@ret_out_error: errno of the write to @out that
 * failed; 0: none did. */
void cli_form_write(const struct idem_form *form, int out, int err,
                    int *ret_out_error);

/* Collects frames while a command runs. */
struct recorder {
    int fd;                   /* A file in memory, which a command that prints
                                 a lot does not make us map; -1: not yet. */
    size_t filed;             /* Bytes in it: at most IDEM_RESULT_MAX. */
    const char *map;          /* Those, once it is complete; NULL before. */
    size_t max;               /* Longest output, without its headers. */
    size_t len;               /* Of the output so far. */
    enum frame_stream stream; /* Of the last frame; 0: there is none. */
    size_t frame_at;          /* Where that frame starts. */
    bool not_kept;            /* It became too long, or found no room. */
};

void recorder_init(struct recorder *recorder, size_t max);

/* Adds what was printed to @stream. Cannot fail: a recording that does not fit is
 * dropped, and its result is a tombstone. */
void recorder_add(struct recorder *recorder, enum frame_stream stream,
                  const void *bytes, size_t len);

/* Drops the recording: output with a part missing must not be replayed. */
void recorder_drop(struct recorder *recorder);

/* Ends the recording: sets bytes, content_type and not_kept of @result. The
 * bytes are valid until recorder_finish(). They are frames if there was anything
 * on standard error. */
void recorder_result(struct recorder *recorder, struct idem_result *result);

void recorder_finish(struct recorder *recorder);

#endif
