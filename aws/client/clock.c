/* Dates of HTTP: what is learned from them, and how they are read and written. */
#include "aws/client/clock.h"

#include <stdio.h>
#include <time.h>

/* The Date is cut to whole seconds. */
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

/* Days from 1970-01-01 to a day of the Gregorian calendar, and back, by the usual
 * reckoning of years that begin in March. */
static int64_t days_of(int year, unsigned month, unsigned day)
{
    int y = month <= 2 ? year - 1 : year;
    int era = y / 400;
    int of_era = y - era * 400;
    unsigned from_march = (month + 9) % 12;
    unsigned of_year = (153 * from_march + 2) / 5 + day - 1;

    return (int64_t)era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 +
           (int64_t)of_year - 719468;
}

static void day_of(int64_t days, int *ret_year, unsigned *ret_month,
                   unsigned *ret_day)
{
    int64_t z = days + 719468;
    int64_t era = z / 146097;
    int64_t of_era = z - era * 146097;
    int64_t year =
        (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t from_march = (5 * of_year + 2) / 153;

    *ret_day = (unsigned)(of_year - (153 * from_march + 2) / 5 + 1);
    *ret_month = (unsigned)(from_march < 10 ? from_march + 3 : from_march - 9);
    *ret_year = (int)(year + era * 400 + (*ret_month <= 2 ? 1 : 0));
}

/* The place of the three letters at @p in a list of such, or -1. */
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

/* The number that @len digits at @p make, or -1. */
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
    int weekday, day, month, year, hour, minute, second;
    int back_year;
    unsigned back_month, back_day;
    int64_t days;

    if (text.len != sizeof(shape) - 1 || memcmp(p + 3, ", ", 2) != 0 ||
        p[7] != ' ' || p[11] != ' ' || p[16] != ' ' || p[19] != ':' ||
        p[22] != ':' || memcmp(p + 25, " GMT", 4) != 0) {
        return false;
    }
    weekday = name_at(p, "ThuFriSatSunMonTueWed");
    day = digits_at(p + 5, 2);
    month = name_at(p + 8, "JanFebMarAprMayJunJulAugSepOctNovDec");
    year = digits_at(p + 12, 4);
    hour = digits_at(p + 17, 2);
    minute = digits_at(p + 20, 2);
    second = digits_at(p + 23, 2);
    if (weekday < 0 || day < 1 || month < 0 || year < 1970 || hour < 0 ||
        hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) {
        return false;
    }
    days = days_of(year, (unsigned)month + 1, (unsigned)day);
    day_of(days, &back_year, &back_month, &back_day);
    if (back_day != (unsigned)day || days % 7 != weekday) {
        return false;
    }
    *ret_ms = ((days * 24 + hour) * 60 + minute) * 60000 + second * 1000;
    return true;
}

/* ---- Times in JSON and XML ---- */

/* The time zone at @at: "Z", or how far its clocks are ahead. */
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

/* strptime() takes fewer digits, and blanks. */
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
    if (strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm) == NULL || tm.tm_year < 70 ||
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
    /* A day that no calendar has comes back as another one. */
    if (!read_zone(at, &zone_ms) || again.tm_mday != tm.tm_mday) {
        return false;
    }
    *ret_ms = ms - zone_ms;
    return true;
}

static void put_digits(char *p, size_t len, unsigned value)
{
    while (len > 0) {
        p[--len] = (char)('0' + value % 10);
        value /= 10;
    }
}

void idem__aws_stamp(int64_t ms, char ret_stamp[IDEM__AWS_STAMP_LEN + 1])
{
    int64_t last = 253402300799; /* Of the year 9999. */
    int64_t s = ms < 0 ? 0 : ms / 1000 > last ? last : ms / 1000;
    unsigned of_day = (unsigned)(s % 86400);
    unsigned month, day;
    int year;

    day_of(s / 86400, &year, &month, &day);
    put_digits(ret_stamp, 4, (unsigned)year);
    put_digits(ret_stamp + 4, 2, month);
    put_digits(ret_stamp + 6, 2, day);
    ret_stamp[8] = 'T';
    put_digits(ret_stamp + 9, 2, of_day / 3600);
    put_digits(ret_stamp + 11, 2, of_day / 60 % 60);
    put_digits(ret_stamp + 13, 2, of_day % 60);
    ret_stamp[15] = 'Z';
    ret_stamp[16] = '\0';
}
