/* The meaning of the refusals of SQS. Pure. */
#ifndef IDEM_AWS_SQS_REFUSAL_H
#define IDEM_AWS_SQS_REFUSAL_H

#include "aws/client/transport.h"

enum idem__sqs_result {
    IDEM__SQS_OK = 1,
    IDEM__SQS_LATER, /* Throttled, a 5xx, no answer, no memory: retry after a
                        pause. */
    IDEM__SQS_NO_QUEUE,
    IDEM__SQS_REFUSED_US, /* Credentials, permissions, the queue's KMS key. */
    IDEM__SQS_NO_SENSE,   /* The request itself is wrong, or cannot be sent from
                             here. */
};

/* Returns the result of @request, which is done. If that is not OK, sets *@ret_error: its
 * code is IDEM_EUNAVAILABLE, IDEM_ENOTFOUND, IDEM_EDENIED, IDEM_ECONFIG or, if there was
 * no answer, that of the request. */
enum idem__sqs_result idem__sqs_classify(
    const struct idem__aws_request *request, struct idem_error *ret_error);

#endif
