/* Writing JSON text. */
#include "aws/lambda/text.h"

#include "base/text.h"

#include <stdio.h>

static void add_control(struct idem__buffer *to, uint8_t c)
{
    char escape[8];

    (void)snprintf(escape, sizeof(escape), "\\u%04x", c);
    idem__buffer_str(to, escape);
}

static size_t add_one(struct idem__buffer *to, struct idem_slice rest)
{
    const uint8_t *p = rest.base;
    size_t n = p[0] < 0x80 ? 1 : idem__utf8_len(p, rest.len);

    if (n == 0) {
        idem__buffer_str(to, "\\ufffd");
        return 1;
    }
    if (p[0] == '"' || p[0] == '\\') {
        idem__buffer_str(to, "\\");
    }
    if (p[0] < 0x20 || p[0] == 0x7f) {
        add_control(to, p[0]);
    } else {
        idem__buffer_add(to, p, n);
    }
    return n;
}

void idem__lambda_string(struct idem__buffer *to, struct idem_slice text)
{
    const uint8_t *p = text.base;
    size_t at = 0;

    idem__buffer_str(to, "\"");
    while (at < text.len) {
        at += add_one(to, idem_bytes(p + at, text.len - at));
    }
    idem__buffer_str(to, "\"");
}

void idem__lambda_member_name(struct idem__buffer *to, const char *name)
{
    char last = to->len == 0 ? '{' : (char)to->base[to->len - 1];

    if (last != '{' && last != '[') {
        idem__buffer_str(to, ",");
    }
    idem__lambda_string(to, idem_str(name));
    idem__buffer_str(to, ":");
}

void idem__lambda_member(struct idem__buffer *to, const char *name,
                         struct idem_slice text)
{
    idem__lambda_member_name(to, name);
    idem__lambda_string(to, text);
}
