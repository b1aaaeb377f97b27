/* What a limit says to one request. */
#include "limit/limit.h"
#include "test.h"

#define AT 1510067704370LL
#define START 1510012800000LL
#define END (START + IDEM_LIMIT_DAY)

static struct idem_limit_request limit;
static struct idem_limit_state found;
static struct idem_now now;
static struct idem_limit_decision d;

static void begin(uint64_t max)
{
    limit = (struct idem_limit_request)IDEM_LIMIT_INIT;
    limit.name = idem_str("uploads");
    limit.subject = idem_str("u1");
    limit.request = idem_str("r1");
    limit.at_ms = AT;
    limit.per_ms = IDEM_LIMIT_DAY;
    limit.max = max;
    memset(&found, 0, sizeof(found));
    memset(&now, 0, sizeof(now));
    now.store_ms = AT;
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
    now.store_ms = AT - IDEM_LIMIT_AHEAD_MS;
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
    limit.at_ms = AT / 1000;
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

/* However costs are mixed, what is admitted never comes to more than max, nothing
 * is refused that there was room for, and every retry hears what the first try
 * heard: a small store over the decision, 20,000 requests with 30 % retries. */
TEST(decide, neverAdmitsMoreThanMax)
{
    enum {
        WINDOWS = 50,
        IDS = 300
    };
    uint64_t seed = 88172645463325252ULL;
    size_t window;
    size_t asked = 0;
    size_t retries = 0;

    for (window = 0; window < WINDOWS; window++) {
        int64_t entries[IDS];
        bool known[IDS] = {false};
        bool heard[IDS] = {false};
        struct idem_limited first[IDS];
        uint64_t costs[IDS];
        uint64_t admitted = 0;
        size_t i;

        begin(1 + window * 7 % 90);
        for (i = 0; i < 400; i++) {
            size_t id;

            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            id = (size_t)(seed >> 8) % IDS;
            if (!heard[id]) {
                costs[id] = 1 + (seed >> 40) % (limit.max < 5 ? limit.max : 5);
            }
            limit.cost = costs[id];
            found.has_entry = known[id];
            found.entry = known[id] ? entries[id] : 0;
            decide();
            assert_int_equal(d.code, 0);
            asked++;
            if (heard[id]) {
                retries++;
                assert_int_equal(d.limited.admitted, first[id].admitted);
                if (found.refusals < IDEM_LIMIT_REFUSALS) {
                    assert_int_equal(d.limited.remaining, first[id].remaining);
                }
            } else {
                assert_int_equal(d.limited.admitted,
                                 admitted + limit.cost <= limit.max);
                first[id] = d.limited;
                heard[id] = true;
                admitted += d.limited.admitted ? limit.cost : 0;
            }
            if (d.remember) {
                entries[id] = d.entry;
                known[id] = true;
                has_left(limit.max - d.used);
                found.refusals = d.refusals;
            }
            assert_true(admitted <= limit.max);
        }
    }
    assert_true(retries * 10 >= asked * 3);
}
