/* Reading one HTTP/1.1 answer (RFC 9112) from bytes as they come. Pure but for
 * memory: no I/O.
 *
 *     idem__http_start(&http)
 *     idem__http_feed(&http, bytes, len, &used)     until it says DONE or BAD
 *     idem__http_end(&http)                         there will be no more bytes
 *
 * Answers 1xx are read and forgotten. The parser is strict where a mistake
 * could hide a cut or the start of another answer: lengths that are not a
 * number or are two numbers, codings but "chunked", folded lines, chunks
 * without their ends.
 */
#ifndef IDEM_AWS_CLIENT_HTTP_H
#define IDEM_AWS_CLIENT_HTTP_H

#include "base/buffer.h"

/* The longest head, with all that came before it and the trailer. */
#define IDEM__HTTP_HEAD_MAX ((size_t)64 << 10)

enum idem__http_state {
    IDEM__HTTP_HEAD = 0,
    IDEM__HTTP_LENGTH, /* A body of known length. */
    IDEM__HTTP_CLOSE,  /* A body until the connection ends. */
    IDEM__HTTP_CHUNK,  /* The line before a chunk, its bytes, its end. */
    IDEM__HTTP_CHUNK_BYTES,
    IDEM__HTTP_CHUNK_END,
    IDEM__HTTP_TRAILER,
    IDEM__HTTP_DONE,
    IDEM__HTTP_BAD, /* See flaw. */
};

struct idem__http {
    /* The caller's. False: it is not read any further. */
    bool (*on_line)(void *ctx, struct idem_slice line); /* Of the head, without
                                                            its end. */
    bool (*on_body)(void *ctx, struct idem_slice bytes);
    void *ctx;

    enum idem__http_state state;
    int status;       /* 0: not known yet. */
    bool begun;       /* A whole line has come. */
    bool keeps;       /* DONE: the connection may serve again. */
    const char *flaw; /* BAD: what is wrong, or NULL if the caller said no. */
    bool no_memory;

    /* The reader's own. */
    bool chunked;
    bool has_length;
    uint64_t left;
    size_t head_len;
    struct idem__buffer part; /* Of a line that is not whole yet. */
};

/* Forgets what was read; on_line, on_body and ctx stay. */
void idem__http_start(struct idem__http *http);

/* Reads from @bytes until the answer is DONE or BAD; *@ret_used of them were its
 * own. Returns the state. */
enum idem__http_state idem__http_feed(struct idem__http *http,
                                      struct idem_slice bytes,
                                      size_t *ret_used);

/* The connection has ended: the answer is DONE if that is its end, else BAD. */
enum idem__http_state idem__http_end(struct idem__http *http);

void idem__http_free(struct idem__http *http);

#endif
