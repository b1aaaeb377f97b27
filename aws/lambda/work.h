/* The work on an event: one unit, or a batch of them. */
#ifndef IDEM_AWS_LAMBDA_WORK_H
#define IDEM_AWS_LAMBDA_WORK_H

#include "aws/lambda/lambda.h"
#include "aws/lambda/source.h"

/* Handle @event, of the source of @rule; the response is in @lambda. */
void idem__lambda_single(struct idem_lambda *lambda,
                         const struct idem__lambda_rule *rule,
                         struct json_object *event);
void idem__lambda_batch(struct idem_lambda *lambda,
                        const struct idem__lambda_rule *rule,
                        struct json_object *event);

/* The handler of @attempt was stopped: its lease ends now, and the policy
 * decides. */
void idem__lambda_stopped(const struct idem_lambda *lambda,
                          struct idem_attempt *attempt);

/* Says that an attempt is not the first one. */
void idem__lambda_log_start(const struct idem_lambda *lambda,
                            const struct idem_attempt *attempt);

#endif
