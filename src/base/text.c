/* Well-formed UTF-8, and spans of time as people read them. */
#include "base/text.h"

#include <stddef.h>
#include <stdio.h>

size_t idem__utf8_len(const uint8_t *p, size_t left)
{
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    size_t i;

    if (p[0] < 0xc2 || p[0] > 0xf4 || left < n) {
        return 0;
    }
    for (i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) {
        return 0;
    }
    return n;
}

bool idem__utf8_is(struct idem_slice bytes)
{
    const uint8_t *p = bytes.base;
    size_t i = 0;

    while (i < bytes.len) {
        size_t n = p[i] < 0x80 ? 1 : idem__utf8_len(p + i, bytes.len - i);

        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}

static void in_seconds(int64_t ms, char buf[IDEM__SPAN_MAX])
{
    int64_t tenth = ms / 100 % 10;

    if (ms < 1000) {
        (void)snprintf(buf, IDEM__SPAN_MAX, "%lld ms", (long long)ms);
    } else if (ms < 10000 && tenth > 0) {
        (void)snprintf(buf, IDEM__SPAN_MAX, "%lld.%lld s", (long long)ms / 1000,
                       (long long)tenth);
    } else {
        (void)snprintf(buf, IDEM__SPAN_MAX, "%lld s", (long long)ms / 1000);
    }
}

void idem__span(int64_t ms, char buf[IDEM__SPAN_MAX])
{
    /* From two of a unit on, so that no unit needs a singular, or hides half of
     * what is there. */
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {
        {"years", 365 * INT64_C(86400000)},
        {"days", INT64_C(86400000)},
        {"hours", 3600000},
        {"minutes", 60000},
    };
    size_t i;

    ms = ms < 0 ? 0 : ms;
    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (ms >= 2 * units[i].ms) {
            (void)snprintf(buf, IDEM__SPAN_MAX, "%lld %s",
                           (long long)(ms / units[i].ms), units[i].name);
            return;
        }
    }
    in_seconds(ms, buf);
}
