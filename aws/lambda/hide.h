/* Messages of SQS that came while another delivery of theirs is at work. */
#ifndef IDEM_AWS_LAMBDA_HIDE_H
#define IDEM_AWS_LAMBDA_HIDE_H

#include "aws/lambda/batch.h"

/* Has @item hidden whose attempt in flight is another's, or that is in a pause. */
void idem__batch_hide_busy(const struct batch *b, struct item *item);

/* Has @item hidden for the pause of @ms, which may be 0, before its next attempt. */
void idem__batch_hide_pause(const struct batch *b, struct item *item,
                            int64_t ms);

/* Hides the items of @b that have a time for it, within the store's time-out and the
 * margin before the deadline. Why it could not is in the log, once. */
void idem__batch_hide(struct batch *b);

void idem__lambda_hide_finish(struct idem_lambda *lambda);

#endif
