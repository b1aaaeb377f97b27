/* What both kinds of SQS queues share. */
#ifndef IDEM_LAMBDA_SOURCE_QUEUE_H
#define IDEM_LAMBDA_SOURCE_QUEUE_H

#include "lambda/source.h"

const char *idem__lambda_message_key(struct json_object *record,
                                     const struct idem_lambda_invocation *now,
                                     struct idem__buffer *key);
const char *idem__lambda_message_parts(struct json_object *record,
                                       struct idem__lambda_parts *parts);
int64_t idem__lambda_message_time(struct json_object *record);
struct idem_slice idem__lambda_message_item(struct json_object *record);

#endif
