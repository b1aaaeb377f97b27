/* Messages of SQS that came while another delivery of theirs is at work. */
#ifndef IDEM_AWS_LAMBDA_HIDE_H
#define IDEM_AWS_LAMBDA_HIDE_H

#include "aws/lambda/batch.h"

/* True if messages of @rule can be hidden: they are of SQS, the options allow it, and
 * the function has credentials of its own. */
bool idem__lambda_hides(const struct idem_lambda *lambda,
                        const struct idem__lambda_rule *rule);

/* Until when a message is to be hidden to which the store said BUSY, by the monotonic
 * clock. */
int64_t idem__lambda_hide_until_ms(const struct idem_attempt *busy);

/* Hides the items of @b that have a time for it, within the store's time-out and the
 * margin before the deadline. Why it could not is in the log, once. */
void idem__batch_hide(struct batch *b);

void idem__lambda_hide_finish(struct idem_lambda *lambda);

#endif
