/* One request to a source of credentials, on a thread that may block. */
#ifndef IDEM_AWS_CLIENT_FETCH_H
#define IDEM_AWS_CLIENT_FETCH_H

#include <idem.h>

#define IDEM__AWS_FETCH_MAX 65536

struct idem__aws_fetch {
    const char *method; /* "GET", "PUT", "POST". */
    const char *url;
    char *header;           /* A whole line; NULL: none. */
    struct idem_slice body; /* For a POST. */
    const char *ca_file;    /* NULL: the system's. */
    bool local;             /* Use no proxy. */
    int64_t connect_ms;
    int64_t timeout_ms;
    int stop; /* A descriptor that ends the request when it is readable;
                 -1: none. */

    int status;
    size_t answer_len;
    char answer[IDEM__AWS_FETCH_MAX + 1]; /* With a NUL after it. */
};

/* Sends the request, waits, and sets status and answer. Follows no redirects. The caller
 * has blocked all signals in this thread.
 *
 * IDEM_EUNAVAILABLE  No whole answer came in time, or it is too long. The message has
 *                    the reason, but does not name the other side.
 * IDEM_ECONFIG       libcurl is too old, or cannot read ca_file.
 * IDEM_ENOMEM
 */
int idem__aws_fetch(struct idem__aws_fetch *fetch,
                    struct idem_error *ret_error);

/* Overwrites the request and the answer with zeros. */
void idem__aws_fetch_wipe(struct idem__aws_fetch *fetch);

#endif
