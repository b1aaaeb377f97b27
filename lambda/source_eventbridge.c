/* Events of an EventBridge bus. */
#include "lambda/event_time.h"
#include "lambda/source.h"

static bool is_from(struct json_object *event)
{
    return idem__lambda_text(event, "detail-type").len > 0 &&
           idem__lambda_text(event, "source").len > 0;
}

static const char *key(struct json_object *event,
                       const struct idem_lambda_invocation *now,
                       struct idem__buffer *to)
{
    (void)now;
    return idem__lambda_key_text(to, idem__lambda_text(event, "id"),
                                 "the event has no id");
}

static const char *parts(struct json_object *event,
                         struct idem__lambda_parts *to)
{
    idem__lambda_part(to, idem__lambda_text(event, "source"));
    idem__lambda_part(to, idem__lambda_text(event, "detail-type"));
    idem__lambda_part_json(to, event, "detail");
    return NULL;
}

static int64_t time_ms(struct json_object *unit)
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
    .is_from = is_from,
    .key = key,
    .parts = parts,
    .time_ms = time_ms,
};
