/* Telling the refusals of Step Functions apart. */
#include "aws/stepfunctions/refusal.h"

#include "aws/client/error.h"
#include <stdio.h>

/* Names of this service. Those that all services share are in aws/client/error.c. */
static const struct idem__aws_name names[] = {
    {"ExecutionAlreadyExists", IDEM_EUNAVAILABLE, IDEM__SFN_TAKEN},
    {"ExecutionDoesNotExist", IDEM_EUNAVAILABLE, IDEM__SFN_NONE},

    /* A million executions are open. */
    {"ExecutionLimitExceeded", IDEM_EUNAVAILABLE, IDEM__SFN_LATER},
    {"KmsThrottlingException", IDEM_EUNAVAILABLE, IDEM__SFN_LATER},

    {"StateMachineDoesNotExist", IDEM_ENOTFOUND, IDEM__SFN_REFUSED},
    {"StateMachineDeleting", IDEM_ECONFIG, IDEM__SFN_REFUSED},
    {"InvalidArn", IDEM_ECONFIG, IDEM__SFN_REFUSED},
    {"InvalidExecutionInput", IDEM_ECONFIG, IDEM__SFN_REFUSED},
    {"InvalidName", IDEM_ECONFIG, IDEM__SFN_REFUSED},
    {"ValidationException", IDEM_ECONFIG, IDEM__SFN_REFUSED},
    {"KmsAccessDeniedException", IDEM_EDENIED, IDEM__SFN_REFUSED},
    {"KmsInvalidStateException", IDEM_EDENIED, IDEM__SFN_REFUSED},
};

static enum idem__sfn_result result_of(const struct idem__aws_error *refusal,
                                       const struct idem__aws_name *name)
{
    if (name != NULL) {
        return (enum idem__sfn_result)name->result;
    }
    switch (refusal->meaning) {
    case IDEM__AWS_SUCCESS:
        return IDEM__SFN_OK;
    case IDEM__AWS_THROTTLED:
    case IDEM__AWS_SKEWED:
        return IDEM__SFN_LATER;
    case IDEM__AWS_EXPIRED:
    case IDEM__AWS_DENIED:
    case IDEM__AWS_CONFIG:
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
    const struct idem__aws_name *name;
    struct idem__aws_error refusal;
    char who[100];

    if (request->outcome != IDEM__AWS_ANSWERED) {
        *ret_error = request->error;
        if (request->outcome == IDEM__AWS_NO_ANSWER) {
            return IDEM__SFN_UNCLEAR;
        }
        return request->error.code == IDEM_EUNAVAILABLE ? IDEM__SFN_LATER
                                                        : IDEM__SFN_REFUSED;
    }
    idem__aws_error_parse(request->status, request->error_type, body, &refusal);
    name =
        idem__aws_error_find(&refusal, names, sizeof(names) / sizeof(names[0]));
    (void)snprintf(who, sizeof(who), "Step Functions (%.80s)",
                   request->endpoint->url);
    (void)idem__aws_error_say(&refusal, name, who, request->status, ret_error);
    return result_of(&refusal, name);
}
