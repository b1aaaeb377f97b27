/* Tests of a batch as a chain: which records are claimed, and when; and of how an end is
 * put on record while the store has trouble. */
#include <idem/lambda.h>

#include "aws/lambda/lambda.h"
#include "queue/op.h"
#include "script.h"
#include "test.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/* How the store takes claims and ends: so many of them are refused first. */
struct trouble {
    unsigned refused_claims; /* After skip_claims that are not. */
    unsigned skip_claims;
    unsigned refused_ends;
    int code;
    bool apply; /* What is refused is done all the same. */
    unsigned claims;
    unsigned ends;
    unsigned together; /* Most ops that were pending at once. */
    struct script *script;
    int64_t timeout_ms; /* Of the store; 0: its own. */
};

static struct trouble trouble;
static unsigned runs;
static enum idem_status
    before[8];        /* What the run before it was on record as. */
static bool after[8]; /* The record after it was claimed. */
static int fails_at = -1;

static enum idem_status on_record(const char *key, uint32_t *attempts)
{
    struct idem_answer *answer;
    enum idem_status status;
    int rc;

    *attempts = 0;
    if (trouble.script->inner == NULL) {
        return (enum idem_status)0;
    }
    rc = idem_get(trouble.script->inner, idem_str("f"), idem_str(key), &answer,
                  &why);
    if (rc == IDEM_ENOTFOUND) {
        return (enum idem_status)0;
    }
    assert_ok(rc);
    status = idem_answer_record(answer)->status;
    *attempts = idem_answer_record(answer)->attempts;
    idem_answer_destroy(answer);
    return status;
}

static uint32_t attempts_of(const char *key)
{
    uint32_t attempts;

    (void)on_record(key, &attempts);
    return attempts;
}

static int run(struct idem_lambda_call *call)
{
    uint32_t attempts;
    char key[8];

    (void)snprintf(key, sizeof(key), "m%u", runs);
    before[runs] = on_record(key, &attempts);
    (void)snprintf(key, sizeof(key), "m%u", runs + 2);
    after[runs] = on_record(key, &attempts) != 0;
    if ((int)runs++ == fails_at) {
        return idem_lambda_release(call, "Away", "the bank was away");
    }
    return idem_lambda_answer(call, idem_str("{\"statusCode\":201}"));
}

static unsigned pending(const struct script *script)
{
    const struct idem_op *op;
    unsigned n = 0;

    for (op = script->pending; op != NULL; op = op->next) {
        n++;
    }
    return n;
}

static bool is_refused(const struct idem_op *op)
{
    if (op->verb == IDEM_OP_END) {
        return trouble.ends++ < trouble.refused_ends;
    }
    trouble.claims++;
    return trouble.claims > trouble.skip_claims &&
           trouble.claims <= trouble.skip_claims + trouble.refused_claims;
}

static enum script_does serve(struct script *script, struct idem_op *op)
{
    unsigned together = pending(script);

    trouble.together =
        together > trouble.together ? together : trouble.together;
    if (!is_refused(op)) {
        script_relay(script, op);
        return SCRIPT_ANSWERS;
    }
    if (trouble.apply) {
        script_relay(script, op);
    }
    (void)idem__op_fail(op, trouble.code, "as planned");
    return SCRIPT_ANSWERS;
}

/* A function whose store has @now for a trouble. */
static struct idem_lambda *open_with(struct trouble now)
{
    static struct idem_lambda_options options;
    static struct script script;
    struct idem_lambda *lambda;

    trouble = now;
    options = (struct idem_lambda_options)IDEM_LAMBDA_OPTIONS_INIT;
    options.store = "memory:";
    options.function = "f";
    options.run = run;
    options.scope = "global";
    if (now.timeout_ms > 0) {
        options.store_timeout_ms = now.timeout_ms;
    }
    assert_ok(idem_lambda_open(&options, &lambda, &why));
    idem_close(lambda->store);
    lambda->store = script_open(&script, serve, NULL);
    trouble.script = &script;
    runs = 0;
    fails_at = -1;
    return lambda;
}

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

