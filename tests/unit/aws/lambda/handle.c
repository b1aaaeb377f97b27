/* Tests of an event as a whole, in this process. */
#include <idem/lambda.h>

#include "heap.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned runs;

static int run(struct idem_lambda_call *call)
{
    runs++;
    if (strstr(call->event.base, "fail") != NULL) {
        return idem_lambda_error(call, "Poison", "%s", "never");
    }
    return idem_lambda_answer(call, idem_str("{\"statusCode\":200}"));
}

static const char single[] = "{\"idempotencyKey\":\"a\",\"x\":[1,2,3]}";
static const char web[] =
    "{\"httpMethod\":\"POST\",\"path\":\"/\",\"headers\":"
    "{\"Idempotency-Key\":\"k\"},\"body\":\"YQ==\",\"isBase64Encoded\":true}";
static const char batch[] =
    "{\"Records\":[{\"messageId\":\"m1\",\"eventSource\":\"aws:sqs\",\"body\":"
    "\"1\"},{\"messageId\":\"m2\",\"eventSource\":\"aws:sqs\",\"body\":\"fail\"}"
    ",{\"messageId\":\"m1\",\"eventSource\":\"aws:sqs\",\"body\":\"1\"}]}";

static struct idem_lambda_options options(void)
{
    struct idem_lambda_options o = IDEM_LAMBDA_OPTIONS_INIT;

    o.store = "memory:";
    o.function = "f";
    o.run = run;
    o.scope = "global";
    return o;
}

static struct idem_lambda_response handle(struct idem_lambda *lambda,
                                          const char *event)
{
    struct idem_lambda_invocation now = IDEM_LAMBDA_INVOCATION_INIT;
    struct idem_lambda_response response;

    now.request_id = "r1";
    now.deadline_ms = (int64_t)time(NULL) * 1000 + 60000;
    now.event = idem_str(event);
    assert_int_equal(idem_lambda_handle(lambda, &now, &response), 0);
    return response;
}

/* Log lines would stand between the results. */
static int quiet(void)
{
    int kept = dup(STDERR_FILENO);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    assert_true(kept >= 0 && dup2(null, STDERR_FILENO) >= 0);
    (void)close(null);
    return kept;
}

static void loud(int kept)
{
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
}

/* The n-th allocation fails, for every n: an error that says so or the response,
 * never a wrong one, and the handler never runs twice for one key. */
TEST(nomem, isAnErrorOfItsOwn)
{
    static const char *const events[] = {single, web, batch};
    int kept = quiet();
    long n = 0;

    EACH(event, events) {
        bool hit = true;

        for (n = 0; hit; n++) {
            struct idem_lambda_options o = options();
            struct idem_lambda_response first;
            struct idem_lambda_response again;
            struct idem_lambda *lambda;
            unsigned ran;

            o.keep_input = true;
            assert_ok(idem_lambda_open(&o, &lambda, &why));
            runs = 0;
            heap_fail(n, /* on= */ false);
            first = handle(lambda, *event);
            hit = heap_fail_never();
            ran = runs;
            if (!hit) {
                assert_false(first.is_error);
            }
            again = handle(lambda, *event);
            if (*event != batch && ran == 1 && !first.is_error) {
                assert_int_equal(runs, 1);
            }
            assert_true(again.json.len > 0);
            idem_lambda_close(lambda);
        }
        assert_true(n > 5);
    }
    loud(kept);
}

/* Opening without memory leaves nothing behind. */
TEST(nomem, opensOrNot)
{
    struct idem_lambda_options o = options();
    struct idem_lambda *lambda;
    bool hit = true;
    long n;

    for (n = 0; hit; n++) {
        int rc;

        lambda = NULL;
        heap_fail(n, /* on= */ false);
        rc = idem_lambda_open(&o, &lambda, &why);
        hit = heap_fail_never();
        assert_int_equal(rc, hit ? IDEM_ENOMEM : IDEM_OK);
        idem_lambda_close(lambda);
    }
    assert_true(n > 2);
}

/* Options that are missing or no good are refused by name. */
TEST(options, areChecked)
{
    struct idem_lambda *lambda;
    struct idem_lambda_options o;

    o = options();
    o.size--;
    assert_code(IDEM_EINVALID, idem_lambda_open(&o, &lambda, &why));
    o = options();
    o.store = NULL;
    assert_code(IDEM_EINVALID, idem_lambda_open(&o, &lambda, &why));
    o = options();
    o.function = "";
    assert_code(IDEM_EINVALID, idem_lambda_open(&o, &lambda, &why));
    o = options();
    o.source = "telex";
    assert_code(IDEM_EINVALID, idem_lambda_open(&o, &lambda, &why));
    o = options();
    o.start_min_ms = -1;
    assert_code(IDEM_EINVALID, idem_lambda_open(&o, &lambda, &why));
    o = options();
    o.replay_headers = "X-Order,Set-Cookie";
    assert_code(IDEM_EINVALID, idem_lambda_open(&o, &lambda, &why));
    assert_why("Set-Cookie");
    o.replay_headers = "X-Order,";
    assert_ok(idem_lambda_open(&o, &lambda, &why));
    idem_lambda_close(lambda);
    o.replay_headers = "X Order";
    assert_code(IDEM_EINVALID, idem_lambda_open(&o, &lambda, &why));
    o = options();
    o.run = NULL;
    assert_code(IDEM_EINVALID, idem_lambda_open(&o, &lambda, &why));
}

/* An invocation without a request id cannot be answered. */
TEST(invocation, hasARequestId)
{
    struct idem_lambda_invocation now = IDEM_LAMBDA_INVOCATION_INIT;
    struct idem_lambda_options o = options();
    struct idem_lambda_response response;
    struct idem_lambda *lambda;

    assert_ok(idem_lambda_open(&o, &lambda, &why));
    now.event = idem_str(single);
    assert_int_equal(idem_lambda_handle(lambda, &now, &response),
                     IDEM_EINVALID);
    idem_lambda_close(lambda);
}
