/* The loop of the runtime, as far as main.c needs more than its public door. */
#ifndef IDEM_AWS_LAMBDA_SERVE_H
#define IDEM_AWS_LAMBDA_SERVE_H

#include "aws/lambda/api.h"

/* {"errorType": @type, "errorMessage": @text} into the emptied @to. */
void idem__lambda_error_body(struct idem__buffer *to, const char *type,
                             const char *text);

#endif
