/* Records of a Kinesis stream. A producer that tries again makes a second record,
 * with an id of its own. */
#include "lambda/event_time.h"
#include "lambda/source.h"

static bool is_from(struct json_object *event)
{
    return idem__lambda_records_of(event, "aws:kinesis");
}

/* The stream, because shards of two streams have the same names. */
static const char *key(struct json_object *record,
                       const struct idem_lambda_invocation *now,
                       struct idem__buffer *to)
{
    struct idem_slice stream =
        idem__lambda_after(idem__lambda_text(record, "eventSourceARN"), '/');

    (void)now;
    if (stream.len == 0) {
        return "a record has no eventSourceARN";
    }
    idem__buffer_add(to, stream.base, stream.len);
    idem__buffer_str(to, "/");
    return idem__lambda_key_text(to, idem__lambda_text(record, "eventID"),
                                 "a record has no eventID");
}

static const char *parts(struct json_object *record,
                         struct idem__lambda_parts *to)
{
    struct json_object *kinesis = idem__lambda_object(record, "kinesis");

    idem__lambda_part(to, idem__lambda_text(kinesis, "partitionKey"));
    idem__lambda_part(to, idem__lambda_text(kinesis, "data"));
    return NULL;
}

static struct idem_slice item(struct json_object *record)
{
    return idem__lambda_text(idem__lambda_object(record, "kinesis"),
                             "sequenceNumber");
}

static struct idem_slice group(struct json_object *record)
{
    return idem__lambda_text(idem__lambda_object(record, "kinesis"),
                             "partitionKey");
}

static int64_t time_ms(struct json_object *unit)
{
    return idem__lambda_time_seconds(idem__lambda_object(unit, "kinesis"),
                                     "approximateArrivalTimestamp");
}

const struct idem__lambda_rule idem__lambda_kinesis = {
    .row = {.name = "kinesis",
            .key = "Records[].eventSourceARN, .eventID",
            .strength = IDEM_LAMBDA_REDELIVERY_SAFE,
            .busy = "item failure",
            .failure = "item failure",
            .sample = "kinesis.json"},
    .shape = IDEM__LAMBDA_STREAM,
    .is_from = is_from,
    .key = key,
    .parts = parts,
    .time_ms = time_ms,
    .item = item,
    .group = group,
};
