/* The table of sources, and what its rows share. */
#include "aws/lambda/source.h"

/* In the order in which they are tried: the last one takes what is left. */
static const struct idem__lambda_rule *const rules[] = {
    &idem__lambda_alb,           &idem__lambda_url,
    &idem__lambda_http,          &idem__lambda_rest,
    &idem__lambda_sqs_fifo,      &idem__lambda_sqs,
    &idem__lambda_sns,           &idem__lambda_kinesis,
    &idem__lambda_dynamodb,      &idem__lambda_s3,
    &idem__lambda_schedule,      &idem__lambda_eventbridge,
    &idem__lambda_stepfunctions, &idem__lambda_direct,
};

#define RULES_LEN (sizeof(rules) / sizeof(rules[0]))

const struct idem_lambda_source *idem_lambda_source_at(size_t index)
{
    return index < RULES_LEN ? &rules[index]->row : NULL;
}

const char *idem_lambda_strength_name(enum idem_lambda_strength strength)
{
    switch (strength) {
    case IDEM_LAMBDA_REDRIVE_SAFE:
        return "redrive-safe";
    case IDEM_LAMBDA_REDELIVERY_SAFE:
        return "redelivery-safe";
    case IDEM_LAMBDA_PER_DELIVERY:
        return "per-delivery";
    }
    return NULL;
}

const struct idem__lambda_rule *idem__lambda_rule_named(const char *name)
{
    size_t i;

    for (i = 0; i < RULES_LEN; i++) {
        if (strcmp(rules[i]->row.name, name) == 0) {
            return rules[i];
        }
    }
    return NULL;
}

const struct idem__lambda_rule *idem__lambda_rule_of(struct json_object *event)
{
    size_t i;

    for (i = 0; i < RULES_LEN; i++) {
        if (rules[i]->is_from(event)) {
            return rules[i];
        }
    }
    return NULL;
}

/* ---- For the rows ------------------------------------------------------ */

struct json_object *idem__lambda_first(struct json_object *event)
{
    struct json_object *records;

    if (!json_object_object_get_ex(event, "Records", &records) ||
        !json_object_is_type(records, json_type_array) ||
        json_object_array_length(records) == 0) {
        return NULL;
    }
    return json_object_array_get_idx(records, 0);
}

bool idem__lambda_is(struct idem_slice text, const char *want)
{
    return text.len == strlen(want) && memcmp(text.base, want, text.len) == 0;
}

/* SNS writes it with a capital letter. */
bool idem__lambda_records_of(struct json_object *event, const char *source)
{
    struct json_object *first = idem__lambda_first(event);

    return first != NULL &&
           (idem__lambda_is(idem__lambda_text(first, "eventSource"), source) ||
            idem__lambda_is(idem__lambda_text(first, "EventSource"), source));
}

struct idem_slice idem__lambda_after(struct idem_slice text, char mark)
{
    const char *base = text.base;
    size_t at = text.len;

    while (at > 0 && base[at - 1] != mark) {
        at--;
    }
    return at == 0 ? text : idem_bytes(base + at, text.len - at);
}

const char *idem__lambda_key_text(struct idem__buffer *key,
                                  struct idem_slice text, const char *why)
{
    idem__buffer_add(key, text.base, text.len);
    return text.len == 0 ? why : NULL;
}

void idem__lambda_part(struct idem__lambda_parts *parts, struct idem_slice part)
{
    parts->part[parts->len++] = part;
}

void idem__lambda_part_json(struct idem__lambda_parts *parts,
                            struct json_object *object, const char *name)
{
    struct json_object *member;
    const char *text;
    size_t len;

    if (!json_object_object_get_ex(object, name, &member)) {
        idem__lambda_part(parts, idem_bytes(NULL, 0));
        return;
    }
    text = json_object_to_json_string_length(
        member, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
    idem__lambda_part(parts, idem_bytes(text, text == NULL ? 0 : len));
}
