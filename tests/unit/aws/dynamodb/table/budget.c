/* How fast units are used, and how a throttle slows that down. */
#include "aws/dynamodb/table/table.h"

#include "test.h"

enum {
    START_MS = 1000000,
    UNITS = 100, /* In a second. */
};

/* Works from @from_ms for @ms in pieces of @units, each of which takes @piece_ms;
 * what it used. */
static double work(struct idem__budget *budget, int64_t from_ms, int64_t ms,
                   double units, int64_t piece_ms)
{
    int64_t now_ms = from_ms;
    double used = 0;

    while (now_ms < from_ms + ms) {
        int64_t wait_ms = idem__budget_wait_ms(budget, now_ms);

        if (wait_ms == 0) {
            idem__budget_use(budget, units);
            used += units;
        }
        now_ms += wait_ms > piece_ms ? wait_ms : piece_ms;
    }
    return used;
}

/* However large a piece is, no more is used than the budget and one piece. */
TEST(budget, isKeptButForOnePiece)
{
    const double pieces[] = {0.5, 7, 100, 1000};
    size_t i;

    for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct idem__budget budget;
        double used;

        idem__budget_init(&budget, UNITS, START_MS);
        used = work(&budget, START_MS, 30000, pieces[i], 1);
        assert_true(used <= 30 * UNITS + pieces[i]);
        assert_true(used >= 30 * UNITS - pieces[i]);
    }
}

/* A pause saves up the units of one second, and not of a minute. */
TEST(budget, savesUpASecond)
{
    struct idem__budget budget;
    double used;

    idem__budget_init(&budget, UNITS, START_MS);
    assert_int_equal(idem__budget_wait_ms(&budget, START_MS + 60000), 0);
    used = work(&budget, START_MS + 60000, 1000, 1, 1);
    assert_true(used <= 2 * UNITS + 1);
}

/* Throttles in each second bring the pace down to almost nothing, and never to a
 * stop. */
TEST(budget, givesWay)
{
    struct idem__budget budget;
    double used = 0;
    int i;

    idem__budget_init(&budget, UNITS, START_MS);
    for (i = 0; i < 20; i++) {
        used = work(&budget, START_MS + i * 1000, 1000, 1, 1);
        idem__budget_throttled(&budget, START_MS + (i + 1) * 1000);
    }
    assert_true(used <= UNITS / 4);
    assert_true(used >= 1);
}

/* Many throttles of one moment are one. */
TEST(budget, isHalvedOnceASecond)
{
    struct idem__budget budget;
    int i;

    idem__budget_init(&budget, UNITS, START_MS);
    (void)work(&budget, START_MS, 10000, 1, 1);
    for (i = 0; i < 8; i++) {
        idem__budget_throttled(&budget, START_MS + 10000 + i);
    }
    assert_true(budget.pace >= UNITS / 2 - 1);
}

/* A budget that is never reached is no measure: the pace is half of what was used. */
TEST(budget, isHalvedFromWhatWasUsed)
{
    struct idem__budget budget;

    idem__budget_init(&budget, 1000000, START_MS);
    (void)work(&budget, START_MS, 10000, 1, 10);
    idem__budget_throttled(&budget, START_MS + 10000);
    assert_true(budget.pace <= 51);
}

/* After ten seconds without a throttle it is the whole budget again. */
TEST(budget, recovers)
{
    struct idem__budget budget;
    double used;
    int i;

    idem__budget_init(&budget, UNITS, START_MS);
    for (i = 1; i < 9; i++) {
        idem__budget_throttled(&budget, START_MS + i * 1000);
    }
    (void)work(&budget, START_MS + 8000, 10000, 1, 1);
    used = work(&budget, START_MS + 18000, 10000, 1, 1);
    assert_true(used >= 9 * UNITS);
}
