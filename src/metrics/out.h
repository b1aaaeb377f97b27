/* Text that goes into the caller's buffer, or does not fit. */
#ifndef IDEM_METRICS_OUT_H
#define IDEM_METRICS_OUT_H

#include <idem.h>

struct idem__out {
    char *base;
    size_t cap;
    size_t len;
    bool full;
};

void idem__out(struct idem__out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* @text with what neither JSON nor Prometheus may hold in quotes escaped in the
 * way that both read. Bytes that are not printable ASCII become "?". */
void idem__out_quoted(struct idem__out *out, const char *text);

/* The label of the store at @url, in quotes and escaped: what tells it from others on
 * a screen, and nothing of how it is reached, which may be long or name what is not
 * for everybody. "sqlite:/var/lib/idem.db", "dynamodb://idem?region=eu-central-1" */
void idem__out_store(struct idem__out *out, const char *url);

/* Ends it with a NUL. 0 or IDEM_EINVALID. */
int idem__out_end(struct idem__out *out, size_t *ret_len);

#endif
