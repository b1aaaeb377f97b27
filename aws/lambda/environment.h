/* The environment of a handler that is a program. */
#ifndef IDEM_AWS_LAMBDA_ENVIRONMENT_H
#define IDEM_AWS_LAMBDA_ENVIRONMENT_H

#include "aws/lambda/lambda.h"

/* Ours, without the Runtime API's address and (unless the options say so) without
 * credentials, and with what lambda->work.call says; NULL: no memory. */
char **idem__lambda_environment(const struct idem_lambda *lambda);

void idem__lambda_environment_free(char **env);

#endif
