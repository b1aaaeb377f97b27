/* Store time of a local store: the boot clock since the wall was read once. */

#include "contract/parts.h"
#include "test.h"

static struct idem_clock_reading reading_of(char boot, int64_t boot_ms,
                                            int64_t wall_ms)
{
    struct idem_clock_reading reading = {
        .wall_ms = wall_ms,
        .boot_ms = boot_ms,
    };

    memset(reading.boot_id, boot, 16);
    return reading;
}

static bool now_at(struct idem_anchor *anchor, char boot, int64_t boot_ms,
                   int64_t wall_ms, int64_t last_ms, struct idem_now *ret_now)
{
    struct idem_clock_reading reading = reading_of(boot, boot_ms, wall_ms);

    memset(ret_now, 0x5a, sizeof(*ret_now));
    return idem__anchor_now(anchor, &reading, last_ms, ret_now);
}

/* A boot clock that seems to run backwards does not take store time with it. */
TEST(anchor, doesNotGoBehindItself)
{
    struct idem_anchor anchor = {.store_ms = 0};
    struct idem_now now;

    assert_true(now_at(&anchor, 'A', 5000, 1000000, 0, &now));
    assert_false(now_at(&anchor, 'A', 4000, 1000000, 0, &now));
    assert_int_equal(now.store_ms, 1000000);
}

/* ---- A wall clock that nothing keeps right ---- */

#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS (24 * HOUR_MS)
#define START_MS (INT64_C(20000) * DAY_MS)

static bool unsure_at(struct idem_anchor *anchor, char boot, int64_t boot_ms,
                      int64_t wall_ms, struct idem_now *ret_now)
{
    struct idem_clock_reading reading = reading_of(boot, boot_ms, wall_ms);

    reading.unsynchronised = true;
    return idem__anchor_now(anchor, &reading, START_MS, ret_now);
}

static struct idem_anchor anchor_of_boot_a(void)
{
    struct idem_anchor anchor = {.store_ms = 0};
    struct idem_now now;

    assert_true(now_at(&anchor, 'A', 0, START_MS, 0, &now));
    return anchor;
}

/* The first time of all is believed: there is nothing that it could expire. */
TEST(doubt, isNoneAtTheFirstUse)
{
    struct idem_anchor anchor = {.store_ms = 0};
    struct idem_clock_reading reading = reading_of('A', 0, START_MS);
    struct idem_now now;

    reading.unsynchronised = true;
    assert_true(idem__anchor_now(&anchor, &reading, 0, &now));
    assert_int_equal(now.store_ms, START_MS);
    assert_int_equal(now.doubt_ms, 0);
    assert_int_equal(anchor.jump_ms, 0);
}

/* What an unsynchronised clock went on by at a boot is in doubt, and stays so while
 * less boot time than that has passed. */
TEST(doubt, lastsAsLongAsTheJump)
{
    struct idem_anchor anchor = anchor_of_boot_a();
    struct idem_now now;

    assert_true(unsure_at(&anchor, 'B', 10, START_MS + 3 * DAY_MS, &now));
    assert_int_equal(now.store_ms, START_MS + 3 * DAY_MS);
    assert_int_equal(now.doubt_ms, 3 * DAY_MS);
    assert_int_equal(anchor.jump_ms, 3 * DAY_MS);
    assert_false(unsure_at(&anchor, 'B', 9 + 3 * DAY_MS, 0, &now));
    assert_int_equal(now.store_ms, START_MS + 6 * DAY_MS - 1);
    assert_int_equal(now.doubt_ms, 3 * DAY_MS);
    assert_true(unsure_at(&anchor, 'B', 10 + 3 * DAY_MS, 0, &now));
    assert_int_equal(now.store_ms, START_MS + 6 * DAY_MS);
    assert_int_equal(now.doubt_ms, 0);
    assert_false(unsure_at(&anchor, 'B', 20 + 3 * DAY_MS, 0, &now));
}

/* Once it is synchronised the clock is believed: back to what it shows, but not
 * before what is sure; what it shows later is left to the next boot. */
TEST(doubt, endsWhenTheClockIsSynchronised)
{
    static const struct {
        int64_t wall_ms;
        int64_t want_ms;
    } rows[] = {
        {START_MS + 3 * DAY_MS + HOUR_MS, START_MS + 3 * DAY_MS + HOUR_MS},
        {START_MS + HOUR_MS + 7, START_MS + HOUR_MS + 7},
        {START_MS + 2 * DAY_MS, START_MS + 2 * DAY_MS},
        {START_MS - DAY_MS, START_MS + HOUR_MS},
        {0, START_MS + HOUR_MS},
        {START_MS + 9 * DAY_MS, START_MS + 3 * DAY_MS + HOUR_MS},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_anchor anchor = anchor_of_boot_a();
        struct idem_now now;

        assert_true(unsure_at(&anchor, 'B', 10, START_MS + 3 * DAY_MS, &now));
        assert_true(now_at(&anchor, 'B', 10 + HOUR_MS, rows[i].wall_ms,
                           START_MS, &now));
        if (now.store_ms != rows[i].want_ms || now.doubt_ms != 0) {
            fail_with("row %zu: %lld", i, (long long)now.store_ms);
        }
        assert_false(now_at(&anchor, 'B', 11 + HOUR_MS, 0, START_MS, &now));
        assert_int_equal(now.store_ms, rows[i].want_ms + 1);
    }
}

/* A boot in doubt is forgotten at the next: its time was never sure. */
TEST(doubt, isNotCarriedToTheNextBoot)
{
    struct idem_anchor anchor = anchor_of_boot_a();
    struct idem_now now;

    assert_true(unsure_at(&anchor, 'B', 10, START_MS + 99 * DAY_MS, &now));
    assert_true(now_at(&anchor, 'C', 10, START_MS + HOUR_MS, START_MS, &now));
    assert_int_equal(now.store_ms, START_MS + HOUR_MS);
    assert_int_equal(now.doubt_ms, 0);
    assert_int_equal(anchor.jump_ms, HOUR_MS);
}
