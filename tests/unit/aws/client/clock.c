/* Tests of the service's clock. */
#include "aws/client/clock.h"

#include "host.h"
#include "test.h"

#include <stdlib.h>
#include <time.h>

#define BOOT ((int64_t)5000000)
#define WALL ((int64_t)1700000000000)

static bool parse(const char *text, int64_t *ret_ms)
{
    return idem__aws_date_parse(idem_str(text), ret_ms);
}

/* Answers whose seconds turn at different moments narrow it down; time widens it
 * again. */
TEST(clock, narrowsWithAnswersAndWidensWithTime)
{
    struct idem__learned_clock clock = {.known = false};
    int64_t ms = 0, err_ms = 0, later_ms, later_err_ms;
    int64_t t;

    for (t = 0; t < 20000; t += 130) {
        /* The service's clock shows WALL + t + 400. */
        int64_t date_ms = (WALL + t + 400) / 1000 * 1000;

        assert_true(idem__aws_clock_learn(&clock, BOOT + t - 5, BOOT + t + 5,
                                          date_ms, WALL));
    }
    assert_true(idem__learned_clock_now(&clock, BOOT + t, &ms, &err_ms));
    assert_between(WALL + t + 400, ms - err_ms, ms + err_ms);
    assert_between(err_ms, 250, 400);

    assert_true(idem__learned_clock_now(&clock, BOOT + t + 3600 * 1000,
                                        &later_ms, &later_err_ms));
    /* 200 ppm of an hour. */
    assert_between(later_err_ms - err_ms, 719, 721);
    assert_between(later_ms - ms, 3600 * 1000 - 1, 3600 * 1000 + 1);
}

/* Dates that are years off, from before there was anything to answer, and
 * readings that run backwards teach nothing. */
TEST(clock, refusesNonsense)
{
    static const struct {
        int64_t sent, got, date, wall;
    } rows[] = {
        {BOOT, BOOT - 1, WALL, WALL},
        {-1, BOOT, WALL, WALL},
        {BOOT, INT64_MAX, WALL, WALL},
        {BOOT, BOOT, 0, WALL},
        {BOOT, BOOT, -1, WALL},
        {BOOT, BOOT, 1577836799999, 1577836800000},
        {BOOT, BOOT, WALL + IDEM__LEARNED_OFF_MAX_MS + 1, WALL},
        {BOOT, BOOT, WALL - IDEM__LEARNED_OFF_MAX_MS - 1, WALL},
        {BOOT, BOOT, INT64_MAX, WALL},
        {BOOT, BOOT, INT64_MIN, WALL},
        {BOOT, BOOT, WALL, INT64_MAX},
        {BOOT, BOOT, WALL, INT64_MIN},
    };
    struct idem__learned_clock clock = {.known = false};
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        if (idem__aws_clock_learn(&clock, rows[i].sent, rows[i].got,
                                  rows[i].date, rows[i].wall)) {
            fail_with("row %zu was taken", i);
        }
        assert_false(clock.known);
    }
    assert_true(idem__aws_clock_learn(&clock, BOOT, BOOT,
                                      WALL + IDEM__LEARNED_OFF_MAX_MS, WALL));
}

static void learn_exact(struct idem__learned_clock *clock, int64_t t,
                        int64_t off)
{
    assert_true(idem__aws_clock_learn(clock, BOOT + t, BOOT + t + 20,
                                      (WALL + t + off) / 1000 * 1000, WALL));
}

static bool says(const struct idem__learned_clock *clock, int64_t t,
                 int64_t off)
{
    int64_t ms, err_ms;

    assert_true(idem__learned_clock_now(clock, BOOT + t, &ms, &err_ms));
    return WALL + t + off >= ms - err_ms && WALL + t + off <= ms + err_ms;
}

/* One host, or two in a row, whose clock is wrong do not deceive it: the truth
 * stays within. A third that agrees is believed, which is what it takes to follow a
 * service whose clock really moved. */
