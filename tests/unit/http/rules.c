/* Statuses, problems and headers of the HTTP room. */
#include <idem/http.h>

#include "test.h"

static enum idem_http_outcome of(int status)
{
    struct idem_http_outcomes outcomes;

    idem_http_outcomes_init(&outcomes);
    return idem_http_outcome(&outcomes, status);
}

/* By default what asks to come again releases, what a gateway says is unknown,
 * and all else is an answer. ROW(52, 53) */
TEST(http_outcome, hasADefaultForEveryStatus)
{
    int status;

    for (status = -1; status < 700; status++) {
        enum idem_http_outcome want = IDEM_HTTP_STORE;

        if (status == 408 || status == 425 || status == 429 || status == 503) {
            want = IDEM_HTTP_RELEASE;
        } else if (status < 200 || status > 599 || status == 502 ||
                   status == 504) {
            want = IDEM_HTTP_UNKNOWN;
        }
        assert_int_equal(of(status), want);
    }
}

/* A status, a range and a class can be set, and nothing else is touched. */
TEST(http_outcome, canBeSet)
{
    struct idem_http_outcomes outcomes;

    idem_http_outcomes_init(&outcomes);
    assert_ok(
        idem_http_outcomes_set(&outcomes, idem_str("5xx"), IDEM_HTTP_UNKNOWN));
    assert_ok(
        idem_http_outcomes_set(&outcomes, idem_str("503"), IDEM_HTTP_STORE));
    assert_ok(idem_http_outcomes_set(&outcomes, idem_str("400-404"),
                                     IDEM_HTTP_RELEASE));
    assert_int_equal(idem_http_outcome(&outcomes, 500), IDEM_HTTP_UNKNOWN);
    assert_int_equal(idem_http_outcome(&outcomes, 599), IDEM_HTTP_UNKNOWN);
    assert_int_equal(idem_http_outcome(&outcomes, 503), IDEM_HTTP_STORE);
    assert_int_equal(idem_http_outcome(&outcomes, 399), IDEM_HTTP_STORE);
    assert_int_equal(idem_http_outcome(&outcomes, 400), IDEM_HTTP_RELEASE);
    assert_int_equal(idem_http_outcome(&outcomes, 404), IDEM_HTTP_RELEASE);
    assert_int_equal(idem_http_outcome(&outcomes, 405), IDEM_HTTP_STORE);
}

/* What names no status is refused and changes nothing. */
TEST(http_outcome, refusesOtherWords)
{
    static const char *const words[] = {
        "",    "5",    "50",      "5000",    "1xx",     "101",     "600",
        "6xx", "xxx",  "500-",    "500-499", "500-600", "199-200", "5xX",
        "4x4", " 500", "500 501", "50a-503", "500-50b", "-500-50",
    };
    struct idem_http_outcomes before;
    struct idem_http_outcomes outcomes;
    size_t i;

    idem_http_outcomes_init(&before);
    outcomes = before;
    for (i = 0; i < COUNT(words); i++) {
        assert_code(IDEM_EINVALID,
                    idem_http_outcomes_set(&outcomes, idem_str(words[i]),
                                           IDEM_HTTP_RELEASE));
    }
    assert_code(IDEM_EINVALID,
                idem_http_outcomes_set(&outcomes, idem_str("500"),
                                       (enum idem_http_outcome)0));
    assert_memory_equal(&before, &outcomes, sizeof(before));
    assert_int_equal(idem_http_outcome_of(idem_str("complete")),
                     IDEM_HTTP_STORE);
    assert_int_equal(idem_http_outcome_of(idem_str("fail")), IDEM_HTTP_FAIL);
    assert_int_equal(idem_http_outcome_of(idem_str("retry")), IDEM_HTTP_RETRY);
    assert_int_equal(idem_http_outcome_of(idem_str("release")),
                     IDEM_HTTP_RELEASE);
    assert_int_equal(idem_http_outcome_of(idem_str("unknown")),
                     IDEM_HTTP_UNKNOWN);
    assert_int_equal(idem_http_outcome_of(idem_str("retr")), 0);
}

