/* Messages of an SNS topic, delivered without a queue. */
#include "lambda/event_time.h"
#include "lambda/source.h"

static bool is_from(struct json_object *event)
{
    return idem__lambda_records_of(event, "aws:sns");
}

static const char *key(struct json_object *record,
                       const struct idem_lambda_invocation *now,
                       struct idem__buffer *to)
{
    struct json_object *sns = idem__lambda_object(record, "Sns");

    (void)now;
    return idem__lambda_key_text(to, idem__lambda_text(sns, "MessageId"),
                                 "a message has no Sns.MessageId");
}

static const char *parts(struct json_object *record,
                         struct idem__lambda_parts *to)
{
    struct json_object *sns = idem__lambda_object(record, "Sns");

    idem__lambda_part(to, idem__lambda_text(sns, "TopicArn"));
    idem__lambda_part(to, idem__lambda_text(sns, "Subject"));
    idem__lambda_part(to, idem__lambda_text(sns, "Message"));
    return NULL;
}

static int64_t time_ms(struct json_object *unit)
{
    return idem__lambda_time_utc(
        idem__lambda_text(idem__lambda_object(unit, "Sns"), "Timestamp"));
}

const struct idem__lambda_rule idem__lambda_sns = {
    .row = {.name = "sns",
            .key = "Records[].Sns.MessageId",
            .strength = IDEM_LAMBDA_REDELIVERY_SAFE,
            .busy = "error Idem.InProgress",
            .failure = "error",
            .sample = "sns.json"},
    .shape = IDEM__LAMBDA_RECORDS,
    .is_from = is_from,
    .key = key,
    .parts = parts,
    .time_ms = time_ms,
};