TEST(clock, isNotDeceivedByOneHost)
{
    struct idem__learned_clock clock = {.known = false};
    int64_t ms, err_ms;

    learn_exact(&clock, 0, 0);
    learn_exact(&clock, 300, 0);
    learn_exact(&clock, 600, 60000);
    assert_true(says(&clock, 700, 0));
    assert_true(says(&clock, 700, 60000));
    learn_exact(&clock, 800, 60000);
    assert_true(says(&clock, 900, 0));

    /* The others are heard again. */
    learn_exact(&clock, 1000, 0);
    learn_exact(&clock, 1300, 0);
    assert_true(says(&clock, 1400, 0));
    assert_true(says(&clock, 1400, 60000));
    learn_exact(&clock, 1600, 0);
    assert_true(says(&clock, 1700, 0));
    assert_false(says(&clock, 1700, 60000));

    /* Three that agree are the clock. */
    learn_exact(&clock, 2000, -60000);
    learn_exact(&clock, 2300, -60000);
    assert_true(says(&clock, 2400, 0));
    learn_exact(&clock, 2600, -60000);
    assert_false(says(&clock, 2700, 0));
    assert_true(says(&clock, 2700, -60000));
    assert_true(idem__learned_clock_now(&clock, BOOT + 2700, &ms, &err_ms));
    assert_true(err_ms < 1000);
}

/* What a simulated run met. */
struct run {
    uint64_t answers, liars, worst_err_ms, outside;
};

/* One machine and one service, for a day of simulated time: the machine's boot
 * clock runs wrong by up to @ppm, hosts are up to @skew_ms off, requests take up
 * to a second, and @liars of 1,000 answers come from a host that is far off; so
 * many in a row that agree are believed (@in_a_row). */
static void simulate(uint64_t *seed, int ppm, int64_t skew_ms, unsigned liars,
                     unsigned in_a_row, struct run *run)
{
    struct idem__learned_clock clock = {.known = false};
    int64_t rate = (int64_t)(random_next(seed) % (2 * (uint64_t)ppm + 1)) - ppm;
    int64_t wall_off = (int64_t)(random_next(seed) % 7200000) - 3600 * 1000;
    int64_t true_ms = 0;
    unsigned lied = 0;

    while (true_ms < (int64_t)24 * 3600 * 1000) {
        int64_t out = (int64_t)(random_next(seed) % 500);
        int64_t back = (int64_t)(random_next(seed) % 500);
        int64_t skew =
            skew_ms == 0
                ? 0
                : (int64_t)(random_next(seed) % (2 * (uint64_t)skew_ms + 1)) -
                      skew_ms;
        int64_t made_ms = true_ms + out;
        int64_t got_ms = made_ms + back;
        int64_t ms, err_ms;
        bool lies =
            true_ms > 0 && random_next(seed) % 1000 < liars && lied < in_a_row;

        lied = lies ? lied + 1 : 0;
        run->liars += lies;
        run->answers++;
        if (lies) {
            skew += 30000;
        }
        assert_true(idem__aws_clock_learn(
            &clock, BOOT + true_ms + true_ms * rate / 1000000,
            BOOT + got_ms + got_ms * rate / 1000000,
            (WALL + made_ms + skew) / 1000 * 1000, WALL + got_ms + wall_off));
        true_ms =
            got_ms + (int64_t)(random_next(seed) %
                               (random_next(seed) % 8 == 0 ? 600000 : 5000));
        assert_true(idem__learned_clock_now(
            &clock, BOOT + true_ms + true_ms * rate / 1000000, &ms, &err_ms));
        if (WALL + true_ms < ms - err_ms || WALL + true_ms > ms + err_ms) {
            run->outside++;
        }
        if ((uint64_t)err_ms > run->worst_err_ms) {
            run->worst_err_ms = (uint64_t)err_ms;
        }
    }
}

/* Over many simulated days the truth is always within what the clock says. The
 * controls show that the rig would see it leave: a clock that runs wrong by more
 * than is allowed for, hosts further off than the slack, and three liars in a
 * row. */
TEST(clock, alwaysHoldsTheTruth)
{
    const char *long_run = getenv("IDEM_TEST_LONG");
    unsigned days = long_run != NULL && long_run[0] == '1' ? 20000 : 300;
    static const struct {
        const char *name;
        int ppm;
        int64_t skew_ms;
        unsigned liars, in_a_row;
        bool holds;
    } rows[] = {
        {"honest hosts", 190, 200, 0, 0, true},
        {"some that are far off", 190, 200, 100, 1, true},
        {"two in a row", 190, 200, 300, 2, true},
        {"control: a worse clock", 20000, 0, 0, 0, false},
        {"control: worse hosts", 0, 2500, 0, 0, false},
        {"control: three in a row", 190, 200, 500, 3, false},
    };
    uint64_t seed = 20240817;
    unsigned day;

    EACH(each, rows) {
        struct run run = {0};

        for (day = 0; day < (each->holds ? days : 10); day++) {
            simulate(&seed, each->ppm, each->skew_ms, each->liars,
                     each->in_a_row, &run);
        }
        assert_int_equal(run.outside == 0, each->holds);
        if (each->liars == 0 && each->holds) {
            assert_true(run.worst_err_ms < 1600);
        }
    }
}

