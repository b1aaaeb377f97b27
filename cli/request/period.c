/* Calendar windows, in a time zone.
 *
 * A window begins where the local clock shows a whole month, week, day or part of a
 * day. "Naive" times are what such a clock shows, as seconds since 1970 as if it were
 * in UTC. The C library knows the zones. */
#include "request/period.h"

#include "options/command.h"
#include "options/value.h"
#include "text/exit_status.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <idem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MINUTE_S INT64_C(60)
#define HOUR_S INT64_C(3600)
#define DAY_S INT64_C(86400)
#define SET_BACK_S (3 * HOUR_S)

/* ---- The zone ------------------------------------------------------------ */

/* Every file of a time zone begins with these bytes (RFC 9636). */
static bool is_zone_file(const char *path)
{
    char magic[4] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
              memcmp(magic, "TZif", sizeof(magic)) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return is;
}

static int read_zone(struct cli_period *period,
                     const struct cli_command *command, const char *zone)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789_+-/";

    if (zone == NULL || strcmp(zone, "UTC") == 0) {
        return 0;
    }
    if (zone[0] == '/' || strspn(zone, letters) != strlen(zone) ||
        strlen(zone) > 100) {
        return cli_usage(
            command,
            "--zone: not the name of a time zone; one is Europe/Berlin");
    }
    (void)snprintf(period->zone_path, sizeof(period->zone_path),
                   ":/usr/share/zoneinfo/%s", zone);
    if (!is_zone_file(period->zone_path + 1)) {
        return cli_usage(command,
                         "--zone %s: no such time zone in /usr/share/zoneinfo "
                         "(package tzdata)",
                         zone);
    }
    period->zone_file = period->zone_path;
    return 0;
}

/* The value of TZ before it names the zone of a period. */
struct zone_before {
    char *tz;
    bool was_set;
};

static void enter_zone(const struct cli_period *period,
                       struct zone_before *ret_before)
{
    const char *tz = getenv("TZ");

    ret_before->was_set = tz != NULL;
    ret_before->tz = tz != NULL ? strdup(tz) : NULL;
    assert(ret_before->tz != NULL || tz == NULL);
    (void)setenv("TZ", period->zone_file != NULL ? period->zone_file : "UTC0",
                 /* overwrite= */ 1);
    tzset();
}

static void leave_zone(struct zone_before *before)
{
    if (before->was_set) {
        (void)setenv("TZ", before->tz, /* overwrite= */ 1);
    } else {
        (void)unsetenv("TZ");
    }
    free(before->tz);
    tzset();
}

static int64_t offset_at(int64_t at_s)
{
    time_t t = (time_t)at_s;
    struct tm tm;

    return localtime_r(&t, &tm) != NULL ? tm.tm_gmtoff : 0;
}

static int64_t naive_at(int64_t at_s)
{
    return at_s + offset_at(at_s);
}

/* ---- Where windows begin ------------------------------------------------- */

static void split(int64_t naive_s, struct tm *ret_tm)
{
    time_t t = (time_t)naive_s;

    (void)gmtime_r(&t, ret_tm);
}

static int64_t floor_to(int64_t naive_s, int64_t step_s)
{
    int64_t rest = naive_s % step_s;

    return naive_s - (rest < 0 ? rest + step_s : rest);
}

/* The first returns the last moment at or before @naive_s at which a window begins, the
 * second the first such moment after @naive_s. */
static int64_t begin_before(const struct cli_period *period, int64_t naive_s)
{
    int64_t day_s = floor_to(naive_s, DAY_S);
    struct tm tm;

    split(naive_s, &tm);
    switch (period->unit) {
    case CLI_PERIOD_PART:
        return floor_to(naive_s, period->part_s);
    case CLI_PERIOD_DAY:
        break;
    case CLI_PERIOD_WEEK:
        return day_s - (tm.tm_wday + 6) % 7 * DAY_S;
    case CLI_PERIOD_MONTH:
        return day_s - (tm.tm_mday - 1) * DAY_S;
    }
    return day_s;
}

static int64_t begin_after(const struct cli_period *period, int64_t naive_s)
{
    int64_t begin_s = begin_before(period, naive_s);

    switch (period->unit) {
    case CLI_PERIOD_PART:
        return begin_s + period->part_s;
    case CLI_PERIOD_DAY:
        break;
    case CLI_PERIOD_WEEK:
        return begin_s + 7 * DAY_S;
    case CLI_PERIOD_MONTH:
        return begin_before(period, begin_s + 31 * DAY_S);
    }
    return begin_s + DAY_S;
}

/* A clock that is set back may show the beginning of a window twice, and one that is set
 * forward may skip it. A part of a day begins both times, a longer window only the first
 * time. A window whose beginning is skipped begins as if the clock had not been set yet:
 * if midnight is skipped, it begins with the change. */
static size_t moments_of(const struct cli_period *period, int64_t naive_s,
                         int64_t ret_moments[2])
{
    int64_t guess_s = naive_s - offset_at(naive_s);
    int64_t before_s = naive_s - offset_at(guess_s - DAY_S);
    int64_t after_s = naive_s - offset_at(guess_s + DAY_S);
    bool first = naive_at(before_s) == naive_s;
    bool second = after_s != before_s && naive_at(after_s) == naive_s;

    ret_moments[0] = !first && second ? after_s : before_s;
    ret_moments[1] = after_s;
    return first && second && period->unit == CLI_PERIOD_PART ? 2 : 1;
}

