/* When an event happened, as its source says. */
#include "aws/lambda/event_time.h"

#include <ctype.h>
#include <stdlib.h>
#include <time.h>

#define TIME_MAX_MS 253402300799999 /* The end of the year 9999. */

/* The fraction after the seconds, ".123", in ms; what is finer is cut. -1: it
 * is none. @at moves past it. */
static int fraction_ms(const char **at)
{
    int ms = 0;
    int scale = 100;

    if (**at != '.') {
        return 0;
    }
    if (!isdigit((unsigned char)*++*at)) {
        return -1;
    }
    for (; isdigit((unsigned char)**at); ++*at) {
        ms += (**at - '0') * scale;
        scale /= 10;
    }
    return ms;
}

static bool in_range(const struct tm *tm)
{
    return tm->tm_year >= 70 && tm->tm_mon >= 0 && tm->tm_mon < 12 &&
           tm->tm_mday >= 1 && tm->tm_mday <= 31 && tm->tm_hour < 24 &&
           tm->tm_min < 60 && tm->tm_sec <= 60;
}

int64_t idem__lambda_time_utc(struct idem_slice text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    struct tm tm = {.tm_isdst = 0};
    char copy[40];
    const char *rest;
    size_t i;
    int ms;

    if (text.len < sizeof(form) || text.len >= sizeof(copy)) {
        return 0;
    }
    memcpy(copy, text.base, text.len);
    copy[text.len] = '\0';
    for (i = 0; i + 1 < sizeof(form); i++) {
        if (form[i] == 'd' ? !isdigit((unsigned char)copy[i])
                           : copy[i] != form[i]) {
            return 0;
        }
    }
    tm.tm_year = atoi(copy) - 1900;
    tm.tm_mon = atoi(copy + 5) - 1;
    tm.tm_mday = atoi(copy + 8);
    tm.tm_hour = atoi(copy + 11);
    tm.tm_min = atoi(copy + 14);
    tm.tm_sec = atoi(copy + 17);
    rest = copy + sizeof(form) - 1;
    ms = fraction_ms(&rest);
    if (ms < 0 || strcmp(rest, "Z") != 0 || rest + 1 != copy + text.len ||
        !in_range(&tm)) {
        return 0;
    }
    return (int64_t)timegm(&tm) * 1000 + ms;
}

int64_t idem__lambda_time_ms(struct idem_slice text)
{
    const char *p = text.base;
    int64_t ms = 0;
    size_t i;

    for (i = 0; i < text.len; i++) {
        if (!isdigit((unsigned char)p[i]) || ms > TIME_MAX_MS / 10) {
            return 0;
        }
        ms = ms * 10 + (p[i] - '0');
    }
    return ms > TIME_MAX_MS ? 0 : ms;
}

int64_t idem__lambda_time_seconds(struct json_object *object, const char *name)
{
    struct json_object *member;
    double seconds;

    if (!json_object_object_get_ex(object, name, &member) ||
        (!json_object_is_type(member, json_type_double) &&
         !json_object_is_type(member, json_type_int))) {
        return 0;
    }
    seconds = json_object_get_double(member);
    if (!(seconds > 0 && seconds < (double)(TIME_MAX_MS / 1000))) {
        return 0;
    }
    return (int64_t)(seconds * 1000 + 0.5);
}
