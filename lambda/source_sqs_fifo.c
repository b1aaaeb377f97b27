/* Messages of a FIFO queue. The deduplication id is no key: where it is made from
 * the content, two messages that are meant to be two have the same. */
#include "lambda/source_queue.h"

static bool is_from(struct json_object *event)
{
    struct idem_slice arn =
        idem__lambda_text(idem__lambda_first(event), "eventSourceARN");

    return idem__lambda_records_of(event, "aws:sqs") &&
           idem__lambda_is(idem__lambda_after(arn, '.'), "fifo");
}

static struct idem_slice group(struct json_object *record)
{
    return idem__lambda_text(idem__lambda_object(record, "attributes"),
                             "MessageGroupId");
}

const struct idem__lambda_rule idem__lambda_sqs_fifo = {
    .row = {.name = "sqs-fifo",
            .key = "Records[].messageId",
            .strength = IDEM_LAMBDA_REDELIVERY_SAFE,
            .busy = "item failure, and of all that follow in its group",
            .failure = "item failure, and of all that follow in its group",
            .sample = "sqs-fifo.json"},
    .shape = IDEM__LAMBDA_FIFO,
    .is_from = is_from,
    .key = idem__lambda_message_key,
    .parts = idem__lambda_message_parts,
    .time_ms = idem__lambda_message_time,
    .item = idem__lambda_message_item,
    .group = group,
};
