/* Messages of a standard SQS queue. */
#include "lambda/source_queue.h"

static bool is_from(struct json_object *event)
{
    return idem__lambda_records_of(event, "aws:sqs");
}

const struct idem__lambda_rule idem__lambda_sqs = {
    .row = {.name = "sqs",
            .key = "Records[].messageId",
            .strength = IDEM_LAMBDA_REDELIVERY_SAFE,
            .busy = "item failure",
            .failure = "item failure",
            .sample = "sqs.json"},
    .shape = IDEM__LAMBDA_QUEUE,
    .is_from = is_from,
    .key = idem__lambda_message_key,
    .parts = idem__lambda_message_parts,
    .time_ms = idem__lambda_message_time,
    .item = idem__lambda_message_item,
};