/* ---- Dates ------------------------------------------------------------- */

/* The example of the standard, leap days, and a leap second. */
TEST(date, isRead)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777000},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Tue, 29 Feb 2000 23:59:59 GMT", 951868799000},
        {"Thu, 29 Feb 2024 00:00:00 GMT", 1709164800000},
        {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800000},
        {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799000},
    };
    int64_t ms;

    EACH(row, rows) {
        ms = -1;
        if (!parse(row->text, &ms) || ms != row->ms) {
            fail_with("%s gave %lld", row->text, (long long)ms);
        }
    }
}

/* It agrees with the C library on every day of four centuries, both ways. */
TEST(date, agreesWithTheLibrary)
{
    static const char weekdays[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t day;

    for (day = 0; day < (time_t)400 * 366; day++) {
        time_t t = day * 86400 + day % 86400;
        struct tm tm;
        char text[64], stamp[32];
        char got[IDEM__AWS_STAMP_LEN + 1];
        int64_t ms;

        assert_non_null(gmtime_r(&t, &tm));
        snprintf(text, sizeof(text), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
                 weekdays + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon,
                 tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
        assert_true(parse(text, &ms));
        assert_int_equal(ms, (int64_t)t * 1000);
        assert_true(strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm) > 0);
        idem__aws_stamp(ms + 999, got);
        assert_string_equal(got, stamp);
    }
}

/* A host may sleep while an answer is under way: the bound that was set when the
 * request was sent is as old as that. Where it slept for long the answer says
 * nothing. */
TEST(clock, widensWhileAnAnswerIsUnderWay)
{
    const int64_t date_ms = 1700000000000;
    const int64_t true_sent_ms = date_ms + 999 + IDEM__AWS_DATE_SLACK_MS;
    const int64_t trip_ms =
        IDEM__LEARNED_TRIP_MAX_MS; /* By a slow boot clock. */
    const int64_t true_trip_ms = trip_ms + trip_ms / 5000;
    struct idem__learned_clock clock = {.known = false};
    int64_t ms;
    int64_t err_ms;

    assert_false(
        idem__aws_clock_learn(&clock, 1000, 1001 + trip_ms, date_ms, date_ms));
    assert_true(
        idem__aws_clock_learn(&clock, 1000, 1000 + trip_ms, date_ms, date_ms));
    assert_true(idem__learned_clock_now(&clock, 1000 + trip_ms, &ms, &err_ms));
    assert_true(ms + err_ms >= true_sent_ms + true_trip_ms);
}

/* Anything else is no date. */
TEST(date, isRefusedInAnyOtherForm)
{
    static const char *const texts[] = {
        "",
        "Sun, 06 Nov 1994 08:49:37 GMt",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Fri, 31 Nov 1994 08:49:37 GMT",
        "Thu, 31 Nov 1994 08:49:37 GMT",
        "Tue, 29 Feb 2023 08:49:37 GMT",
        "Wed, 29 Feb 2023 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 199x 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08-49-37 GMT",
        "Sun; 06 Nov 1994 08:49:37 GMT",
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "2024-02-29T00:00:00Z",
    };
    int64_t ms = 7;

    EACH(text, texts) {
        if (parse(*text, &ms)) {
            fail_with("\"%s\" was read as %lld", *text, (long long)ms);
        }
        assert_int_equal(ms, 7);
    }
}

/* A time before or after what four digits can say is taken to their ends. */
TEST(stamp, staysWithinFourDigits)
{
    char stamp[IDEM__AWS_STAMP_LEN + 1];

    idem__aws_stamp(1440938160000, stamp);
    assert_string_equal(stamp, "20150830T123600Z");
    idem__aws_stamp(-1, stamp);
    assert_string_equal(stamp, "19700101T000000Z");
    idem__aws_stamp(INT64_MAX, stamp);
    assert_string_equal(stamp, "99991231T235959Z");
}
