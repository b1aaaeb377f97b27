/* Writes the HTTP fields about a decision. */
#include "limit/limit.h"

#include <stdio.h>

/* Writes a String of RFC 9651: printable ASCII between quotes. */
static void quote(struct idem_slice name, char *to)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *p = name.base;
    size_t i;

    *to++ = '"';
    for (i = 0; i < name.len; i++) {
        if (p[i] == '"' || p[i] == '\\') {
            *to++ = '\\';
            *to++ = (char)p[i];
        } else if (p[i] < 0x20 || p[i] > 0x7e || p[i] == '%') {
            *to++ = '%';
            *to++ = digits[p[i] >> 4];
            *to++ = digits[p[i] & 15];
        } else {
            *to++ = (char)p[i];
        }
    }
    *to++ = '"';
    *to = '\0';
}

/* Returns @ms in seconds, rounded up. */
static long long seconds(int64_t ms)
{
    return ms <= 0 ? 0 : (long long)(ms / 1000 + (ms % 1000 != 0));
}

int idem_limit_fields(const struct idem_limit_request *limit,
                      const struct idem_limited *limited, int64_t now_ms,
                      struct idem_limit_http *ret_fields,
                      struct idem_error *ret_error)
{
    char name[3 * IDEM_LIMIT_NAME_MAX + 3];
    int64_t left_ms = limited->end_ms - now_ms;
    int rc = idem__limit_check(limit, ret_error);

    if (rc != 0) {
        return rc;
    }
    memset(ret_fields, 0, sizeof(*ret_fields));
    quote(limit->name, name);
    (void)snprintf(ret_fields->policy, sizeof(ret_fields->policy),
                   "%s;q=%llu;w=%lld", name, (unsigned long long)limit->max,
                   seconds(limit->per_ms));
    (void)snprintf(ret_fields->limit, sizeof(ret_fields->limit),
                   "%s;r=%llu;t=%lld", name,
                   (unsigned long long)limited->remaining, seconds(left_ms));
    if (!limited->admitted) {
        (void)snprintf(ret_fields->retry_after, sizeof(ret_fields->retry_after),
                       "%lld", seconds(left_ms));
    }
    return 0;
}
