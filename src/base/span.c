/* Spans of time as people read them. */
#include "base/span.h"

#include <stddef.h>
#include <stdio.h>

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
