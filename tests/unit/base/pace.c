/* Tests of the pauses of a waiter, and of the back-off. */
#include "base/pace.h"

#include "host.h"
#include "test.h"

/* Pauses double to a quarter of a second, and grow with the wait to a second. */
TEST(pace, growsWithTheWait)
{
    static const struct {
        int64_t waited_ms;
        int64_t pause_ms;
    } rows[] = {
        {0, 10},      {10, 20},     {30, 40},      {70, 80},        {150, 160},
        {310, 250},   {560, 250},   {5000, 250},   {8000, 250},     {9000, 400},
        {19000, 450}, {30000, 900}, {31000, 1000}, {9000000, 1000},
    };
    struct idem__pace pace = {.since_ms = 7000, .pause_ms = 10};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(rows[i].pause_ms,
                         idem__pace_next(&pace, 7000 + rows[i].waited_ms, 0));
    }
}

/* Random bits take up to half of a pause, and none of the next one. */
TEST(pace, isBetweenHalfAndAll)
{
    unsigned random;

    for (random = 0; random <= UINT16_MAX; random++) {
        struct idem__pace pace = {.pause_ms = 100};
        int64_t ms = idem__pace_next(&pace, 0, (uint16_t)random);

        assert_between(ms, 50, 100);
        assert_int_equal(200, pace.pause_ms);
    }
}

/* The longest wait doubles with each attempt, up to the cap, and never more. */
TEST(backoff, doublesUpToItsCap)
{
    static const struct {
        unsigned attempt;
        int64_t base_ms, cap_ms, want_ms;
    } rows[] = {
        {0, 50, 1000, 50},
        {1, 50, 1000, 100},
        {4, 50, 1000, 800},
        {5, 50, 1000, 1000},
        {63, 50, 1000, 1000},
        {4000000000, 50, 1000, 1000},
        {200, 1, INT64_MAX, INT64_MAX},
        {3, 0, 1000, 0},
        {3, 50, 0, 0},
        {0, 5000, 1000, 1000},
    };

    EACH(row, rows) {
        /* The random number that gives the longest wait. */
        uint64_t most = (uint64_t)row->want_ms;

        assert_int_equal(idem__backoff(row->attempt, row->base_ms, row->cap_ms,
                                       most),
                         row->want_ms);
        assert_int_equal(idem__backoff(row->attempt, row->base_ms, row->cap_ms,
                                       0),
                         0);
    }
}

/* The waits are spread evenly over all that is allowed. ROW(16) */
TEST(backoff, spreadsItsWaits)
{
    uint64_t seed = 11;
    unsigned tenth[10] = {0};
    unsigned i;

    for (i = 0; i < 100000; i++) {
        int64_t ms = idem__backoff(3, 50, 10000, random_next(&seed));

        assert_between(ms, 0, 400);
        tenth[ms * 10 / 401]++;
    }
    for (i = 0; i < 10; i++) {
        assert_between(tenth[i], 9500, 10500);
    }
}