#define RECORD(id)                                                             \
    "{\"messageId\":\"" id "\",\"eventSource\":\"aws:sqs\",\"body\":\"" id "\"}"

static const char queue[] =
    "{\"Records\":[" RECORD("m1") "," RECORD("m2") "," RECORD("m3") "]}";

static void assert_response(struct idem_lambda_response response,
                            const char *json)
{
    assert_false(response.is_error);
    assert_text(response.json, json);
}

/* There is time for all of the queue, and no record fails. */
static void assert_passes(struct idem_lambda *lambda)
{
    assert_response(handle(lambda, queue, 600000),
                    "{\"batchItemFailures\":[]}");
}

/* A record runs when the one before it is on record, and before the one after it is
 * claimed; the end of one and the claim of the next go together. */
TEST(chain, claimsARecordWhenItsTurnComes)
{
    struct idem_lambda *lambda = open_with((struct trouble){0});
    unsigned i;

    assert_passes(lambda);
    assert_int_equal(runs, 3);
    for (i = 0; i < 3; i++) {
        assert_int_equal(before[i], i == 0 ? 0 : IDEM_STATUS_COMPLETED);
        assert_false(after[i]);
    }
    assert_int_equal(trouble.claims, 3);
    assert_int_equal(trouble.ends, 3);
    assert_int_equal(trouble.together, 2);
    idem_lambda_close(lambda);
}

/* While the end of one is not known the next does not start. What never ran comes
 * again, and only the one whose turn had come was ever claimed. */
TEST(chain, stopsWhereAnEndIsNotKnown)
{
    static const int codes[] = {IDEM_EUNAVAILABLE, IDEM_EUNKNOWN};

    EACH(one, codes) {
        struct idem_lambda *lambda =
            open_with((struct trouble){.refused_ends = 1000000, .code = *one});

        assert_response(handle(lambda, queue, 4000),
                        "{\"batchItemFailures\":[{\"itemIdentifier\":\"m2\"},"
                        "{\"itemIdentifier\":\"m3\"}]}");
        assert_int_equal(runs, 1);
        assert_int_equal(attempts_of("m3"), 0);
        trouble.refused_ends = 0;
        assert_passes(lambda);
        assert_int_equal(runs, 3); /* m2 and m3 alone. */
        assert_int_equal(attempts_of("m1"), 1);
        assert_int_equal(attempts_of("m3"), 1);
        idem_lambda_close(lambda);
    }
}

/* An end that is refused for good is in the log: it holds nobody up. */
TEST(chain, goesOnAfterAnEndThatIsRefused)
{
    struct idem_lambda *lambda =
        open_with((struct trouble){.refused_ends = 1, .code = IDEM_ELOST});

    assert_passes(lambda);
    assert_int_equal(runs, 3);
    assert_int_equal(trouble.ends, 3);
    idem_lambda_close(lambda);
}

/* A store that is away for a while is asked again in the same invocation, and each
 * record runs once. */
TEST(chain, asksAgainAfterAnOutage)
{
    unsigned skip;

    for (skip = 0; skip < 3; skip++) {
        struct idem_lambda *lambda =
            open_with((struct trouble){.skip_claims = skip,
                                       .refused_claims = 7,
                                       .code = IDEM_EUNAVAILABLE});

        assert_passes(lambda);
        assert_int_equal(runs, 3);
        assert_int_equal(trouble.claims, 10);
        idem_lambda_close(lambda);
    }
}

/* A claim that was made, as nobody heard, is its own when it is asked again. */
TEST(chain, recognisesItsOwnClaim)
{
    struct idem_lambda *lambda =
        open_with((struct trouble){.skip_claims = 1,
                                   .refused_claims = 2,
                                   .code = IDEM_EUNKNOWN,
                                   .apply = true});

    assert_passes(lambda);
    assert_int_equal(runs, 3);
    assert_int_equal(attempts_of("m2"), 1);
    idem_lambda_close(lambda);
}

