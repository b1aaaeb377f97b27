/* Learns the time from the dates of HTTP, and reads and writes them. */
#include "aws/client/clock.h"

#include <stdio.h>
#include <time.h>

/* The service cuts its Date to whole seconds: its true time may be a second later. */
bool idem__aws_clock_learn(struct idem__learned_clock *clock,
                           int64_t sent_boot_ms, int64_t got_boot_ms,
                           int64_t date_ms, int64_t wall_ms)
{
    const struct idem__learned_time time = {
        .sent_boot_ms = sent_boot_ms,
        .got_boot_ms = got_boot_ms,
        .told_ms = date_ms,
        .early_ms = IDEM__AWS_DATE_SLACK_MS,
        .late_ms = 1000 + IDEM__AWS_DATE_SLACK_MS,
    };

    return idem__learned_clock_learn(clock, &time, wall_ms);
}

/* ---- Dates ------------------------------------------------------------- */

/* Returns the place of the three letters at @p in @names, a list of such, or -1. */
static int name_at(const char *p, const char *names)
{
    int i;

    for (i = 0; names[i * 3] != '\0'; i++) {
        if (memcmp(p, names + (size_t)i * 3, 3) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the number in the @len digits at @p, or -1. */
static int digits_at(const char *p, size_t len)
{
    int value = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        if (!is_digit(p[i])) {
            return -1;
        }
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

bool idem__aws_date_parse(struct idem_slice text, int64_t *ret_ms)
{
    static const char shape[] = "Sun, 06 Nov 1994 08:49:37 GMT";
    const char *p = text.base;
    struct tm tm = {.tm_isdst = 0};
    int weekday, day;
    time_t s;

    if (text.len != sizeof(shape) - 1 || memcmp(p + 3, ", ", 2) != 0 ||
        p[7] != ' ' || p[11] != ' ' || p[16] != ' ' || p[19] != ':' ||
        p[22] != ':' || memcmp(p + 25, " GMT", 4) != 0) {
        return false;
    }
    weekday = name_at(p, "SunMonTueWedThuFriSat");
    tm.tm_mday = day = digits_at(p + 5, 2);
    tm.tm_mon = name_at(p + 8, "JanFebMarAprMayJunJulAugSepOctNovDec");
    tm.tm_year = digits_at(p + 12, 4) - 1900;
    tm.tm_hour = digits_at(p + 17, 2);
    tm.tm_min = digits_at(p + 20, 2);
    tm.tm_sec = digits_at(p + 23, 2);
    if (weekday < 0 || day < 1 || tm.tm_mon < 0 || tm.tm_year < 70 ||
        tm.tm_hour < 0 || tm.tm_hour > 23 || tm.tm_min < 0 || tm.tm_min > 59 ||
        tm.tm_sec < 0 || tm.tm_sec > 60) {
        return false;
    }
    s = tm.tm_sec;
    tm.tm_sec = 0;
    s += timegm(&tm);
    /* timegm() turns an impossible date, such as 30 Feb, into another day. */
    if (tm.tm_mday != day || tm.tm_wday != weekday) {
        return false;
    }
    *ret_ms = (int64_t)s * 1000;
    return true;
}

/* ---- Times in JSON and XML ---- */

/* Reads the time zone at @at: "Z", or how far its clocks are ahead. */
static bool read_zone(const char *at, int64_t *ret_ms)
{
    int hours, minutes, n;

    *ret_ms = 0;
    if (strcmp(at, "Z") == 0 || strcmp(at, "z") == 0) {
        return true;
    }
    if ((at[0] != '+' && at[0] != '-') ||
        strspn(at + 1, "0123456789:") != strlen(at + 1) ||
        (sscanf(at + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 &&
         sscanf(at + 1, "%2d%2d%n", &hours, &minutes, &n) != 2) ||
        at[1 + n] != '\0' || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_ms = (at[0] == '-' ? -60000 : 60000) * (int64_t)(hours * 60 + minutes);
    return true;
}

/* True if @p begins with a full date and time. strptime() would also accept fewer digits,
 * and blanks. */
static bool has_form(const char *p)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    size_t i;

    for (i = 0; form[i] != '\0'; i++) {
        if (p[i] == '\0' || strchr(form[i] == 'd'   ? "0123456789"
                                   : form[i] == 'T' ? "Tt "
                                   : form[i] == '-' ? "-"
                                                    : ":",
                                   p[i]) == NULL) {
            return false;
        }
    }
    return true;
}

bool idem__aws_time_parse(struct idem_slice text, int64_t *ret_ms)
{
    struct tm tm = {.tm_isdst = 0};
    struct tm again;
    char copy[40];
    const char *at = copy + 19;
    int64_t ms = 0;
    int64_t zone_ms;
    int scale = 100;

    (void)snprintf(copy, sizeof(copy), "%.*s", (int)text.len,
                   text.len == 0 ? "" : (const char *)text.base);
    if (strlen(copy) != text.len || !has_form(copy)) {
        return false;
    }
    copy[10] = 'T';
    if (strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm) != at || tm.tm_year < 70 ||
        tm.tm_sec > 60) {
        return false;
    }
    if (*at == '.' && !is_digit(*++at)) {
        return false;
    }
    for (; at > copy + 19 && is_digit(*at); at++, scale /= 10) {
        ms += (*at - '0') * scale;
    }
    ms += (int64_t)tm.tm_sec * 1000;
    tm.tm_sec = 0;
    again = tm;
    ms += (int64_t)timegm(&again) * 1000;
    /* timegm() turns an impossible date, such as 30 Feb, into another day. */
    if (!read_zone(at, &zone_ms) || again.tm_mday != tm.tm_mday) {
        return false;
    }
    *ret_ms = ms - zone_ms;
    return true;
}

void idem__aws_stamp(int64_t ms, char ret_stamp[IDEM__AWS_STAMP_LEN + 1])
{
    int64_t last = 253402300799; /* The last second of the year 9999. */
    time_t s = ms < 0 ? 0 : ms / 1000 > last ? last : ms / 1000;
    struct tm tm;

    (void)gmtime_r(&s, &tm);
    (void)strftime(ret_stamp, IDEM__AWS_STAMP_LEN + 1, "%Y%m%dT%H%M%SZ", &tm);
}
