/* The counts of a function, for CloudWatch. */
#ifndef IDEM_AWS_LAMBDA_METRICS_H
#define IDEM_AWS_LAMBDA_METRICS_H

#include "aws/lambda/lambda.h"

/* Makes lambda->metrics where the options ask for it; IDEM_ENOMEM. */
int idem__lambda_metrics_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error);

/* The store is closed. */
void idem__lambda_metrics_finish(struct idem_lambda *lambda);

/* Has the store that is opened with @options counted. */
void idem__lambda_metrics_observe(const struct idem_lambda *lambda,
                                  struct idem_open_options *options);

/* Writes what was counted since the last time to the log, if there is any. */
void idem__lambda_metrics_log(struct idem_lambda *lambda);

#endif
