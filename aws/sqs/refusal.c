/* Classifies the refusals of SQS. */
#include "aws/sqs/refusal.h"

#include "aws/client/error.h"

/* The names that only this service has. aws/client/error.c has those that all services
 * share. The result follows from the code. */
static const struct idem__aws_name names[] = {
    {"QueueDoesNotExist", IDEM_ENOTFOUND, 0},
    {"QueueDeletedRecently", IDEM_ENOTFOUND, 0},
    {"AWS.SimpleQueueService.NonExistentQueue", IDEM_ENOTFOUND, 0},

    {"OverLimit", IDEM_EUNAVAILABLE, 0}, /* 120,000 messages in flight. */
    {"KmsThrottled", IDEM_EUNAVAILABLE, 0},

    {"InvalidSecurity", IDEM_EDENIED, 0},
    {"KmsAccessDenied", IDEM_EDENIED, 0},
    {"KmsDisabled", IDEM_EDENIED, 0},
    {"KmsInvalidKeyUsage", IDEM_EDENIED, 0},
    {"KmsInvalidState", IDEM_EDENIED, 0},
    {"KmsNotFound", IDEM_EDENIED, 0},
    {"KmsOptInRequired", IDEM_EDENIED, 0},

    {"InvalidAddress", IDEM_ECONFIG, 0},
    {"InvalidParameterValue", IDEM_ECONFIG, 0},
    {"UnsupportedOperation", IDEM_ECONFIG, 0},
};

static enum idem__sqs_result result_of(int code)
{
    switch (code) {
    case 0:
        return IDEM__SQS_OK;
    case IDEM_ENOTFOUND:
        return IDEM__SQS_NO_QUEUE;
    case IDEM_EDENIED:
        return IDEM__SQS_REFUSED_US;
    case IDEM_ECONFIG:
    case IDEM_EINVALID:
        return IDEM__SQS_NO_SENSE;
    default:
        return IDEM__SQS_LATER;
    }
}

enum idem__sqs_result idem__sqs_classify(
    const struct idem__aws_request *request, struct idem_error *ret_error)
{
    struct idem_slice body = {request->answer, request->answer_len};
    const struct idem__aws_name *name;
    struct idem__aws_error refusal;

    if (request->outcome != IDEM__AWS_ANSWERED) {
        *ret_error = request->error;
        /* Without an answer it is no success, whatever its error says. */
        return request->error.code == 0 ? IDEM__SQS_LATER
                                        : result_of(request->error.code);
    }
    idem__aws_error_parse(request->status, request->error_type, body, &refusal);
    name =
        idem__aws_error_find(&refusal, names, sizeof(names) / sizeof(names[0]));
    return result_of(
        idem__aws_error_say(&refusal, name, "SQS", request->status, ret_error));
}
