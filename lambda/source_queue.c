/* What both kinds of SQS queues share. */
#include "lambda/source_queue.h"

#include "lambda/event_time.h"

const char *idem__lambda_message_key(struct json_object *record,
                                     const struct idem_lambda_invocation *now,
                                     struct idem__buffer *key)
{
    (void)now;
    return idem__lambda_key_text(key, idem__lambda_message_item(record),
                                 "a message has no messageId");
}

const char *idem__lambda_message_parts(struct json_object *record,
                                       struct idem__lambda_parts *parts)
{
    idem__lambda_part(parts, idem__lambda_text(record, "body"));
    return NULL;
}

/* When it was sent: receiving it again does not change that. */
int64_t idem__lambda_message_time(struct json_object *record)
{
    return idem__lambda_time_ms(
        idem__lambda_text(idem__lambda_object(record, "attributes"),
                          "SentTimestamp"));
}

struct idem_slice idem__lambda_message_item(struct json_object *record)
{
    return idem__lambda_text(record, "messageId");
}
