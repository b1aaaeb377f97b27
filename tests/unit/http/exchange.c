/* Tests of src/http/exchange.c. */
#include <idem/exchange.h>

#include "test.h"

static struct idem_record record;
static const struct idem_slice any = {NULL, 0};

static struct idem_http_answer answer_to(int code, enum idem_verdict verdict,
                                         struct idem_slice accept)
{
    struct idem_attempt attempt = {.verdict = verdict, .record = &record};
    struct idem_http_answer answer;

    idem_http_answer_of(code, &attempt, accept, &answer);
    return answer;
}

static void result(const char *meta, const char *bytes)
{
    memset(&record, 0, sizeof(record));
    record.result.meta = idem_str(meta);
    record.result.bytes = idem_str(bytes);
    record.result_len = strlen(bytes);
}

/* Each verdict and each error of a store has its answer, and only STARTED runs. */
TEST(answer, followsTheVerdict)
{
    static const struct {
        int code;
        enum idem_verdict verdict;
        enum idem_http_action action;
        enum idem_http_problem_kind problem;
        int retry_after_s;
        const char *name;
    } rows[] = {
        {0, IDEM_STARTED, IDEM_HTTP_RUN, 0, 0, "started"},
        {0, IDEM_REPLAY, IDEM_HTTP_REPLAY, 0, 0, "replayed"},
        {0, IDEM_BUSY, IDEM_HTTP_REFUSE, IDEM_HTTP_IN_PROGRESS, 1, "busy"},
        {0, IDEM_RELEASED, IDEM_HTTP_REFUSE, IDEM_HTTP_IN_PROGRESS, 1,
         "released"},
        {0, IDEM_MISMATCH, IDEM_HTTP_REFUSE, IDEM_HTTP_MISMATCH, 0, "mismatch"},
        {0, IDEM_FAILED, IDEM_HTTP_REFUSE, IDEM_HTTP_FAILED, 0, "failed"},
        {0, IDEM_UNKNOWN, IDEM_HTTP_REFUSE, IDEM_HTTP_OUTCOME_UNKNOWN, 0,
         "unknown"},
        {IDEM_ECORRUPT, 0, IDEM_HTTP_REFUSE, IDEM_HTTP_CORRUPT, 0, "corrupt"},
        {IDEM_EUNAVAILABLE, 0, IDEM_HTTP_REFUSE, IDEM_HTTP_UNAVAILABLE, 1,
         "unavailable"},
        {IDEM_EUNKNOWN, 0, IDEM_HTTP_REFUSE, IDEM_HTTP_UNAVAILABLE, 1,
         "unavailable"},
        {IDEM_ENOMEM, 0, IDEM_HTTP_REFUSE, IDEM_HTTP_UNAVAILABLE, 1,
         "unavailable"},
    };
    size_t i;

    result("HTTP 201\n", "made");
    record.error = idem_str("no such account");
    for (i = 0; i < COUNT(rows); i++) {
        struct idem_http_answer answer =
            answer_to(rows[i].code, rows[i].verdict, any);

        assert_int_equal(answer.action, rows[i].action);
        assert_string_equal(answer.name, rows[i].name);
        assert_int_equal(answer.problem, rows[i].problem);
        assert_int_equal(answer.retry_after_s, rows[i].retry_after_s);
        assert_int_equal(answer.error.len > 0, rows[i].verdict == IDEM_FAILED);
    }
}

/* A caller that finds an attempt comes back by its age; in a pause, when that is over. */
TEST(answer, saysWhenToComeBack)
{
    struct idem_attempt busy = {.verdict = IDEM_BUSY,
                                .record = &record,
                                .lease_left_ms = 40000};
    struct idem_http_answer answer;

    memset(&record, 0, sizeof(record));
    record.started_ms = 1000;
    record.lease_end_ms = 61000;
    idem_http_answer_of(0, &busy, any, &answer);
    assert_int_equal(answer.retry_after_s, 10);
    record.retry = true;
    idem_http_answer_of(0, &busy, any, &answer);
    assert_int_equal(answer.retry_after_s, 40);
    busy.lease_left_ms = 39001;
    idem_http_answer_of(0, &busy, any, &answer);
    assert_int_equal(answer.retry_after_s, 40);
    busy.record = NULL;
    idem_http_answer_of(0, &busy, any, &answer);
    assert_int_equal(answer.retry_after_s, 1);
}

/* A record is replayed whole, in a coding that the client takes, or refused. */
TEST(answer, replaysOnlyWhatCanBe)
{
    result("HTTP 200\nContent-Encoding: gzip\n", "zip");
    assert_int_equal(answer_to(0, IDEM_REPLAY, any).action, IDEM_HTTP_REPLAY);
    assert_int_equal(answer_to(0, IDEM_REPLAY, idem_str("br, gzip")).action,
                     IDEM_HTTP_REPLAY);
    assert_int_equal(answer_to(0, IDEM_REPLAY, idem_str("br")).problem,
                     IDEM_HTTP_NOT_ACCEPTABLE);
    record.result_len++;
    assert_int_equal(answer_to(0, IDEM_REPLAY, any).action, IDEM_HTTP_FETCH);
    idem_http_tombstone(&record.result);
    assert_int_equal(record.result.bytes.len + record.result.meta.len, 0);
    assert_int_equal(answer_to(0, IDEM_REPLAY, any).problem,
                     IDEM_HTTP_NOT_KEPT);
    result("exit 3\n", "");
    assert_int_equal(answer_to(0, IDEM_REPLAY, any).problem, IDEM_HTTP_FAILED);
    result("HTTP 20\n", "");
    assert_int_equal(answer_to(0, IDEM_REPLAY, any).problem, IDEM_HTTP_CORRUPT);
}

