/* Tests of where a queue is. */
#include "aws/sqs/queue.h"

#include "aws/sqs/refusal.h"
#include "base/host.h"
#include "test.h"

#include <stdlib.h>

/* The region is the host's, in each form that AWS has used. */
TEST(region, isThatOfTheHost)
{
    static const char *const rows[][2] = {
        {"https://sqs.eu-west-1.amazonaws.com/1/q", "eu-west-1"},
        {"https://sqs.cn-north-1.amazonaws.com.cn/1/q", "cn-north-1"},
        {"https://sqs-fips.us-gov-west-1.amazonaws.com/1/q", "us-gov-west-1"},
        {"https://sqs.eu-west-1.api.aws/1/q", "eu-west-1"},
        {"https://ap-south-1.queue.amazonaws.com/1/q", "ap-south-1"},
        {"https://queue.amazonaws.com/1/q", "us-east-1"},
        {"https://vpce-1a-2b.sqs.eu-west-1.vpce.amazonaws.com/1/q",
         "eu-west-1"},
        {"http://sqs.eu-west-1.localhost:4566/1/q", "eu-west-1"},
        {"http://127.0.0.1:4566/1/sqs.eu-west-1.q", ""},
        {"http://sqs.eu-west-1/1/q", ""},
        {"http://sqs.:1/1/q", ""},
        {"http://sqs/1/q", ""},
        {"http://localhost/1/q", ""},
        {"http://", ""},
        {"sqs.eu-west-1.amazonaws.com", ""},
    };

    EACH(row, rows) {
        char region[64] = "";

        print_message("# %s\n", (*row)[0]);
        assert_int_equal((*row)[1][0] != '\0',
                         idem__sqs_region_of((*row)[0], region));
        assert_string_equal((*row)[1], region);
    }
}

static void set_up(void)
{
    (void)setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    (void)setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    (void)unsetenv("AWS_ENDPOINT_URL");
    (void)unsetenv("AWS_ENDPOINT_URL_SQS");
    (void)unsetenv("AWS_REGION");
    (void)unsetenv("AWS_DEFAULT_REGION");
}

static int open_at(const char *url, bool insecure,
                   struct idem__sqs_queue *queue)
{
    struct idem__sqs_place place = {.queue = url, .insecure = insecure};

    return idem__sqs_queue_open(&place, idem__mono_ms(), queue, &why);
}

/* Without other settings it is where its URL leads. */
TEST(queue, isWhereItsUrlLeads)
{
    static const char *const rows[][2] = {
        {"https://sqs.eu-west-1.amazonaws.com/1/q",
         "sqs.eu-west-1.amazonaws.com"},
        {"https://eu-west-1.queue.amazonaws.com/1/q",
         "eu-west-1.queue.amazonaws.com"},
        {"https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/q",
         "vpce-1.sqs.eu-west-1.vpce.amazonaws.com"},
    };
    struct idem__sqs_queue queue;

    set_up();
    EACH(row, rows) {
        assert_ok(open_at((*row)[0], false, &queue));
        assert_string_equal((*row)[1], queue.endpoint.host);
        assert_string_equal("eu-west-1", queue.endpoint.region);
        assert_string_equal("sqs", queue.endpoint.service);
        assert_string_equal((*row)[0], queue.url);
        idem__sqs_queue_close(&queue);
    }
}

/* An endpoint that was set is asked about the same URL. */
TEST(queue, isWhereTheEndpointSays)
{
    struct idem__sqs_queue queue;

    set_up();
    (void)setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:4566", 1);
    assert_ok(open_at("http://sqs.eu-west-1.localhost:1/1/q", false, &queue));
    assert_string_equal("127.0.0.1:4566", queue.endpoint.host);
    assert_string_equal("eu-west-1", queue.endpoint.region);
    assert_string_equal("http://sqs.eu-west-1.localhost:1/1/q", queue.url);
    idem__sqs_queue_close(&queue);
    (void)unsetenv("AWS_ENDPOINT_URL_SQS");
}

/* A queue that is named with its account is not looked up at AWS. */
TEST(queue, isNamedWithItsAccount)
{
    struct idem__sqs_place place = {.queue = "orders.fifo",
                                    .account = "123456789012"};
    struct idem__sqs_queue queue;

    set_up();
    place.region = "eu-west-1";
    assert_ok(idem__sqs_queue_open(&place, idem__mono_ms(), &queue, &why));
    assert_string_equal(
        "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo",
        queue.url);
    idem__sqs_queue_close(&queue);
    place.region = "cn-north-1";
    assert_ok(idem__sqs_queue_open(&place, idem__mono_ms(), &queue, &why));
    assert_string_equal(
        "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders.fifo",
        queue.url);
    idem__sqs_queue_close(&queue);
}

/* One that is not there: the error is what stood in the way, and no pause goes on past
 * the deadline, after which only that could be said. */
TEST(queue, isNotWaitedForPastTheDeadline)
{
    struct idem__sqs_queue queue;
    struct idem__sqs_call call = {.body = {NULL, 0, 0, false}};
    int i;

    set_up();
    (void)setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:1", 1);
    assert_ok(open_at("http://sqs.eu-west-1.localhost:1/1/q", false, &queue));
    (void)unsetenv("AWS_ENDPOINT_URL_SQS");
    idem__sqs_attributes(&call.body, queue.url);
    for (i = 0; i < 20; i++) { /* This machine may stand still for as long. */
        assert_code(IDEM_EUNAVAILABLE,
                    idem__sqs_ask(&queue,
                                  IDEM__SQS_TARGET("GetQueueAttributes"), &call,
                                  idem__mono_ms() + 200, &why));
        if (strstr(why.text, "timed out") == NULL) {
            break;
        }
    }
    assert_true(i < 20);
    assert_non_null(strstr(why.text, "connect"));
    idem__sqs_call_finish(&call);
    idem__sqs_queue_close(&queue);
}