/* Every problem is one line of JSON that fits, with a type of its own. */
TEST(http_problem, hasABody)
{
    char seen[IDEM_HTTP_UNAVAILABLE + 1][64];
    int kind;
    int i;

    for (kind = 0; kind <= IDEM_HTTP_UNAVAILABLE; kind++) {
        enum idem_http_problem_kind k = (enum idem_http_problem_kind)kind;
        const struct idem_http_problem *problem = idem_http_problem_of(k);
        char buf[IDEM_HTTP_PROBLEM_MAX];
        char want[128];
        size_t len = idem_http_problem_body(k, buf);

        assert_true(len < sizeof(buf));
        assert_int_equal(buf[0], '{');
        assert_memory_equal(buf + len - 3, "\"}\n", 3);
        (void)snprintf(want, sizeof(want), "\"type\":\"urn:idem:problem:%s\",",
                       problem->type);
        assert_non_null(strstr(buf, want));
        (void)snprintf(want, sizeof(want), "\"status\":%d,", problem->status);
        assert_non_null(strstr(buf, want));
        assert_null(strchr(buf, '\\'));
        (void)snprintf(seen[kind], sizeof(seen[kind]), "%s", problem->type);
        for (i = 0; i < kind; i++) {
            assert_string_not_equal(seen[i], seen[kind]);
        }
    }
}

/* Retry-After begins at a second, grows with the age, and ends at half a minute. */
TEST(http_retry, growsWithTheAge)
{
    int64_t age_ms;
    int last = 1;

    assert_int_equal(idem_http_retry_after(-5), 1);
    assert_int_equal(idem_http_retry_after(3999), 1);
    assert_int_equal(idem_http_retry_after(4000), 2);
    assert_int_equal(idem_http_retry_after(20000), 10);
    assert_int_equal(idem_http_retry_after(INT64_MAX), 30);
    for (age_ms = 0; age_ms < 100000; age_ms += 100) {
        int s = idem_http_retry_after(age_ms);

        assert_between(s, last, 30);
        last = s;
    }
    assert_int_equal(last, 30);
}

/* The age comes from the record and the lease that is left, without a clock. */
TEST(http_retry, knowsTheAge)
{
    struct idem_record record = {.started_ms = 1000, .lease_end_ms = 61000};
    struct idem_attempt busy = {.lease_left_ms = 55000, .record = &record};

    assert_int_equal(idem_http_attempt_age(&busy), 5000);
    busy.lease_left_ms = 60500; /* Clocks of two hosts differ. */
    assert_int_equal(idem_http_attempt_age(&busy), 0);
    busy.lease_left_ms = 0;
    assert_int_equal(idem_http_attempt_age(&busy), 0);
    busy.lease_left_ms = 1;
    record.lease_end_ms = IDEM_NEVER;
    assert_int_equal(idem_http_attempt_age(&busy), 0);
}

/* What is replayed unasked describes the body or says where the thing is; none of
 * it may be one caller's. */
TEST(header, thatIsKeptIsNobodys)
{
    static const char *const kept[] = {"content-encoding", "Content-Language",
                                       "etag", "Last-Modified", "LOCATION"};
    static const char *const others[] = {"Set-Cookie",
                                         "Access-Control-Allow-Origin",
                                         "Connection",
                                         "Content-Type",
                                         "X-Order",
                                         "Locations",
                                         ""};
    size_t i;

    for (i = 0; i < COUNT(kept); i++) {
        assert_true(idem_http_header_kept(idem_str(kept[i])));
        assert_false(idem_http_header_never(idem_str(kept[i])));
    }
    for (i = 0; i < COUNT(others); i++) {
        assert_false(idem_http_header_kept(idem_str(others[i])));
    }
}
