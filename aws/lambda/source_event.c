/* Events that come alone, or whose records fail together: from SNS, S3,
 * EventBridge, schedules, Step Functions, and direct calls. */
#include "aws/lambda/event_time.h"
#include "aws/lambda/source.h"

/* ---- Messages of an SNS topic, delivered without a queue ---------------- */

static bool sns_is_from(struct json_object *event)
{
    return idem__lambda_records_of(event, "aws:sns");
}

static const char *sns_key(struct json_object *record,
                           const struct idem_lambda_invocation *now,
                           struct idem__buffer *to)
{
    struct json_object *sns = idem__lambda_object(record, "Sns");

    (void)now;
    return idem__lambda_key_text(to, idem__lambda_text(sns, "MessageId"),
                                 "a message has no Sns.MessageId");
}

static const char *sns_parts(struct json_object *record,
                             struct idem__lambda_parts *to)
{
    struct json_object *sns = idem__lambda_object(record, "Sns");

    idem__lambda_part(to, idem__lambda_text(sns, "TopicArn"));
    idem__lambda_part(to, idem__lambda_text(sns, "Subject"));
    idem__lambda_message(to, idem__lambda_text(sns, "Message"));
    return NULL;
}

static int64_t sns_time_ms(struct json_object *unit)
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
    .is_from = sns_is_from,
    .key = sns_key,
    .parts = sns_parts,
    .time_ms = sns_time_ms,
};

/* ---- Notifications of an S3 bucket -------------------------------------- */

/* The sequencer orders the changes of one object, and is the same in every
 * notification of one change. */

static bool s3_is_from(struct json_object *event)
{
    return idem__lambda_records_of(event, "aws:s3");
}

static struct idem_slice s3_bucket_of(struct json_object *s3)
{
    return idem__lambda_text(idem__lambda_object(s3, "bucket"), "name");
}

static void s3_add(struct idem__buffer *to, struct idem_slice text)
{
    idem__buffer_add(to, text.base, text.len);
    idem__buffer_str(to, "/");
}

static const char *s3_key(struct json_object *record,
                          const struct idem_lambda_invocation *now,
                          struct idem__buffer *to)
{
    struct json_object *s3 = idem__lambda_object(record, "s3");
    struct json_object *object = idem__lambda_object(s3, "object");
    struct idem_slice bucket = s3_bucket_of(s3);

    (void)now;
    if (bucket.len == 0 || idem__lambda_text(object, "key").len == 0) {
        return "a record has no s3.bucket.name or no s3.object.key";
    }
    s3_add(to, bucket);
    s3_add(to, idem__lambda_text(object, "key"));
    s3_add(to, idem__lambda_text(object, "versionId"));
    s3_add(to, idem__lambda_text(record, "eventName"));
    return idem__lambda_key_text(to, idem__lambda_text(object, "sequencer"),
                                 "a record has no s3.object.sequencer");
}

static const char *s3_parts(struct json_object *record,
                            struct idem__lambda_parts *to)
{
    static const char *const places[] = {"s3.object.eTag", "s3.object.size",
                                         NULL};

    (void)record;
    idem__lambda_body_json(to, places);
    return NULL;
}

static int64_t s3_time_ms(struct json_object *unit)
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
    .is_from = s3_is_from,
    .key = s3_key,
    .parts = s3_parts,
    .time_ms = s3_time_ms,
};

/* ---- Rules that fire by the clock --------------------------------------- */

/* A rule may fire twice for one time, with two ids: the key is the rule and
 * the time. */

static bool schedule_is_from(struct json_object *event)
{
    return idem__lambda_is(idem__lambda_text(event, "detail-type"),
                           "Scheduled Event");
}

static struct idem_slice schedule_rule_of(struct json_object *event)
{
    struct json_object *resources;
    struct json_object *first;

    if (!json_object_object_get_ex(event, "resources", &resources) ||
        !json_object_is_type(resources, json_type_array) ||
        json_object_array_length(resources) == 0) {
        return idem_bytes(NULL, 0);
    }
    first = json_object_array_get_idx(resources, 0);
    if (!json_object_is_type(first, json_type_string)) {
        return idem_bytes(NULL, 0);
    }
    return idem_bytes(json_object_get_string(first),
                      (size_t)json_object_get_string_len(first));
}

static const char *schedule_key(struct json_object *event,
                                const struct idem_lambda_invocation *now,
                                struct idem__buffer *to)
{
    struct idem_slice rule = schedule_rule_of(event);

    (void)now;
    if (rule.len == 0) {
        return "the event names no rule in resources";
    }
    idem__buffer_add(to, rule.base, rule.len);
    idem__buffer_str(to, "@");
    return idem__lambda_key_text(to, idem__lambda_text(event, "time"),
                                 "the event has no time");
}

static const char *schedule_parts(struct json_object *event,
                                  struct idem__lambda_parts *to)
{
    static const char *const places[] = {"detail", NULL};

    (void)event;
    idem__lambda_body_json(to, places);
    return NULL;
}

static int64_t schedule_time_ms(struct json_object *unit)
{
    return idem__lambda_time_utc(idem__lambda_text(unit, "time"));
}

