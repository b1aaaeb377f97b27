/* Writes text to the caller's buffer, and remembers if it does not fit. */
#ifndef IDEM_METRICS_OUT_H
#define IDEM_METRICS_OUT_H

#include <idem.h>

struct idem__out {
    char *base;
    size_t cap;
    size_t len;
    bool full;
};

/* Adds text formatted as by printf(). If it does not fit, full is set and nothing more
 * is added. */
void idem__out(struct idem__out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds @text, with the escapes that both JSON and Prometheus read in quotes. Bytes that
 * are not printable ASCII become "?". */
void idem__out_quoted(struct idem__out *out, const char *text);

/* Adds the label of the store at @url, in quotes and escaped: the part that
 * distinguishes it from others on a screen. It leaves out how the store is reached,
 * which may be long or confidential. "sqlite:/var/lib/idem.db",
 * "dynamodb://idem?region=eu-central-1" */
void idem__out_store(struct idem__out *out, const char *url);

/* Ends the text with a NUL. Returns 0, or IDEM_EINVALID if the text did not fit. */
int idem__out_end(struct idem__out *out, size_t *ret_len);

#endif
