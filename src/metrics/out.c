/* Text that goes into the caller's buffer, or does not fit. */
#include "metrics/out.h"

#include <stdarg.h>
#include <stdio.h>

void idem__out(struct idem__out *out, const char *format, ...)
{
    va_list args;
    int n;

    if (out->full) {
        return;
    }
    va_start(args, format);
    n = vsnprintf(out->base + out->len, out->cap - out->len, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= out->cap - out->len) {
        out->full = true;
        return;
    }
    out->len += (size_t)n;
}

void idem__out_quoted(struct idem__out *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            idem__out(out, "\\%c", *text);
        } else {
            idem__out(out, "%c", *text >= ' ' && *text <= '~' ? *text : '?');
        }
    }
}

int idem__out_end(struct idem__out *out, size_t *ret_len)
{
    if (out->full || out->cap == 0) {
        return IDEM_EINVALID;
    }
    out->base[out->len] = '\0';
    *ret_len = out->len;
    return 0;
}
