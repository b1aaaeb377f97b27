/* Changes of a DynamoDB table, from its stream. */
#include "lambda/event_time.h"
#include "lambda/source.h"

static bool is_from(struct json_object *event)
{
    return idem__lambda_records_of(event, "aws:dynamodb");
}

static const char *key(struct json_object *record,
                       const struct idem_lambda_invocation *now,
                       struct idem__buffer *to)
{
    (void)now;
    return idem__lambda_key_text(to, idem__lambda_text(record, "eventID"),
                                 "a record has no eventID");
}

static const char *parts(struct json_object *record,
                         struct idem__lambda_parts *to)
{
    struct json_object *change = idem__lambda_object(record, "dynamodb");

    idem__lambda_part(to, idem__lambda_text(record, "eventName"));
    idem__lambda_part_json(to, change, "Keys");
    idem__lambda_part_json(to, change, "OldImage");
    idem__lambda_part_json(to, change, "NewImage");
    return NULL;
}

static struct idem_slice item(struct json_object *record)
{
    return idem__lambda_text(idem__lambda_object(record, "dynamodb"),
                             "SequenceNumber");
}

/* Changes of one item stay in order. */
static struct idem_slice group(struct json_object *record)
{
    struct idem__lambda_parts keys = {.len = 0};

    idem__lambda_part_json(&keys, idem__lambda_object(record, "dynamodb"),
                           "Keys");
    return keys.part[0];
}

static int64_t time_ms(struct json_object *unit)
{
    return idem__lambda_time_seconds(idem__lambda_object(unit, "dynamodb"),
                                     "ApproximateCreationDateTime");
}

const struct idem__lambda_rule idem__lambda_dynamodb = {
    .row = {.name = "dynamodb",
            .key = "Records[].eventID",
            .strength = IDEM_LAMBDA_REDELIVERY_SAFE,
            .busy = "item failure",
            .failure = "item failure",
            .sample = "dynamodb.json"},
    .shape = IDEM__LAMBDA_STREAM,
    .is_from = is_from,
    .key = key,
    .parts = parts,
    .time_ms = time_ms,
    .item = item,
    .group = group,
};
