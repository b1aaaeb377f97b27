/* Telling the refusals of SQS apart. */
#include "aws/sqs/refusal.h"

#include "aws/client/error.h"
#include "core/error.h"

/* Names of this service. The part that all services share is in aws/client/error.c. */
static const struct {
    const char *type;
    enum idem__sqs_result result;
} meanings[] = {
    {"QueueDoesNotExist", IDEM__SQS_NO_QUEUE},
    {"QueueDeletedRecently", IDEM__SQS_NO_QUEUE},
    {"AWS.SimpleQueueService.NonExistentQueue", IDEM__SQS_NO_QUEUE},

    {"OverLimit", IDEM__SQS_LATER}, /* 120,000 messages are in flight. */
    {"KmsThrottled", IDEM__SQS_LATER},

    {"InvalidSecurity", IDEM__SQS_REFUSED_US},
    {"KmsAccessDenied", IDEM__SQS_REFUSED_US},
    {"KmsDisabled", IDEM__SQS_REFUSED_US},
    {"KmsInvalidKeyUsage", IDEM__SQS_REFUSED_US},
    {"KmsInvalidState", IDEM__SQS_REFUSED_US},
    {"KmsNotFound", IDEM__SQS_REFUSED_US},
    {"KmsOptInRequired", IDEM__SQS_REFUSED_US},

    {"InvalidAddress", IDEM__SQS_NO_SENSE},
    {"InvalidParameterValue", IDEM__SQS_NO_SENSE},
    {"UnsupportedOperation", IDEM__SQS_NO_SENSE},
};

static enum idem__sqs_result result_of(const struct idem__aws_error *refusal)
{
    size_t i;

    for (i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (refusal->meaning != IDEM__AWS_SERVER &&
            idem__aws_error_is(refusal, meanings[i].type)) {
            return meanings[i].result;
        }
    }
    switch (refusal->meaning) {
    case IDEM__AWS_SUCCESS:
        return IDEM__SQS_OK;
    case IDEM__AWS_THROTTLED:
    case IDEM__AWS_SKEWED:
    case IDEM__AWS_SERVER:
    case IDEM__AWS_UNCLEAR:
        break;
    case IDEM__AWS_EXPIRED:
    case IDEM__AWS_DENIED:
        return IDEM__SQS_REFUSED_US;
    case IDEM__AWS_CONFIG:
        return IDEM__SQS_NO_SENSE;
    }
    return IDEM__SQS_LATER;
}

static int code_of(enum idem__sqs_result result)
{
    switch (result) {
    case IDEM__SQS_OK:
        return 0;
    case IDEM__SQS_LATER:
        break;
    case IDEM__SQS_NO_QUEUE:
        return IDEM_ENOTFOUND;
    case IDEM__SQS_REFUSED_US:
        return IDEM_EDENIED;
    case IDEM__SQS_NO_SENSE:
        return IDEM_ECONFIG;
    }
    return IDEM_EUNAVAILABLE;
}

enum idem__sqs_result idem__sqs_classify(
    const struct idem__aws_request *request, struct idem_error *ret_error)
{
    struct idem_slice body = {request->answer, request->answer_len};
    struct idem__aws_error refusal;
    enum idem__sqs_result result;

    if (request->outcome != IDEM__AWS_ANSWERED) {
        *ret_error = request->error;
        return request->error.code == IDEM_ECONFIG ? IDEM__SQS_NO_SENSE
                                                   : IDEM__SQS_LATER;
    }
    idem__aws_error_parse(request->status, request->error_type, body, &refusal);
    result = result_of(&refusal);
    if (result != IDEM__SQS_OK) {
        (void)idem__error(ret_error, code_of(result),
                          "SQS answered %d %s%s%.150s", request->status,
                          refusal.type, refusal.message[0] != '\0' ? ": " : "",
                          refusal.message);
    }
    return result;
}
