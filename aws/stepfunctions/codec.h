/* The requests to Step Functions and its answers, as JSON. Pure.
 *
 * An answer that is not of the shape that Step Functions promises is IDEM_ECORRUPT as
 * a whole; nothing of it is believed.
 */
#ifndef IDEM_AWS_STEPFUNCTIONS_CODEC_H
#define IDEM_AWS_STEPFUNCTIONS_CODEC_H

#include "base/buffer.h"

#include <idem/stepfunctions.h>

#define IDEM__SFN_TARGET(name) "AWSStepFunctions." name
#define IDEM__SFN_ARN_MAX                                                      \
    256 /* Of a state machine, as StartExecution takes it. */
/* DescribeExecution gives input and output, 256 KiB each, each byte of them escaped as
 * \u00xx, and some. */
#define IDEM__SFN_ANSWER_MAX ((size_t)8 << 20)

/* "arn:PARTITION:states:REGION:ACCOUNT:stateMachine:NAME", perhaps with ":VERSION" or
 * ":ALIAS". */
struct idem__sfn_machine {
    char region[64];
    char arn[IDEM__SFN_ARN_MAX + 1]; /* Without version or alias. */
    char executions[IDEM__SFN_ARN_MAX +
                    1]; /* Of its executions, up to the ":" before
                                               their names. */
};

/* False: @arn is not that of a state machine. */
bool idem__sfn_read_machine(const char *arn,
                            struct idem__sfn_machine *ret_machine);

/* ---- Requests: appended to @out; a lack of memory is kept ------------ */

void idem__sfn_start(struct idem__buffer *out, const char *machine,
                     const char *name, struct idem_slice input);
void idem__sfn_describe_execution(struct idem__buffer *out, const char *prefix,
                                  const char *name);
void idem__sfn_describe_machine(struct idem__buffer *out, const char *arn);

/* ---- Answers: 0, IDEM_ECORRUPT or IDEM_ENOMEM -------------------------------- */

/* Sets all of @ret_execution but the state. */
int idem__sfn_read_started(struct idem_slice answer,
                           struct idem_execution *ret_execution);

/* The same of DescribeExecution, and whether it has @input. IDEM_EDENIED: it does not
 * show its input. */
int idem__sfn_read_execution(struct idem_slice answer, struct idem_slice input,
                             struct idem_execution *ret_execution,
                             bool *ret_same);

int idem__sfn_read_type(struct idem_slice answer, bool *ret_express);

#endif
