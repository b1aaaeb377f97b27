/* The part of an event that is kept with its record, for a person. */
#ifndef IDEM_AWS_LAMBDA_INPUT_H
#define IDEM_AWS_LAMBDA_INPUT_H

#include "aws/lambda/unit.h"

/* Writes what is kept of @unit into the emptied @to: the event as its handler gets
 * it, but of HTTP only the request, without what proves who sent it. */
void idem__lambda_input(struct idem__buffer *to,
                        const struct idem__lambda_unit *unit);

#endif
