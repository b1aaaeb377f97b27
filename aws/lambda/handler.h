/* Running the handler: a function, or a program. */
#ifndef IDEM_AWS_LAMBDA_HANDLER_H
#define IDEM_AWS_LAMBDA_HANDLER_H

#include "aws/lambda/lambda.h"

/* Finds what the options name. @lambda then has run or program.
 *
 * IDEM_EINVALID  Nothing is named.
 * IDEM_ECONFIG   It is not there or cannot be used.
 * IDEM_ENOMEM
 */
int idem__lambda_handler_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error);
void idem__lambda_handler_finish(struct idem_lambda *lambda);

/* Runs it on @event (with a NUL after it) under @attempt, which may be NULL.
 * How it ended is in lambda->work. */
void idem__lambda_handler_run(struct idem_lambda *lambda,
                              struct idem_slice event,
                              const struct idem_attempt *attempt);

/* One that is a program. */
void idem__lambda_program_run(struct idem_lambda *lambda);

/* How the run failed: @type is cut and cleaned to the letters of a class. */
void idem__lambda_run_error(struct idem__lambda_run *run,
                            enum idem__lambda_end end, struct idem_slice type,
                            struct idem_slice text);

#endif
