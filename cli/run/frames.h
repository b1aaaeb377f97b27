/* frames.h: what a command printed, as it is recorded and replayed.
 *
 *     +--------+-------------------------+-----------+
 *     | stream | length                  | bytes     |   repeated
 *     | u8     | u32, most significant   | length of |
 *     | 1 or 2 | byte first; not 0       | them      |
 *     +--------+-------------------------+-----------+
 *
 * 1 is stdout, 2 is stderr. Frames stand in the order in which the bytes
 * arrived; two neighbours are never of one stream.
 */
#ifndef IDEM_CLI_RUN_FRAMES_H
#define IDEM_CLI_RUN_FRAMES_H

#include "run/spool.h"

enum frame_stream {
    FRAME_STDOUT = 1,
    FRAME_STDERR = 2,
};

#define FRAME_HEADER 5 /* Bytes before the bytes. */

struct frame {
    enum frame_stream stream;
    struct idem_slice bytes;
};

/* Takes the first frame off *@frames. 1; 0: the end; -1: it is malformed. */
int frame_next(struct idem_slice *frames, struct frame *ret_frame);

/* Bytes of output in @frames, without the headers. */
uint64_t frames_payload(struct idem_slice frames);

/* Collects frames while a command runs. */
struct recorder {
    struct spool spool;
    size_t max;               /* Longest output; with its headers it is at most
                                 IDEM_RESULT_MAX. */
    size_t len;               /* Of the output so far. */
    enum frame_stream stream; /* Of the last frame; 0: there is none. */
    size_t frame_at;          /* Where that frame starts. */
    bool not_kept;            /* It became too long, or found no room. */
};

void recorder_init(struct recorder *recorder, size_t max);

/* Adds what was printed to @stream. Cannot fail: a recording that cannot be
 * kept is dropped, and its result is a tombstone. */
void recorder_add(struct recorder *recorder, enum frame_stream stream,
                  const void *bytes, size_t len);

/* What was lost of the output cannot be replayed: nothing of it is kept. */
void recorder_drop(struct recorder *recorder);

/* Ends the recording: sets bytes, content_type and not_kept of @result. The
 * bytes are valid until recorder_finish(). */
void recorder_result(struct recorder *recorder, struct idem_result *result);

void recorder_finish(struct recorder *recorder);

#endif
