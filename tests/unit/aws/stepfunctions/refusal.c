/* Tests of what the refusals of Step Functions mean. */
#include "aws/stepfunctions/refusal.h"

#include "test.h"

/* Throttled, taken, denied and nonsense are told apart; what comes with a 5xx, or what
 * nobody knows, may have started an execution. */
TEST(refusal, isToldApart)
{
    static const struct {
        int status;
        const char *type;
        enum idem__sfn_result result;
        int code;
    } rows[] = {
        {400, "ExecutionAlreadyExists", IDEM__SFN_TAKEN, IDEM_EUNAVAILABLE},
        {400, "com.amazonaws.swf.service.v2.model#ExecutionAlreadyExists",
         IDEM__SFN_TAKEN, IDEM_EUNAVAILABLE},
        {400, "ExecutionDoesNotExist", IDEM__SFN_NONE, IDEM_EUNAVAILABLE},
        {400, "ThrottlingException", IDEM__SFN_LATER, IDEM_EUNAVAILABLE},
        {400, "ExecutionLimitExceeded", IDEM__SFN_LATER, IDEM_EUNAVAILABLE},
        {400, "KmsThrottlingException", IDEM__SFN_LATER, IDEM_EUNAVAILABLE},
        {400, "StateMachineDoesNotExist", IDEM__SFN_REFUSED, IDEM_ENOTFOUND},
        {400, "StateMachineDeleting", IDEM__SFN_REFUSED, IDEM_ECONFIG},
        {400, "InvalidName", IDEM__SFN_REFUSED, IDEM_ECONFIG},
        {400, "InvalidExecutionInput", IDEM__SFN_REFUSED, IDEM_ECONFIG},
        {400, "ValidationException", IDEM__SFN_REFUSED, IDEM_ECONFIG},
        {400, "AccessDeniedException", IDEM__SFN_REFUSED, IDEM_EDENIED},
        {400, "KmsAccessDeniedException", IDEM__SFN_REFUSED, IDEM_EDENIED},
        {400, "ExpiredTokenException", IDEM__SFN_REFUSED, IDEM_EDENIED},
        {400, "UnknownOperationException", IDEM__SFN_REFUSED, IDEM_ECONFIG},
        {400, "NobodyKnows", IDEM__SFN_UNCLEAR, IDEM_EUNAVAILABLE},
        {500, "InternalFailure", IDEM__SFN_UNCLEAR, IDEM_EUNAVAILABLE},
        {500, "ExecutionAlreadyExists", IDEM__SFN_UNCLEAR, IDEM_EUNAVAILABLE},
        {503, "AccessDenied", IDEM__SFN_UNCLEAR, IDEM_EUNAVAILABLE},
        {302, "", IDEM__SFN_UNCLEAR, IDEM_EUNAVAILABLE},
    };
    static const struct idem__aws_endpoint endpoint = {.url = "http://h/"};
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem__aws_request request = {.status = rows[i].status};
        struct idem_error error = {0};
        char body[256];

        (void)snprintf(body, sizeof(body),
                       "{\"__type\":\"%s\",\"message\":\"why\"}", rows[i].type);
        request.endpoint = &endpoint;
        request.outcome = IDEM__AWS_ANSWERED;
        request.answer = (uint8_t *)body;
        request.answer_len = strlen(body);
        print_message("# %d %s\n", rows[i].status, rows[i].type);
        assert_int_equal(rows[i].result, idem__sfn_classify(&request, &error));
        assert_code(rows[i].code, error.code);
        assert_non_null(strstr(error.text, "why"));
        assert_non_null(strstr(error.text, "http://h/"));
    }
}

/* A request that was not sent did nothing; one without an answer may have. */
TEST(refusal, isNotSaidWithoutAnAnswer)
{
    struct idem__aws_request request = {.outcome = IDEM__AWS_NO_ANSWER};
    struct idem_error error = {0};

    request.error.code = IDEM_EUNKNOWN;
    assert_int_equal(IDEM__SFN_UNCLEAR, idem__sfn_classify(&request, &error));
    assert_code(IDEM_EUNKNOWN, error.code);
    request.outcome = IDEM__AWS_NOT_SENT;
    request.error.code = IDEM_EUNAVAILABLE;
    assert_int_equal(IDEM__SFN_LATER, idem__sfn_classify(&request, &error));
    request.error.code = IDEM_ECONFIG;
    assert_int_equal(IDEM__SFN_REFUSED, idem__sfn_classify(&request, &error));
}
