/* How a run is put on record, and what the log says of it before. */
#ifndef IDEM_AWS_LAMBDA_OUTCOME_H
#define IDEM_AWS_LAMBDA_OUTCOME_H

#include "aws/lambda/lambda.h"
#include "aws/lambda/source.h"

/* The outcome of lambda->work, which it points into, and into @scratch. False:
 * it has none, because the handler was stopped: idem_expire(). */
bool idem__lambda_outcome(const struct idem_lambda *lambda,
                          enum idem__lambda_shape shape,
                          struct idem__buffer *scratch,
                          struct idem_outcome *ret_outcome);

/* Writes to the log how @attempt ended, before the store is told: a line from
 * which `idem reconcile` can record it. @outcome NULL: it was stopped. */
void idem__lambda_outcome_log(const struct idem_lambda *lambda,
                              const struct idem_attempt *attempt,
                              const struct idem_outcome *outcome);

/* Says that the store could not be told. */
void idem__lambda_not_recorded(const struct idem_lambda *lambda,
                               struct idem_slice key,
                               const struct idem_error *error);

#endif
