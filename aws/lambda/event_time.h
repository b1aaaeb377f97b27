/* When an event happened, as its source says. */
#ifndef IDEM_AWS_LAMBDA_EVENT_TIME_H
#define IDEM_AWS_LAMBDA_EVENT_TIME_H

#include "aws/lambda/event.h"

/* In ms since 1970; 0: it is not said in this form. */

/* "2026-01-02T12:45:07Z", with or without a fraction of a second. */
int64_t idem__lambda_time_utc(struct idem_slice text);

/* "1545082649183" */
int64_t idem__lambda_time_ms(struct idem_slice text);

/* A member that is a number of seconds, whole or not. @object may be NULL. */
int64_t idem__lambda_time_seconds(struct json_object *object, const char *name);

#endif
