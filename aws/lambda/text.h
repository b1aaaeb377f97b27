/* Writing JSON text. */
#ifndef IDEM_AWS_LAMBDA_TEXT_H
#define IDEM_AWS_LAMBDA_TEXT_H

#include "base/bytes.h"

/* Appends @text as a JSON string. Bytes that are no UTF-8 become U+FFFD. */
void idem__lambda_string(struct idem__buffer *to, struct idem_slice text);

/* Appends a comma unless @to ends with an opening bracket, then "name":. */
void idem__lambda_member_name(struct idem__buffer *to, const char *name);

/* The same, and the string @text. */
void idem__lambda_member(struct idem__buffer *to, const char *name,
                         struct idem_slice text);

#endif
