/* Rules that fire by the clock. A rule may fire twice for one time, with two ids:
 * the key is the rule and the time. */
#include "lambda/event_time.h"
#include "lambda/source.h"

static bool is_from(struct json_object *event)
{
    return idem__lambda_is(idem__lambda_text(event, "detail-type"),
                           "Scheduled Event");
}

static struct idem_slice rule_of(struct json_object *event)
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

static const char *key(struct json_object *event,
                       const struct idem_lambda_invocation *now,
                       struct idem__buffer *to)
{
    struct idem_slice rule = rule_of(event);

    (void)now;
    if (rule.len == 0) {
        return "the event names no rule in resources";
    }
    idem__buffer_add(to, rule.base, rule.len);
    idem__buffer_str(to, "@");
    return idem__lambda_key_text(to, idem__lambda_text(event, "time"),
                                 "the event has no time");
}

static const char *parts(struct json_object *event,
                         struct idem__lambda_parts *to)
{
    idem__lambda_part_json(to, event, "detail");
    return NULL;
}

static int64_t time_ms(struct json_object *unit)
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
    .is_from = is_from,
    .key = key,
    .parts = parts,
    .time_ms = time_ms,
};
