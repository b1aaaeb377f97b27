/* Notifications of an S3 bucket. The sequencer orders what happened to one object,
 * and is the same in every notification of one change. */
#include "lambda/event_time.h"
#include "lambda/source.h"

static bool is_from(struct json_object *event)
{
    return idem__lambda_records_of(event, "aws:s3");
}

static struct idem_slice bucket_of(struct json_object *s3)
{
    return idem__lambda_text(idem__lambda_object(s3, "bucket"), "name");
}

static void add(struct idem__buffer *to, struct idem_slice text)
{
    idem__buffer_add(to, text.base, text.len);
    idem__buffer_str(to, "/");
}

static const char *key(struct json_object *record,
                       const struct idem_lambda_invocation *now,
                       struct idem__buffer *to)
{
    struct json_object *s3 = idem__lambda_object(record, "s3");
    struct json_object *object = idem__lambda_object(s3, "object");
    struct idem_slice bucket = bucket_of(s3);

    (void)now;
    if (bucket.len == 0 || idem__lambda_text(object, "key").len == 0) {
        return "a record has no s3.bucket.name or no s3.object.key";
    }
    add(to, bucket);
    add(to, idem__lambda_text(object, "key"));
    add(to, idem__lambda_text(object, "versionId"));
    add(to, idem__lambda_text(record, "eventName"));
    return idem__lambda_key_text(to, idem__lambda_text(object, "sequencer"),
                                 "a record has no s3.object.sequencer");
}

static const char *parts(struct json_object *record,
                         struct idem__lambda_parts *to)
{
    struct json_object *s3 = idem__lambda_object(record, "s3");
    struct json_object *object = idem__lambda_object(s3, "object");

    idem__lambda_part(to, idem__lambda_text(object, "eTag"));
    idem__lambda_part_json(to, object, "size");
    return NULL;
}

static int64_t time_ms(struct json_object *unit)
{
    return idem__lambda_time_utc(idem__lambda_text(unit, "eventTime"));
}

const struct idem__lambda_rule idem__lambda_s3 = {
    .row = {.name = "s3",
            .key = "Records[].s3.bucket.name, .object.key, .versionId, "
                   ".sequencer, .eventName",
            .strength = IDEM_LAMBDA_REDELIVERY_SAFE,
            .busy = "error Idem.InProgress",
            .failure = "error",
            .sample = "s3.json"},
    .shape = IDEM__LAMBDA_RECORDS,
    .is_from = is_from,
    .key = key,
    .parts = parts,
    .time_ms = time_ms,
};
