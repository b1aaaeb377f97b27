/* The meaning of SQS's refusals. Pure. */
#ifndef IDEM_AWS_SQS_REFUSAL_H
#define IDEM_AWS_SQS_REFUSAL_H

#include "aws/client/transport.h"

enum idem__sqs_result {
    IDEM__SQS_OK = 1,
    IDEM__SQS_LATER, /* Throttled, a 5xx, no answer: ask again, with a pause. */
    IDEM__SQS_NO_QUEUE,
    IDEM__SQS_REFUSED_US, /* Credentials, rights, the key of the queue. */
    IDEM__SQS_NO_SENSE,   /* The request itself is wrong, or cannot be sent from
                             here. */
};

/* The result of @request, which is done, with a sentence in @ret_error where it
 * is not OK: its code is IDEM_EUNAVAILABLE, IDEM_ENOTFOUND, IDEM_EDENIED or
 * IDEM_ECONFIG. */
enum idem__sqs_result idem__sqs_classify(
    const struct idem__aws_request *request, struct idem_error *ret_error);

#endif