/* Plain HTTP leads to no other machine, unless that was asked for. */
TEST(queue, isNotAskedInTheClear)
{
    struct idem__sqs_queue queue;

    set_up();
    assert_code(IDEM_ECONFIG,
                open_at("http://sqs.eu-west-1.example.com/1/q", false, &queue));
    assert_ok(open_at("http://sqs.eu-west-1.example.com/1/q", true, &queue));
    idem__sqs_queue_close(&queue);
}

/* What is neither a URL nor a name is refused. */
TEST(queue, hasAUrlOrAName)
{
    static const char *const rows[] = {"",          "a b", "a\"b",
                                       "ftp://x/q", "a/b", "arn:aws:sqs:r:1:q"};
    struct idem__sqs_queue queue;

    set_up();
    EACH(row, rows) {
        print_message("# %s\n", *row);
        assert_code(IDEM_EINVALID, open_at(*row, false, &queue));
    }
}

/* ---- Refusals ---- */

#define S "com.amazonaws.sqs#"

/* Gone, refused, throttled and nonsense are told apart, under new names and old
 * ones; what is said with a 5xx is never taken for a refusal. ROW(16) ROW(19) */
TEST(refusal, isToldApart)
{
    static const struct {
        int status;
        const char *type;
        enum idem__sqs_result result;
        int code;
    } rows[] = {
        {400, S "QueueDoesNotExist", IDEM__SQS_NO_QUEUE, IDEM_ENOTFOUND},
        {400, "AWS.SimpleQueueService.NonExistentQueue", IDEM__SQS_NO_QUEUE,
         IDEM_ENOTFOUND},
        {400, S "RequestThrottled", IDEM__SQS_LATER, IDEM_EUNAVAILABLE},
        {403, S "RequestThrottled", IDEM__SQS_LATER, IDEM_EUNAVAILABLE},
        {400, "ThrottlingException", IDEM__SQS_LATER, IDEM_EUNAVAILABLE},
        {400, S "OverLimit", IDEM__SQS_LATER, IDEM_EUNAVAILABLE},
        {403, "AccessDenied", IDEM__SQS_REFUSED_US, IDEM_EDENIED},
        {403, "AccessDeniedException", IDEM__SQS_REFUSED_US, IDEM_EDENIED},
        {403, "InvalidClientTokenId", IDEM__SQS_REFUSED_US, IDEM_EDENIED},
        {400, "ExpiredTokenException", IDEM__SQS_REFUSED_US, IDEM_EDENIED},
        {400, S "KmsAccessDenied", IDEM__SQS_REFUSED_US, IDEM_EDENIED},
        {400, "InvalidParameterValue", IDEM__SQS_NO_SENSE, IDEM_ECONFIG},
        {400, "UnknownOperationException", IDEM__SQS_NO_SENSE, IDEM_ECONFIG},
        {400, "WhoKnows", IDEM__SQS_LATER, IDEM_EUNAVAILABLE},
        {500, "QueueDoesNotExist", IDEM__SQS_LATER, IDEM_EUNAVAILABLE},
        {503, "AccessDenied", IDEM__SQS_LATER, IDEM_EUNAVAILABLE},
        {302, "", IDEM__SQS_LATER, IDEM_EUNAVAILABLE},
    };

    EACH(row, rows) {
        struct idem__aws_request request = {.status = row->status};
        struct idem_error error = {0};
        char body[256];

        (void)snprintf(body, sizeof(body),
                       "{\"__type\":\"%s\",\"message\":\"why\"}", row->type);
        request.outcome = IDEM__AWS_ANSWERED;
        request.answer = (uint8_t *)body;
        request.answer_len = strlen(body);
        print_message("# %d %s\n", row->status, row->type);
        assert_int_equal(row->result, idem__sqs_classify(&request, &error));
        assert_code(row->code, error.code);
        assert_non_null(strstr(error.text, "why"));
    }
}

/* No answer is one that may come later, and no way to ask is none. */
TEST(refusal, isNotSaidWithoutAnAnswer)
{
    struct idem__aws_request request = {.outcome = IDEM__AWS_NO_ANSWER};
    struct idem_error error = {0};

    assert_int_equal(IDEM__SQS_LATER, idem__sqs_classify(&request, &error));
    request.error.code = IDEM_EUNKNOWN;
    assert_int_equal(IDEM__SQS_LATER, idem__sqs_classify(&request, &error));
    request.outcome = IDEM__AWS_NOT_SENT;
    request.error.code = IDEM_EUNAVAILABLE;
    assert_int_equal(IDEM__SQS_LATER, idem__sqs_classify(&request, &error));
    request.error.code = IDEM_ENOMEM;
    assert_int_equal(IDEM__SQS_LATER, idem__sqs_classify(&request, &error));
    request.error.code = IDEM_EINVALID;
    assert_int_equal(IDEM__SQS_NO_SENSE, idem__sqs_classify(&request, &error));
    request.error.code = IDEM_ECONFIG;
    assert_int_equal(IDEM__SQS_NO_SENSE, idem__sqs_classify(&request, &error));
    assert_code(IDEM_ECONFIG, error.code);
}

/* Only a 200 is success, and it has no sentence. */
TEST(refusal, isNoSuccess)
{
    struct idem__aws_request request = {.outcome = IDEM__AWS_ANSWERED,
                                        .status = 200};
    struct idem_error error = {0};

    assert_int_equal(IDEM__SQS_OK, idem__sqs_classify(&request, &error));
    assert_ok(error.code);
}