/* Name and value of each header of a replay, each with a line feed. */
static const char *replay_of(const char *meta, const char *bytes)
{
    static char text[256];
    struct idem_slice name;
    struct idem_slice value;
    struct idem_form form;
    struct idem_http_replay replay = {.form = &form};
    size_t len = 0;

    result(meta, bytes);
    idem_form_read(&record.result, &form);
    replay.rest = form.headers;
    text[0] = '\0';
    while (idem_http_replay_next(&replay, &name, &value)) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s: %.*s\n",
                                (int)name.len, (const char *)name.base,
                                (int)value.len, (const char *)value.base);
    }
    return text;
}

/* A replay says that it is one, and no cache keeps it unless the service asked for that;
 * no browser guesses the type of bytes that nobody described. */
TEST(replay, isMarked)
{
    assert_string_equal(replay_of("HTTP 201\nLocation: /a\n", "x"),
                        "Location: /a\nIdempotent-Replayed: true\n"
                        "Cache-Control: no-store\n");
    assert_string_equal(replay_of("HTTP 200\ncache-control: public\n", "x"),
                        "cache-control: public\nIdempotent-Replayed: true\n");
    assert_string_equal(replay_of("exit 0\n", "x"),
                        "Idempotent-Replayed: true\nCache-Control: no-store\n"
                        "X-Content-Type-Options: nosniff\n");
    assert_string_equal(replay_of("exit 0\n", ""),
                        "Idempotent-Replayed: true\nCache-Control: no-store\n");
}

/* An ending means what the table and the policy say; only a whole response is kept. */
TEST(outcome, followsTableAndPolicy)
{
    static const struct {
        enum idem_on_expired_lease policy;
        enum idem_http_end end;
        int http_status;
        enum idem_status status;
        enum idem_http_keep keep;
        const char *text;
    } rows[] = {
        {IDEM_HOLD, IDEM_HTTP_ANSWERED, 201, IDEM_STATUS_COMPLETED,
         IDEM_HTTP_KEEP_RESPONSE, ""},
        {IDEM_HOLD, IDEM_HTTP_ANSWERED, 404, IDEM_STATUS_COMPLETED,
         IDEM_HTTP_KEEP_NAMED, ""},
        {IDEM_HOLD, IDEM_HTTP_ANSWERED, 206, IDEM_STATUS_COMPLETED,
         IDEM_HTTP_KEEP_NOTHING, ""},
        {IDEM_HOLD, IDEM_HTTP_ANSWERED, 304, IDEM_STATUS_COMPLETED,
         IDEM_HTTP_KEEP_NOTHING, ""},
        {IDEM_HOLD, IDEM_HTTP_ANSWERED, 503, IDEM_STATUS_RELEASED,
         IDEM_HTTP_KEEP_NOTHING, "the service answered 503"},
        {IDEM_HOLD, IDEM_HTTP_ANSWERED, 504, IDEM_STATUS_UNKNOWN,
         IDEM_HTTP_KEEP_NOTHING, "the service answered 504"},
        {IDEM_HOLD, IDEM_HTTP_ANSWERED, 500, IDEM_STATUS_RETRY,
         IDEM_HTTP_KEEP_RESPONSE, "the service answered 500"},
        {IDEM_HOLD, IDEM_HTTP_ANSWERED, 999, IDEM_STATUS_UNKNOWN,
         IDEM_HTTP_KEEP_NOTHING, "the service answered 999"},
        {IDEM_HOLD, IDEM_HTTP_NOT_SENT, 500, IDEM_STATUS_RELEASED,
         IDEM_HTTP_KEEP_NOTHING, "the service was not reached"},
        {IDEM_HOLD, IDEM_HTTP_NO_ANSWER, 201, IDEM_STATUS_UNKNOWN,
         IDEM_HTTP_KEEP_NOTHING, "the service did not answer"},
        {IDEM_RERUN, IDEM_HTTP_NO_ANSWER, 201, IDEM_STATUS_RETRY,
         IDEM_HTTP_KEEP_NOTHING, "the service did not answer"},
    };
    struct idem_outcome_table table;
    struct idem_http_rules rules = {.outcomes = &table,
                                    .failures_max = 3,
                                    .retry_after_ms = 500};
    size_t i;

    assert_int_equal(idem_outcome_table_read(&table, IDEM_ENDINGS_HTTP,
                                             "404=complete 500=retry", NULL),
                     0);
    for (i = 0; i < COUNT(rows); i++) {
        char text[IDEM_HTTP_TEXT_MAX];
        struct idem_outcome outcome;
        bool retries = rows[i].status == IDEM_STATUS_RETRY;

        rules.on_expired_lease = rows[i].policy;
        assert_int_equal(idem_http_outcome(&rules, rows[i].end,
                                           rows[i].http_status, text, &outcome),
                         rows[i].keep);
        assert_int_equal(outcome.status, rows[i].status);
        assert_int_equal(outcome.text.len, strlen(rows[i].text));
        assert_memory_equal(outcome.text.base, rows[i].text, outcome.text.len);
        assert_int_equal(outcome.failures_max, retries ? 3 : 0);
        assert_int_equal(outcome.retry_after_ms, retries ? 500 : 0);
        assert_int_equal(outcome.result.not_kept,
                         outcome.status == IDEM_STATUS_COMPLETED &&
                             rows[i].keep == IDEM_HTTP_KEEP_NOTHING);
    }
}