/* A store that stays away: nothing runs, and nothing is claimed. */
TEST(chain, givesUpWhenThereIsNoTimeLeft)
{
    struct idem_lambda *lambda = open_with(
        (struct trouble){.refused_claims = 1000000, .code = IDEM_EUNAVAILABLE});

    assert_response(handle(lambda, queue, 3000),
                    "{\"batchItemFailures\":[{\"itemIdentifier\":\"m1\"},"
                    "{\"itemIdentifier\":\"m2\"},"
                    "{\"itemIdentifier\":\"m3\"}]}");
    assert_int_equal(runs, 0);
    assert_true(trouble.claims > 2);
    idem_lambda_close(lambda);
}

#define GROUPED(id, group)                                                     \
    "{\"messageId\":\"" id                                                     \
    "\",\"eventSource\":\"aws:sqs\",\"eventSourceARN\":"                       \
    "\"arn:aws:sqs:eu-west-1:1:q.fifo\",\"body\":\"1\",\"attributes\":{"       \
    "\"MessageGroupId\":\"" group "\",\"MessageDeduplicationId\":\"" id "\"}}"

/* What has to wait for one before it in its group is not claimed. */
TEST(chain, doesNotClaimWhatHasToWait)
{
    static const char fifo[] = "{\"Records\":[" GROUPED("m1", "a") "," GROUPED(
        "m2", "a") "," GROUPED("m3", "b") "]}";
    struct idem_lambda *lambda = open_with((struct trouble){0});

    fails_at = 0;
    assert_response(handle(lambda, fifo, 600000),
                    "{\"batchItemFailures\":[{\"itemIdentifier\":\"m1\"},"
                    "{\"itemIdentifier\":\"m2\"}]}");
    assert_int_equal(runs, 2);
    assert_int_equal(trouble.claims, 2);
    idem_lambda_close(lambda);
}

/* ---- Ends ---- */

/* A function whose store refuses so many ends with @code first. */
static struct idem_lambda *open_refusing(unsigned ends, int code)
{
    return open_with((
        struct trouble){.refused_ends = ends, .code = code, .timeout_ms = 500});
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
        struct idem_lambda *lambda =
            open_refusing(refusals[i], IDEM_EUNAVAILABLE);

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
    struct idem_lambda *lambda = open_refusing(1000000, IDEM_EUNAVAILABLE);
    struct idem_lambda_response response;

    response = handle(lambda, web, 3600000);
    assert_false(response.is_error);
    assert_true(contains(response.json, "\"statusCode\":201"));
    assert_true(contains(response.json, "\"Idempotency-Recorded\":\"false\""));
    assert_true(trouble.ends > 1);

    trouble.refused_ends = 0;
    response = handle(lambda, web, 3600000);
    assert_true(contains(response.json, "\"Idempotent-Replayed\":\"true\""));
    assert_false(contains(response.json, "Idempotency-Recorded"));
    assert_int_equal(runs, 1);
    idem_lambda_close(lambda);
}

/* The end of the function frees the ends that were not told. */
TEST(answer, leavesNothingBehind)
{
    struct idem_lambda *lambda = open_refusing(1000000, IDEM_EUNAVAILABLE);

    assert_false(handle(lambda, single, 3600000).is_error);
    idem_lambda_close(lambda);
}

/* A record of a batch whose end the store does not take is done, for the log has
 * its outcome, and is not done twice. What comes after it has not run. */
TEST(batch, acknowledgesWhatIsInTheLog)
{
    struct idem_lambda *lambda = open_refusing(1000000, IDEM_EUNAVAILABLE);
    struct idem_lambda_response response;

    response = handle(lambda, batch, 4000);
    assert_false(contains(response.json, "m1"));
    assert_true(contains(response.json, "m2"));
    assert_int_equal(runs, 1);
    trouble.refused_ends = 0;
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
        struct idem_lambda *lambda = open_refusing(100, IDEM_EFULL);

        assert_false(handle(lambda, events[i], 600000).is_error);
        assert_int_equal(trouble.ends, records[i]);
        idem_lambda_close(lambda);
    }
}
