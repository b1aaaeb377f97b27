/* Records that come in batches, of which some may fail: queues of SQS and streams. */
#include "aws/lambda/event_time.h"
#include "aws/lambda/source.h"

/* ---- Messages of SQS, of both kinds of queues --------------------------- */

static struct idem_slice message_item(struct json_object *record)
{
    return idem__lambda_text(record, "messageId");
}

static const char *message_key(struct json_object *record,
                               const struct idem_lambda_invocation *now,
                               struct idem__buffer *key)
{
    (void)now;
    return idem__lambda_key_text(key, message_item(record),
                                 "a message has no messageId");
}

static const char *message_parts(struct json_object *record,
                                 struct idem__lambda_parts *parts)
{
    idem__lambda_message(parts, idem__lambda_text(record, "body"));
    return NULL;
}

/* When it was sent: receiving it again does not change that. */
static int64_t message_time(struct json_object *record)
{
    return idem__lambda_time_ms(
        idem__lambda_text(idem__lambda_object(record, "attributes"),
                          "SentTimestamp"));
}

/* ---- Messages of a standard SQS queue ----------------------------------- */

static bool sqs_is_from(struct json_object *event)
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
    .is_from = sqs_is_from,
    .key = message_key,
    .parts = message_parts,
    .time_ms = message_time,
    .item = message_item,
};

/* ---- Messages of a FIFO queue ------------------------------------------- */

/* The deduplication id is not a key: where it is made from the content, two
 * messages that are meant to be two have the same. */

static bool sqs_fifo_is_from(struct json_object *event)
{
    struct idem_slice arn =
        idem__lambda_text(idem__lambda_first(event), "eventSourceARN");

    return idem__lambda_records_of(event, "aws:sqs") &&
           idem__lambda_is(idem__lambda_after(arn, '.'), "fifo");
}

static struct idem_slice sqs_fifo_group(struct json_object *record)
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
    .is_from = sqs_fifo_is_from,
    .key = message_key,
    .parts = message_parts,
    .time_ms = message_time,
    .item = message_item,
    .group = sqs_fifo_group,
};

/* ---- Records of a Kinesis stream ---------------------------------------- */

/* A producer that tries again makes a second record, with an id of its own. */

static bool kinesis_is_from(struct json_object *event)
{
    return idem__lambda_records_of(event, "aws:kinesis");
}

/* The stream, because shards of two streams have the same names. */
static const char *kinesis_key(struct json_object *record,
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

static const char *kinesis_parts(struct json_object *record,
                                 struct idem__lambda_parts *to)
{
    struct json_object *kinesis = idem__lambda_object(record, "kinesis");

    idem__lambda_part(to, idem__lambda_text(kinesis, "partitionKey"));
    (void)idem__lambda_message_base64(to, idem__lambda_text(kinesis, "data"));
    return NULL;
}

static struct idem_slice kinesis_item(struct json_object *record)
{
    return idem__lambda_text(idem__lambda_object(record, "kinesis"),
                             "sequenceNumber");
}

static struct idem_slice kinesis_group(struct json_object *record)
{
    return idem__lambda_text(idem__lambda_object(record, "kinesis"),
                             "partitionKey");
}

static int64_t kinesis_time_ms(struct json_object *unit)
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
    .is_from = kinesis_is_from,
    .key = kinesis_key,
    .parts = kinesis_parts,
    .time_ms = kinesis_time_ms,
    .item = kinesis_item,
    .group = kinesis_group,
};

/* ---- Changes of a DynamoDB table, from its stream ----------------------- */

static bool dynamodb_is_from(struct json_object *event)
{
    return idem__lambda_records_of(event, "aws:dynamodb");
}

static const char *dynamodb_key(struct json_object *record,
                                const struct idem_lambda_invocation *now,
                                struct idem__buffer *to)
{
    (void)now;
    return idem__lambda_key_text(to, idem__lambda_text(record, "eventID"),
                                 "a record has no eventID");
}

static const char *dynamodb_parts(struct json_object *record,
                                  struct idem__lambda_parts *to)
{
    static const char *const places[] = {"dynamodb.Keys", "dynamodb.OldImage",
                                         "dynamodb.NewImage", NULL};

    idem__lambda_part(to, idem__lambda_text(record, "eventName"));
    idem__lambda_body_json(to, places);
    return NULL;
}

static struct idem_slice dynamodb_item(struct json_object *record)
{
    return idem__lambda_text(idem__lambda_object(record, "dynamodb"),
                             "SequenceNumber");
}

/* Changes of one item stay in order. */
static struct idem_slice dynamodb_group(struct json_object *record)
{
    struct json_object *keys =
        idem__lambda_object(idem__lambda_object(record, "dynamodb"), "Keys");
    size_t len = 0;
    const char *text =
        keys == NULL
            ? NULL
            : json_object_to_json_string_length(keys, JSON_C_TO_STRING_PLAIN,
                                                &len);

    return idem_bytes(text, text == NULL ? 0 : len);
}

static int64_t dynamodb_time_ms(struct json_object *unit)
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
    .is_from = dynamodb_is_from,
    .key = dynamodb_key,
    .parts = dynamodb_parts,
    .time_ms = dynamodb_time_ms,
    .item = dynamodb_item,
    .group = dynamodb_group,
};
