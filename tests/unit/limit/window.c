/* What a limit may be, which window a time lies in, and that no two windows or
 * requests share an identity. */
#include "limit/limit.h"
#include "sample.h"
#include "test.h"

/* A window is cut in UTC from the time of the event, and the next begins where it
 * ends. */
TEST(window, isCutInUtc)
{
    static const struct {
        int64_t at_ms;
        int64_t per_ms;
        int64_t start_ms;
    } rows[] = {
        {LIMIT_AT_MS, IDEM_LIMIT_SECOND, 1510067704000},
        {LIMIT_AT_MS, IDEM_LIMIT_MINUTE, 1510067700000},
        {LIMIT_AT_MS, IDEM_LIMIT_HOUR, 1510066800000},
        {LIMIT_AT_MS, IDEM_LIMIT_DAY, 1510012800000},
        {LIMIT_AT_MS, 7 * IDEM_LIMIT_DAY,
         1509580800000}, /* Thursday, 2 November. */
        {LIMIT_AT_MS, 1500, 1510067703000},
        {0, IDEM_LIMIT_DAY, 0},
        {IDEM_LIMIT_DAY - 1, IDEM_LIMIT_DAY, 0},
        {IDEM_LIMIT_DAY, IDEM_LIMIT_DAY, IDEM_LIMIT_DAY},
        /* The leap day of 2016, and the leap second of its end, which Unix time
         * does not count. */
        {1456790399999, IDEM_LIMIT_DAY, 1456704000000},
        {1483228799999, IDEM_LIMIT_DAY, 1483142400000},
        {1483228800000, IDEM_LIMIT_DAY, 1483228800000},
        {253402300799999, IDEM_LIMIT_DAY, 253402214400000},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_limit_request limit = sample_limit();
        int64_t start_ms;
        int64_t end_ms;

        limit.at_ms = rows[i].at_ms;
        limit.per_ms = rows[i].per_ms;
        idem__limit_window(&limit, &start_ms, &end_ms);
        if (start_ms != rows[i].start_ms ||
            end_ms != start_ms + rows[i].per_ms) {
            fail_with("row %zu: %lld to %lld", i, (long long)start_ms,
                      (long long)end_ms);
        }
    }
}

/* A caller that has a calendar says where the window begins, and how long it is: here
 * November of 2017 in Berlin, to its last moment; any other that begins there. */
TEST(window, beginsWhereTheCallerSays)
{
    struct idem_limit_request limit = sample_limit();
    int64_t start_ms;
    int64_t end_ms;

    limit.at_ms = 1512082799999;
    limit.start_ms = 1509490800000;
    limit.per_ms = 30 * IDEM_LIMIT_DAY;
    idem__limit_window(&limit, &start_ms, &end_ms);
    assert_int_equal(start_ms, limit.start_ms);
    assert_int_equal(end_ms, limit.at_ms + 1);
    limit.per_ms = IDEM_LIMIT_DAY;
    idem__limit_window(&limit, &start_ms, &end_ms);
    assert_int_equal(start_ms, limit.start_ms + 29 * IDEM_LIMIT_DAY);
}