const struct idem__lambda_rule idem__lambda_schedule = {
    .row = {.name = "schedule",
            .key = "resources[0], time",
            .strength = IDEM_LAMBDA_REDRIVE_SAFE,
            .busy = "error Idem.InProgress",
            .failure = "error",
            .sample = "schedule.json"},
    .shape = IDEM__LAMBDA_EVENT,
    .is_from = schedule_is_from,
    .key = schedule_key,
    .parts = schedule_parts,
    .time_ms = schedule_time_ms,
};

/* ---- Events of an EventBridge bus --------------------------------------- */

static bool eventbridge_is_from(struct json_object *event)
{
    return idem__lambda_text(event, "detail-type").len > 0 &&
           idem__lambda_text(event, "source").len > 0;
}

static const char *eventbridge_key(struct json_object *event,
                                   const struct idem_lambda_invocation *now,
                                   struct idem__buffer *to)
{
    (void)now;
    return idem__lambda_key_text(to, idem__lambda_text(event, "id"),
                                 "the event has no id");
}

static const char *eventbridge_parts(struct json_object *event,
                                     struct idem__lambda_parts *to)
{
    static const char *const places[] = {"source", "detail-type", "detail",
                                         NULL};

    (void)event;
    idem__lambda_body_json(to, places);
    return NULL;
}

static int64_t eventbridge_time_ms(struct json_object *unit)
{
    return idem__lambda_time_utc(idem__lambda_text(unit, "time"));
}

const struct idem__lambda_rule idem__lambda_eventbridge = {
    .row = {.name = "eventbridge",
            .key = "id",
            .strength = IDEM_LAMBDA_REDELIVERY_SAFE,
            .busy = "error Idem.InProgress",
            .failure = "error",
            .sample = "eventbridge.json"},
    .shape = IDEM__LAMBDA_EVENT,
    .is_from = eventbridge_is_from,
    .key = eventbridge_key,
    .parts = eventbridge_parts,
    .time_ms = eventbridge_time_ms,
};

/* ---- Tasks of a Step Functions state machine that hands on its context object: at least "Execution" and "State" of it ---- */

static struct idem_slice stepfunctions_execution_of(struct json_object *event)
{
    struct json_object *execution = idem__lambda_object(event, "Execution");
    struct idem_slice id = idem__lambda_text(execution, "Id");

    return id.len > 0 ? id : idem__lambda_text(execution, "Name");
}

static bool stepfunctions_is_from(struct json_object *event)
{
    return stepfunctions_execution_of(event).len > 0;
}

/* The execution, whose name its starter chose, and which task of it. */
static const char *stepfunctions_key(struct json_object *event,
                                     const struct idem_lambda_invocation *now,
                                     struct idem__buffer *to)
{
    struct idem_slice execution = stepfunctions_execution_of(event);

    (void)now;
    idem__buffer_add(to, execution.base, execution.len);
    idem__buffer_str(to, "/");
    return idem__lambda_key_text(
        to, idem__lambda_text(idem__lambda_object(event, "State"), "Name"),
        "the event has no State.Name");
}

static const char *stepfunctions_parts(struct json_object *event,
                                       struct idem__lambda_parts *to)
{
    static const char *const places[] = {"Input", NULL};

    (void)event;
    idem__lambda_body_json(to, places);
    return NULL;
}

const struct idem__lambda_rule idem__lambda_stepfunctions = {
    .row = {.name = "stepfunctions",
            .key = "Execution.Id, else .Name; State.Name",
            .strength = IDEM_LAMBDA_REDRIVE_SAFE,
            .busy = "error Idem.InProgress",
            .failure = "error",
            .sample = "stepfunctions.json"},
    .shape = IDEM__LAMBDA_EVENT,
    .is_from = stepfunctions_is_from,
    .key = stepfunctions_key,
    .parts = stepfunctions_parts,
};

/* ---- Direct calls of the function --------------------------------------- */

/* A key is in the event; or, for want of one, it is the id of the request,
 * which Lambda keeps when it tries again by itself. */

/* All that has no records, of which there are many kinds that we do not know. */
static bool direct_is_from(struct json_object *event)
{
    return !json_object_object_get_ex(event, "Records", NULL);
}

static const char *direct_key(struct json_object *event,
                              const struct idem_lambda_invocation *now,
                              struct idem__buffer *to)
{
    struct json_object *member;

    if (json_object_object_get_ex(event, "idempotencyKey", &member)) {
        return idem__lambda_key_text(to,
                                     idem__lambda_text(event, "idempotencyKey"),
                                     "idempotencyKey is not a text, or empty");
    }
    return idem__lambda_key_text(to, idem_str(now->request_id),
                                 "the request has no id");
}

static const char *direct_parts(struct json_object *event,
                                struct idem__lambda_parts *to)
{
    (void)event;
    to->type = idem_str("application/json");
    to->body = to->text;
    return NULL;
}

const struct idem__lambda_rule idem__lambda_direct = {
    .row = {.name = "direct",
            .key = "idempotencyKey, else the request id",
            .strength = IDEM_LAMBDA_PER_DELIVERY,
            .busy = "error Idem.InProgress",
            .failure = "error",
            .sample = "direct.json"},
    .shape = IDEM__LAMBDA_EVENT,
    .is_from = direct_is_from,
    .key = direct_key,
    .parts = direct_parts,
};
