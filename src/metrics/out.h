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
 * way that both read. What is not printable ASCII becomes "?". */
void idem__out_quoted(struct idem__out *out, const char *text);

/* Ends it with a NUL. 0 or IDEM_EINVALID. */
int idem__out_end(struct idem__out *out, size_t *ret_len);

#endif
