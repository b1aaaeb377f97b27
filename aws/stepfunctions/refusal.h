/* The meaning of a refusal by Step Functions. Pure. */
#ifndef IDEM_AWS_STEPFUNCTIONS_REFUSAL_H
#define IDEM_AWS_STEPFUNCTIONS_REFUSAL_H

#include "aws/client/transport.h"

enum idem__sfn_result {
    IDEM__SFN_OK = 1,
    IDEM__SFN_LATER, /* Not done: throttled, not reached. Ask again, with a pause. */
    IDEM__SFN_UNCLEAR, /* It may have been done: no answer, a 5xx. */
    IDEM__SFN_TAKEN,   /* The name is that of another execution. */
    IDEM__SFN_NONE,    /* The execution does not exist. */
    IDEM__SFN_REFUSED, /* Not done, and no try will do it. */
};

/* Classifies @request, which is done, with a sentence in @ret_error where it is not
 * OK. */
enum idem__sfn_result idem__sfn_classify(
    const struct idem__aws_request *request, struct idem_error *ret_error);

#endif
