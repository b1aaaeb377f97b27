/* Writes text to the caller's buffer, and remembers if it does not fit. */
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

static void quote(struct idem__out *out, const char *text, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (text[i] == '"' || text[i] == '\\') {
            idem__out(out, "\\%c", text[i]);
        } else {
            idem__out(out, "%c",
                      text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
        }
    }
}

void idem__out_quoted(struct idem__out *out, const char *text)
{
    quote(out, text, strlen(text));
}

void idem__out_store(struct idem__out *out, const char *url)
{
    static const char region[] = "region=";
    const char *option = url + strcspn(url, "?");
    size_t name = (size_t)(option - url);

    idem__out(out, "\"");
    quote(out, url, name);
    while (*option != '\0') {
        size_t len = strcspn(option + 1, "&");

        if (strncmp(option + 1, region, strlen(region)) == 0) {
            idem__out(out, "?");
            quote(out, option + 1, len);
            break;
        }
        option += 1 + len;
    }
    idem__out(out, "\"");
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