/* Looks at each beginning of a window that the clock shows up to SET_BACK_S before and
 * after @at_s, so that it sees those that a clock shows again: clocks are set back by an
 * hour as a rule. */
static void find_window(const struct cli_period *period, int64_t at_s,
                        int64_t *ret_start_s, int64_t *ret_end_s)
{
    int64_t shown_s = naive_at(at_s);
    int64_t naive_s = begin_before(period, shown_s - SET_BACK_S);
    int64_t last_s = begin_after(period, shown_s + SET_BACK_S);

    naive_s = begin_before(period, naive_s - 1);
    *ret_start_s = INT64_MIN;
    *ret_end_s = INT64_MAX;
    for (; naive_s <= last_s; naive_s = begin_after(period, naive_s)) {
        int64_t moments[2];
        size_t n = moments_of(period, naive_s, moments);

        while (n-- > 0) {
            if (moments[n] > at_s) {
                *ret_end_s = moments[n] < *ret_end_s ? moments[n] : *ret_end_s;
            } else if (moments[n] > *ret_start_s) {
                *ret_start_s = moments[n];
            }
        }
    }
    assert(*ret_start_s != INT64_MIN && *ret_end_s != INT64_MAX);
}

/* ---- Names --------------------------------------------------------------- */

static void name_part(const struct cli_period *period, const struct tm *tm,
                      char name[CLI_WINDOW_NAME_MAX])
{
    bool hours = period->part_s % HOUR_S == 0;
    size_t len =
        hours ? strftime(name, CLI_WINDOW_NAME_MAX, "%Y-%m-%dT%H%z", tm)
              : strftime(name, CLI_WINDOW_NAME_MAX, "%Y-%m-%dT%H:%M%z", tm);

    if (period->part_s == HOUR_S || period->part_s == MINUTE_S) {
        return;
    }
    (void)snprintf(name + len, CLI_WINDOW_NAME_MAX - len, "/%d%c",
                   (int)(period->part_s / (hours ? HOUR_S : MINUTE_S)),
                   hours ? 'h' : 'm');
}

static void name_window(const struct cli_period *period, int64_t start_s,
                        char name[CLI_WINDOW_NAME_MAX])
{
    time_t t = (time_t)start_s;
    struct tm tm;

    (void)localtime_r(&t, &tm);
    switch (period->unit) {
    case CLI_PERIOD_PART:
        name_part(period, &tm, name);
        break;
    case CLI_PERIOD_DAY:
        (void)strftime(name, CLI_WINDOW_NAME_MAX, "%Y-%m-%d", &tm);
        break;
    case CLI_PERIOD_WEEK:
        (void)strftime(name, CLI_WINDOW_NAME_MAX, "%G-W%V", &tm);
        break;
    case CLI_PERIOD_MONTH:
        (void)strftime(name, CLI_WINDOW_NAME_MAX, "%Y-%m", &tm);
        break;
    }
}

void cli_window_at(const struct cli_period *period, int64_t at_ms,
                   struct cli_window *ret_window)
{
    struct zone_before before;
    int64_t start_s;
    int64_t end_s;

    enter_zone(period, &before);
    find_window(period, floor_to(at_ms, 1000) / 1000, &start_s, &end_s);
    name_window(period, start_s, ret_window->name);
    leave_zone(&before);
    ret_window->start_ms = start_s * 1000;
    ret_window->end_ms = end_s * 1000;
}

/* ---- The option ---------------------------------------------------------- */

static int read_part(struct cli_period *period,
                     const struct cli_command *command, const char *option,
                     const char *text)
{
    int64_t ms;
    const struct cli_option row = {
        .name = option,
        .kind = CLI_DURATION,
        .target = &ms,
        .min = MINUTE_S * 1000,
        .max = DAY_S / 2 * 1000,
    };
    int status = cli_set_value(command, &row, text);

    if (status != 0) {
        return status;
    }
    if (DAY_S * 1000 % ms != 0 || ms % (MINUTE_S * 1000) != 0) {
        return cli_usage(command,
                         "--%s %s: windows must divide a day: 5m, 15m, 1h, 6h",
                         option, text);
    }
    period->unit = CLI_PERIOD_PART;
    period->part_s = ms / 1000;
    return 0;
}

int cli_period_init(struct cli_period *ret_period,
                    const struct cli_command *command, const char *option,
                    const char *text, const char *zone)
{
    static const struct {
        const char *word;
        enum cli_period_unit unit;
        int64_t part_s;
    } words[] = {
        {"minute", CLI_PERIOD_PART, MINUTE_S},
        {"hour", CLI_PERIOD_PART, HOUR_S},
        {"day", CLI_PERIOD_DAY, 0},
        {"week", CLI_PERIOD_WEEK, 0},
        {"month", CLI_PERIOD_MONTH, 0},
    };
    int status;
    size_t i;

    memset(ret_period, 0, sizeof(*ret_period));
    status = read_zone(ret_period, command, zone);
    if (status != 0) {
        return status;
    }
    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i].word) == 0) {
            ret_period->unit = words[i].unit;
            ret_period->part_s = words[i].part_s;
            return 0;
        }
    }
    return read_part(ret_period, command, option, text);
}
