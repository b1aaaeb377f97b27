/* Tests of what the refusals of SQS mean. */
#include "aws/sqs/refusal.h"

#include "test.h"

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

    request.error.code = IDEM_EUNKNOWN;
    assert_int_equal(IDEM__SQS_LATER, idem__sqs_classify(&request, &error));
    request.outcome = IDEM__AWS_NOT_SENT;
    request.error.code = IDEM_EUNAVAILABLE;
    assert_int_equal(IDEM__SQS_LATER, idem__sqs_classify(&request, &error));
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
