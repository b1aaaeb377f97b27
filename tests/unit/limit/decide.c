/* What a limit says to one request. */
#include "limit/limit.h"
#include "sample.h"
#include "test.h"

#define START 1510012800000LL
#define END (START + IDEM_LIMIT_DAY)

static struct idem_limit_request limit;
static struct idem_limit_state found;
static struct idem_now now;
static struct idem_limit_decision d;

static void begin(uint64_t max)
{
    limit = sample_limit();
    limit.max = max;
    memset(&found, 0, sizeof(found));
    memset(&now, 0, sizeof(now));
    now.store_ms = LIMIT_AT_MS;
}

static void decide(void)
{
    memset(&d, 0x5a, sizeof(d));
    idem__limit_decide(&limit, &found, &now, &d);
}

static void has_left(uint64_t left)
{
    found.has_window = true;
    found.used = limit.max - left;
}

/* A request that costs more than is left is refused and remembered, so that it
 * hears the same count when others have taken the rest; but not without end. */
TEST(decide, remembersARefusalWithSomethingLeft)
{
    begin(8);
    has_left(3);
    limit.cost = 5;
    decide();
    assert_false(d.limited.admitted);
    assert_int_equal(d.limited.remaining, 3);
    assert_true(d.remember);
    assert_int_equal(d.used, 5);
    assert_int_equal(d.entry, -3);
    assert_int_equal(d.refusals, 1);
    found.refusals = IDEM_LIMIT_REFUSALS - 1;
    decide();
    assert_true(d.remember);
    assert_int_equal(d.refusals, IDEM_LIMIT_REFUSALS);
    found.refusals = IDEM_LIMIT_REFUSALS;
    decide();
    assert_false(d.limited.admitted);
    assert_int_equal(d.limited.remaining, 3);
    assert_false(d.remember);
    limit.cost = 3;
    decide();
    assert_true(d.limited.admitted);
    assert_int_equal(d.refusals, IDEM_LIMIT_REFUSALS);
}

/* A new request may come until late_ms after its window, and state outlives that
 * by more than any clock is wrong. */
TEST(decide, refusesWhatComesTooLate)
{
    int64_t last = END + 3600000;

    begin(8);
    limit.late_ms = 3600000;
    now.store_ms = last;
    decide();
    assert_int_equal(d.code, 0);
    assert_true(d.limited.admitted);
    assert_false(idem__limit_expired(d.expires_ms, &now));
    now.store_ms = last + 1;
    decide();
    assert_int_equal(d.code, IDEM_EINVALID);
    assert_non_null(strstr(d.text, "late"));
    assert_false(d.remember);
    assert_false(d.limited.admitted);
    /* While it is not sure, it is not late. */
    now.store_err_ms = 900000;
    decide();
    assert_int_equal(d.code, 0);
    now.store_ms = last + 900000;
    decide();
    assert_int_equal(d.code, 0);
    assert_false(idem__limit_expired(d.expires_ms, &now));
    now.store_ms = d.expires_ms + 900001;
    assert_true(idem__limit_expired(d.expires_ms, &now));
    decide();
    assert_int_equal(d.code, IDEM_EINVALID);
}

/* Nor may it say that it comes from the future, beyond what clocks differ. */
TEST(decide, refusesTheFuture)
{
    begin(8);
    now.store_ms = LIMIT_AT_MS - IDEM_LIMIT_AHEAD_MS;
    decide();
    assert_int_equal(d.code, 0);
    now.store_ms--;
    decide();
    assert_int_equal(d.code, IDEM_EINVALID);
    assert_non_null(strstr(d.text, "future"));
    now.store_err_ms = 1;
    decide();
    assert_int_equal(d.code, 0);
    /* Seconds that were taken for milliseconds are a time in 1970. */
    limit.at_ms = LIMIT_AT_MS / 1000;
    decide();
    assert_int_equal(d.code, IDEM_EINVALID);
}

/* What cannot be is not believed. */
TEST(decide, refusesWhatCannotBe)
{
    begin(8);
    found.has_window = true;
    found.used = IDEM_LIMIT_MAX + 1;
    decide();
    assert_int_equal(d.code, IDEM_ECORRUPT);
    has_left(4);
    found.has_entry = true;
    found.entry = IDEM_LIMIT_MAX;
    decide();
    assert_int_equal(d.code, IDEM_ECORRUPT);
    found.entry = -IDEM_LIMIT_MAX;
    decide();
    assert_int_equal(d.code, IDEM_ECORRUPT);
    found.entry = INT64_MIN;
    decide();
    assert_int_equal(d.code, IDEM_ECORRUPT);
}
