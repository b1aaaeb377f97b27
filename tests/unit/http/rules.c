/* Problems and headers of the HTTP room. */
#include <idem/http.h>

#include "test.h"

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
        size_t len = idem_http_problem_body(k, idem_str(""), buf);

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

static const char *problem_error(const char *text, size_t len)
{
    static char buf[IDEM_HTTP_PROBLEM_MAX];
    size_t n =
        idem_http_problem_body(IDEM_HTTP_FAILED, idem_bytes(text, len), buf);

    assert_int_equal(n, strlen(buf));
    assert_string_equal(buf + n - 3, "\"}\n");
    return strstr(buf, ",\"error\":");
}

/* The error of the record is escaped, cut between two characters where it does not fit,
 * and ends where it is not UTF-8. */
TEST(http_problem, hasTheErrorOfTheRecord)
{
    char text[2000];
    size_t lines;
    size_t i;

    assert_null(problem_error("", 0));
    assert_string_equal(problem_error("a\"b\\\n\xc3\xa4", 7),
                        ",\"error\":\"a\\u0022b\\u005c\\u000a\xc3\xa4\"}\n");
    assert_string_equal(problem_error("ab\xc3", 3), ",\"error\":\"ab\"}\n");
    for (lines = 0; lines < 8; lines++) {
        const char *got;

        memset(text, '\n', lines);
        for (i = lines; i < sizeof(text); i++) {
            text[i] = (i - lines) % 2 == 0 ? '\xc3' : '\xa4';
        }
        got = problem_error(text, sizeof(text));
        assert_true(strlen(got) > IDEM_HTTP_PROBLEM_MAX / 2);
        assert_int_equal(got[strlen(got) - 4], '\xa4');
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

    EACH(one, kept) {
        assert_true(idem_http_header_kept(idem_str(*one), NULL));
        assert_false(idem_http_header_never(idem_str(*one)));
    }
    EACH(other, others) {
        assert_false(idem_http_header_kept(idem_str(*other), NULL));
    }
}

/* A name that the user adds is kept, in any case; one that is never replayed is refused
 * where it is added, and not kept either. */
TEST(header, thatIsAddedIsChecked)
{
    static const char more[] = "Link,x-order,Set-Cookie";
    struct idem_error error;

    assert_true(idem_http_header_kept(idem_str("link"), more));
    assert_true(idem_http_header_kept(idem_str("X-Order"), more));
    assert_true(idem_http_header_kept(idem_str("ETag"), more));
    assert_false(idem_http_header_kept(idem_str("X-Orde"), more));
    assert_false(idem_http_header_kept(idem_str("Set-Cookie"), more));
    assert_int_equal(idem_http_headers_check(NULL, &error), 0);
    assert_int_equal(idem_http_headers_check("", &error), 0);
    assert_int_equal(idem_http_headers_check("Link,X-Order,", &error), 0);
    assert_int_equal(idem_http_headers_check(more, &error), IDEM_EINVALID);
    assert_non_null(strstr(error.text, "Set-Cookie is never replayed"));
    assert_int_equal(idem_http_headers_check("Link,a b", &error),
                     IDEM_EINVALID);
    assert_non_null(strstr(error.text, "\"a b\" is not the name of a header"));
}

/* ---- Codings ---- */

/* Each row: Accept-Encoding, Content-Encoding, whether that is taken. */
TEST(http_coding, isTakenAsRfc9110Says)
{
    static const struct {
        const char *accept;
        const char *codings;
        bool taken;
    } rows[] = {
        {"gzip", "gzip", true},
        {"GZip", "gzIP", true},
        {"br, gzip", "gzip", true},
        {" br ,\tgzip ; q=0.5 ", "gzip", true},
        {",, ,gzip,", "gzip", true},
        {"x-gzip", "gzip", true},
        {"gzip", "x-gzip", true},
        {"compress", "x-compress", true},
        {"gzip, br", "gzip, br", true},
        {"*", "zstd", true},
        {"*;q=0, gzip", "gzip", true},
        {"gzip;q=1.000", "gzip", true},
        {"gzip;q=0.001", "gzip", true},
        {"gzip;q=00", "gzip", true},
        {"gzip;level=0", "gzip", true},
        {"br", "", true},
        {"br", " , ", true},
        {"", "identity", true},
        {"br", "Identity", true},
        {"", "gzip", false},
        {" ", "gzip", false},
        {"identity", "gzip", false},
        {"br", "gzip", false},
        {"gzip2", "gzip", false},
        {"gzi", "gzip", false},
        {"x-br", "br", false},
        {"gzip;q=0", "gzip", false},
        {"gzip ; Q=0.000", "gzip", false},
        {"gzip;q=0.", "gzip", false},
        {"gzip;q=0, *", "gzip", false},
        {"*, gzip;q=0", "gzip", false},
        {"*;q=0", "gzip", false},
        {"br, *;q=0", "gzip", false},
        {"gzip", "gzip, br", false},
        {"gzip", "br, gzip", false},
        {"gzip", "gzip;q=1.0,br", false},
        {";q=1, gzip;q=0", "gzip", false},
    };

    EACH(row, rows) {
        bool taken =
            idem_http_accepts(idem_str(row->accept), idem_str(row->codings));

        if (taken != row->taken) {
            fail_msg("Accept-Encoding: %s, Content-Encoding: %s: %d",
                     row->accept, row->codings, taken);
        }
    }
}

/* Who sends no Accept-Encoding takes any. */
TEST(http_coding, isTakenByWhoAsksForNone)
{
    assert_true(idem_http_accepts(idem_bytes(NULL, 0), idem_str("gzip, br")));
    assert_true(idem_http_accepts(idem_bytes(NULL, 0), idem_str("")));
    assert_true(idem_http_accepts(idem_str("gzip"), idem_bytes(NULL, 0)));
}
