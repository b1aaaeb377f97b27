/* Tests of how an end is put on record while the store has trouble. */
#include <idem/lambda.h>

#include "aws/lambda/lambda.h"
#include "queue/op.h"
#include "script.h"
#include "test.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/* How the store takes ends: so many are refused first. */
struct trouble {
    unsigned refusals;
    int code;
    unsigned ends;
};

static unsigned runs;

static int run(struct idem_lambda_call *call)
{
    runs++;
    return idem_lambda_answer(call, idem_str("{\"statusCode\":201}"));
}

static enum script_does refuse_ends(struct script *script, struct idem_op *op)
{
    struct trouble *trouble = script->ctx;

    if (op->verb == IDEM_OP_END && trouble->ends++ < trouble->refusals) {
        (void)idem__op_fail(op, trouble->code, "as planned");
    } else {
        script_relay(script, op);
    }
    return SCRIPT_ANSWERS;
}

/* A function whose store is @script. */
static struct idem_lambda *open_with(struct script *script,
                                     struct trouble *trouble)
{
    static struct idem_lambda_options options;
    struct idem_lambda *lambda;

    options = (struct idem_lambda_options)IDEM_LAMBDA_OPTIONS_INIT;
    options.store = "memory:";
    options.function = "f";
    options.run = run;
    options.scope = "global";
    options.store_timeout_ms = 500;
    assert_ok(idem_lambda_open(&options, &lambda, &why));
    idem_close(lambda->store);
    lambda->store = script_open(script, refuse_ends, NULL);
    script->ctx = trouble;
    return lambda;
}

/* Handles @event with @left_ms to live; its log lines go nowhere. */
static struct idem_lambda_response handle(struct idem_lambda *lambda,
                                          const char *event, int64_t left_ms)
{
    struct idem_lambda_invocation now = IDEM_LAMBDA_INVOCATION_INIT;
    struct idem_lambda_response response;
    int kept = dup(STDERR_FILENO);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    assert_true(kept >= 0 && dup2(null, STDERR_FILENO) >= 0);
    now.request_id = "r1";
    now.deadline_ms = (int64_t)time(NULL) * 1000 + left_ms;
    now.event = idem_str(event);
    assert_int_equal(idem_lambda_handle(lambda, &now, &response), 0);
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
    (void)close(null);
    return response;
}

static const char single[] = "{\"idempotencyKey\":\"a\"}";
static const char batch[] =
    "{\"Records\":[{\"messageId\":\"m1\",\"eventSource\":\"aws:sqs\",\"body\":"
    "\"1\"},{\"messageId\":\"m2\",\"eventSource\":\"aws:sqs\",\"body\":\"2\"}]"
    "}";
static const char last[] =
    "{\"Records\":[{\"messageId\":\"m3\",\"eventSource\":"
    "\"aws:sqs\",\"body\":\"3\"}]}";

/* An end that the store refuses for the moment is told again while there is time:
 * it is on record, and the event that comes again is a replay. */
TEST(end, isToldAgainAfterARetryableError)
{
    const char *const events[] = {single, batch, last};
    const unsigned records[] = {1, 2, 1};
    const unsigned refusals[] = {2, 6, 4};
    size_t i;

    for (i = 0; i < COUNT(events); i++) {
        struct trouble trouble = {.refusals = refusals[i],
                                  .code = IDEM_EUNAVAILABLE};
        struct script script;
        struct idem_lambda *lambda = open_with(&script, &trouble);

        runs = 0;
        assert_false(handle(lambda, events[i], 600000).is_error);
        assert_int_equal(trouble.ends, records[i] + refusals[i]);
        assert_false(handle(lambda, events[i], 600000).is_error);
        assert_int_equal(runs, records[i]);
        idem_lambda_close(lambda);
    }
}

static bool contains(struct idem_slice json, const char *word)
{
    return memmem(json.base, json.len, word, strlen(word)) != NULL;
}

static const char web[] = "{\"httpMethod\":\"POST\",\"path\":\"/\",\"headers\":"
                          "{\"Idempotency-Key\":\"k\"},\"body\":\"1\"}";

/* While the store takes no end, a finished answer goes out all the same, long before
 * the deadline, and says that it is not on record. The end is told again before the
 * next claim, which finds it. */
TEST(answer, doesNotWaitForTheStore)
{
    struct trouble trouble = {.refusals = 1000000, .code = IDEM_EUNAVAILABLE};
    struct script script;
    struct idem_lambda *lambda = open_with(&script, &trouble);
    struct idem_lambda_response response;

    runs = 0;
    response = handle(lambda, web, 3600000);
    assert_false(response.is_error);
    assert_true(contains(response.json, "\"statusCode\":201"));
    assert_true(contains(response.json, "\"Idempotency-Recorded\":\"false\""));
    assert_true(trouble.ends > 1);

    trouble.refusals = 0;
    response = handle(lambda, web, 3600000);
    assert_true(contains(response.json, "\"Idempotent-Replayed\":\"true\""));
    assert_false(contains(response.json, "Idempotency-Recorded"));
    assert_int_equal(runs, 1);
    idem_lambda_close(lambda);
}

/* What is left untold when the function ends is freed with it. */
TEST(answer, leavesNothingBehind)
{
    struct trouble trouble = {.refusals = 1000000, .code = IDEM_EUNAVAILABLE};
    struct script script;
    struct idem_lambda *lambda = open_with(&script, &trouble);

    assert_false(handle(lambda, single, 3600000).is_error);
    idem_lambda_close(lambda);
}

/* A record of a batch whose end the store does not take is done, for the log has
 * its outcome, and is not done twice. What comes after it has not run. */
TEST(batch, acknowledgesWhatIsInTheLog)
{
    struct trouble trouble = {.refusals = 1000000, .code = IDEM_EUNAVAILABLE};
    struct script script;
    struct idem_lambda *lambda = open_with(&script, &trouble);
    struct idem_lambda_response response;

    runs = 0;
    response = handle(lambda, batch, 4000);
    assert_false(contains(response.json, "m1"));
    assert_true(contains(response.json, "m2"));
    assert_int_equal(runs, 1);
    trouble.refusals = 0;
    response = handle(lambda, batch, 600000);
    assert_false(contains(response.json, "m1"));
    assert_int_equal(runs, 2);
    idem_lambda_close(lambda);
}

/* One that another try cannot change is told once. */
TEST(end, isToldOnceWhereThatIsFinal)
{
    const char *const events[] = {single, batch};
    const unsigned records[] = {1, 2};
    size_t i;

    for (i = 0; i < COUNT(events); i++) {
        struct trouble trouble = {.refusals = 100, .code = IDEM_EFULL};
        struct script script;
        struct idem_lambda *lambda = open_with(&script, &trouble);

        assert_false(handle(lambda, events[i], 600000).is_error);
        assert_int_equal(trouble.ends, records[i]);
        idem_lambda_close(lambda);
    }
}
