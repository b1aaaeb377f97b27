/* One request to where credentials come from, on a thread that may wait for it. */
#ifndef IDEM_AWS_CLIENT_FETCH_H
#define IDEM_AWS_CLIENT_FETCH_H

#include <idem.h>

#define IDEM__AWS_FETCH_MAX 65536

struct idem__aws_fetch {
    const char *method; /* "GET", "PUT", "POST". */
    const char *url;
    char *header;           /* A whole line; NULL: none. */
    struct idem_slice body; /* Of a POST. */
    const char *ca_file;    /* NULL: the system's. */
    bool local;             /* No proxy is asked. */
    int64_t connect_ms;
    int64_t timeout_ms;
    int stop; /* A descriptor: the request is given up when it is readable;
                 -1: none. */

    int status;
    size_t answer_len;
    char answer[IDEM__AWS_FETCH_MAX + 1]; /* With a NUL after it. */
};

/* Sends it, waits, and sets status and answer. Follows nowhere. All signals of
 * this thread are blocked already.
 *
 * IDEM_EUNAVAILABLE  No whole answer came in time, or it is too long; the
 *                    sentence says only why, not from where.
 * IDEM_ECONFIG       libcurl is too old, or cannot read ca_file.
 * IDEM_ENOMEM
 */
int idem__aws_fetch(struct idem__aws_fetch *fetch,
                    struct idem_error *ret_error);

/* Forgets what was asked and what was answered, for good. */
void idem__aws_fetch_wipe(struct idem__aws_fetch *fetch);

#endif