/* Whatever is out of range is refused by its name. */
TEST(check, namesWhatIsWrong)
{
    static char long_name[256];
    struct idem_limit_request limit;

    memset(long_name, 'x', sizeof(long_name));
#define REFUSED(member, value, word)                                           \
    do {                                                                       \
        limit = sample_limit();                                                \
        limit.member = value;                                                  \
        assert_code(IDEM_EINVALID, idem__limit_check(&limit, &why));           \
        assert_why(word);                                                      \
    } while (0)
#define TAKEN(member, value)                                                   \
    do {                                                                       \
        limit = sample_limit();                                                \
        limit.member = value;                                                  \
        assert_ok(idem__limit_check(&limit, &why));                            \
    } while (0)
    REFUSED(size, 1, "IDEM_LIMIT_INIT");
    REFUSED(name, idem_str(""), "name: ");
    REFUSED(name, idem_bytes(long_name, 256), "name: ");
    TAKEN(name, idem_bytes(long_name, 255));
    REFUSED(subject, idem_str(""), "subject: ");
    REFUSED(subject, idem_bytes(long_name, 256), "subject: ");
    REFUSED(request, idem_str(""), "request: ");
    REFUSED(request, idem_bytes(long_name, 256), "request: ");
    TAKEN(request, idem_bytes("\0", 1));
    REFUSED(max, 0, "max: ");
    REFUSED(max, UINT64_MAX, "max: ");
    REFUSED(max, IDEM_LIMIT_MAX + 1, "max: ");
    TAKEN(max, IDEM_LIMIT_MAX);
    REFUSED(cost, 0, "cost: ");
    REFUSED(cost, 9, "cost: ");
    REFUSED(cost, UINT64_MAX, "cost: ");
    TAKEN(cost, 8);
    REFUSED(per_ms, 0, "per: ");
    REFUSED(per_ms, 999, "per: ");
    REFUSED(per_ms, -IDEM_LIMIT_DAY, "per: ");
    REFUSED(per_ms, IDEM_LIMIT_PER_MAX + 1, "per: ");
    REFUSED(per_ms, INT64_MIN, "per: ");
    TAKEN(per_ms, 1000);
    TAKEN(per_ms, IDEM_LIMIT_PER_MAX);
    REFUSED(late_ms, -1, "late: ");
    REFUSED(late_ms, INT64_MAX, "late: ");
    TAKEN(late_ms, 0);
    TAKEN(late_ms, IDEM_DURATION_MAX_MS);
    REFUSED(at_ms, -1, "at: ");
    REFUSED(at_ms, INT64_MIN, "at: ");
    REFUSED(at_ms, INT64_MAX, "at: ");
    REFUSED(at_ms, 253402300800000, "at: ");
    REFUSED(start_ms, -1, "start: ");
    REFUSED(start_ms, LIMIT_AT_MS + 1, "start: ");
    TAKEN(start_ms, LIMIT_AT_MS);
    TAKEN(at_ms, 253402300799999);
    /* No sum of what is in range overflows. */
    limit.late_ms = IDEM_DURATION_MAX_MS;
    limit.per_ms = IDEM_LIMIT_PER_MAX;
    assert_true(idem__limit_expires(&limit) > limit.at_ms);
}

/* Each part of a limit tells its window from others; the time does within one
 * window not, nor does what only one request has. */
TEST(ids, tellWindowsAndRequestsApart)
{
    struct idem_limit_request limits[6];
    uint8_t windows[6][IDEM_ID_LEN];
    uint8_t requests[6][IDEM_ID_LEN];
    struct idem_limit_request same = sample_limit();
    uint8_t window[IDEM_ID_LEN];
    uint8_t request[IDEM_ID_LEN];
    size_t n = 0;
    size_t i;
    size_t j;

    for (i = 0; i < COUNT(limits); i++) {
        limits[i] = sample_limit();
    }
    n++; /* The first stays. */
    limits[n++].name = idem_str("uploadsu");
    limits[n - 1].subject = idem_str("1");
    limits[n++].subject = idem_str("u2");
    limits[n++].per_ms = IDEM_LIMIT_HOUR;
    limits[n++].at_ms = LIMIT_AT_MS + IDEM_LIMIT_DAY;
    limits[n++].start_ms = IDEM_LIMIT_HOUR;
    for (i = 0; i < n; i++) {
        assert_ok(idem__limit_ids(&limits[i], windows[i], requests[i]));
        for (j = 0; j < i; j++) {
            assert_memory_not_equal(windows[i], windows[j], IDEM_ID_LEN);
            assert_memory_not_equal(requests[i], requests[j], IDEM_ID_LEN);
        }
    }
    same.at_ms = LIMIT_AT_MS + 3600000;
    same.cost = 3;
    same.max = 9;
    same.late_ms = 0;
    assert_ok(idem__limit_ids(&same, window, request));
    assert_memory_equal(window, windows[0], IDEM_ID_LEN);
    assert_memory_equal(request, requests[0], IDEM_ID_LEN);
    same.request = idem_str("r2");
    assert_ok(idem__limit_ids(&same, window, request));
    assert_memory_equal(window, windows[0], IDEM_ID_LEN);
    assert_memory_not_equal(request, requests[0], IDEM_ID_LEN);
}

/* The identity is the same in every version: what was counted stays counted. */
TEST(ids, giveTheGoldenVector)
{
    struct idem_limit_request limit = sample_limit();
    uint8_t window[IDEM_ID_LEN];
    uint8_t request[IDEM_ID_LEN];
    uint8_t want[IDEM_ID_LEN];

    assert_ok(idem__limit_ids(&limit, window, request));
    assert_slice(
        idem_bytes(window, IDEM_ID_LEN),
        from_hex(
            "7a4ef1ba8dad1445550722506fd7cd225f10ad78fb39f6e6eb5c0edc77ee333a",
            want));
    assert_slice(
        idem_bytes(request, IDEM_ID_LEN),
        from_hex(
            "7fe4670eb6f81bea625815e41e8c25f0d6f583169cb6142c4be176846c0b42c4",
            want));
}
