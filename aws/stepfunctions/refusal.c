/* Telling the refusals of Step Functions apart. */
#include "aws/stepfunctions/refusal.h"

#include "aws/client/error.h"
#include "core/error.h"

/* Names of this service. Those that all services share are in aws/client/error.c. */
static const struct {
    const char *type;
    enum idem__sfn_result result;
    int code;
} meanings[] = {
    {"ExecutionAlreadyExists", IDEM__SFN_TAKEN, IDEM_EUNAVAILABLE},
    {"ExecutionDoesNotExist", IDEM__SFN_NONE, IDEM_EUNAVAILABLE},

    /* A million executions are open. */
    {"ExecutionLimitExceeded", IDEM__SFN_LATER, IDEM_EUNAVAILABLE},
    {"KmsThrottlingException", IDEM__SFN_LATER, IDEM_EUNAVAILABLE},

    {"StateMachineDoesNotExist", IDEM__SFN_REFUSED, IDEM_ENOTFOUND},
    {"StateMachineDeleting", IDEM__SFN_REFUSED, IDEM_ECONFIG},
    {"InvalidArn", IDEM__SFN_REFUSED, IDEM_ECONFIG},
    {"InvalidExecutionInput", IDEM__SFN_REFUSED, IDEM_ECONFIG},
    {"InvalidName", IDEM__SFN_REFUSED, IDEM_ECONFIG},
    {"ValidationException", IDEM__SFN_REFUSED, IDEM_ECONFIG},
    {"KmsAccessDeniedException", IDEM__SFN_REFUSED, IDEM_EDENIED},
    {"KmsInvalidStateException", IDEM__SFN_REFUSED, IDEM_EDENIED},
};

static enum idem__sfn_result result_of(const struct idem__aws_error *refusal,
                                       int *ret_code)
{
    size_t i;

    *ret_code = IDEM_EUNAVAILABLE;
    for (i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (refusal->meaning != IDEM__AWS_SERVER &&
            idem__aws_error_is(refusal, meanings[i].type)) {
            *ret_code = meanings[i].code;
            return meanings[i].result;
        }
    }
    switch (refusal->meaning) {
    case IDEM__AWS_SUCCESS:
        *ret_code = 0;
        return IDEM__SFN_OK;
    case IDEM__AWS_THROTTLED:
    case IDEM__AWS_SKEWED:
        return IDEM__SFN_LATER;
    case IDEM__AWS_EXPIRED:
    case IDEM__AWS_DENIED:
        *ret_code = IDEM_EDENIED;
        return IDEM__SFN_REFUSED;
    case IDEM__AWS_CONFIG:
        *ret_code = IDEM_ECONFIG;
        return IDEM__SFN_REFUSED;
    case IDEM__AWS_SERVER:
    case IDEM__AWS_UNCLEAR:
        break;
    }
    return IDEM__SFN_UNCLEAR;
}

enum idem__sfn_result idem__sfn_classify(
    const struct idem__aws_request *request, struct idem_error *ret_error)
{
    struct idem_slice body = {request->answer, request->answer_len};
    struct idem__aws_error refusal;
    enum idem__sfn_result result;
    int code;

    if (request->outcome != IDEM__AWS_ANSWERED) {
        *ret_error = request->error;
        if (request->outcome == IDEM__AWS_NO_ANSWER) {
            return IDEM__SFN_UNCLEAR;
        }
        return request->error.code == IDEM_EUNAVAILABLE ? IDEM__SFN_LATER
                                                        : IDEM__SFN_REFUSED;
    }
    idem__aws_error_parse(request->status, request->error_type, body, &refusal);
    result = result_of(&refusal, &code);
    if (result != IDEM__SFN_OK) {
        (void)idem__error(ret_error, code,
                          "Step Functions (%.80s) answered %d%s%s%s%.120s",
                          request->endpoint->url, request->status,
                          refusal.type[0] != '\0' ? " " : "", refusal.type,
                          refusal.message[0] != '\0' ? ": " : "",
                          refusal.message);
    }
    return result;
}
