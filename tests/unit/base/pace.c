/* Tests of the pauses of a waiter. */
#include "base/pace.h"

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
