/* The table of sources, and what its rows share. */
#include "aws/lambda/source.h"

#include "base/base64.h"
#include "key/canonical.h"

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

void idem__lambda_message(struct idem__lambda_parts *parts,
                          struct idem_slice message)
{
    parts->type = idem_bytes(NULL, 0);
    parts->body = message;
}

bool idem__lambda_message_base64(struct idem__lambda_parts *parts,
                                 struct idem_slice message)
{
    uint8_t *room =
        idem__buffer_room(&parts->decoded, idem__base64_max(message.len) + 1);
    size_t len;
    bool is_base64 = room != NULL &&
                     idem__base64_read(IDEM__BASE64, message, room, &len) == 0;

    idem__lambda_message(parts, is_base64 ? idem_bytes(room, len) : message);
    return is_base64;
}

/* The member of the object @at whose name is @name, or 0. */
static uint32_t member_of(const struct idem__tree *tree, uint32_t at,
                          struct idem_slice name)
{
    uint32_t end = idem__tree_at(tree, at)->end;
    uint32_t i;

    for (i = at + 1; i < end; i = idem__tree_at(tree, i)->end) {
        const struct idem__tree_node *node = idem__tree_at(tree, i);
        struct idem_slice found = idem__tree_name(tree, node);

        if (node->named && found.len == name.len &&
            memcmp(found.base, name.base, name.len) == 0) {
            return i;
        }
    }
    return 0;
}

/* Appends [VALUE], or [] where the unit has nothing at @place. */
static void add_place(struct idem__buffer *to, const struct idem__tree *tree,
                      const char *place)
{
    struct idem_slice raw;
    uint32_t at = 0;

    do {
        size_t len = strcspn(place, ".");

        at = member_of(tree, at, idem_bytes(place, len));
        place += len + (place[len] == '.');
    } while (at != 0 && *place != '\0');
    raw = at == 0 ? idem_bytes(NULL, 0)
                  : idem__tree_raw(tree, idem__tree_at(tree, at));
    idem__buffer_str(to, "[");
    idem__buffer_add(to, raw.base, raw.len);
    idem__buffer_str(to, "]");
}

/* Appends the array of what @parts->text has at @places. */
static void add_places(struct idem__buffer *to,
                       const struct idem__lambda_parts *parts,
                       const char *const *places)
{
    struct idem__tree tree = {.halves = false};
    size_t i;

    if (idem__tree_read(&tree, parts->text, NULL) != 0) {
        to->failed = true; /* It was read before: memory ran out. */
    }
    idem__buffer_str(to, "[");
    for (i = 0; !to->failed && places[i] != NULL; i++) {
        idem__buffer_str(to, i == 0 ? "" : ",");
        add_place(to, &tree, places[i]);
    }
    idem__buffer_str(to, "]");
    idem__tree_free(&tree);
}

void idem__lambda_part_json(struct idem__lambda_parts *parts,
                            const char *const *places)
{
    struct idem__tree tree = {.halves = false};
    struct idem__buffer raw = {.len = 0};
    int rc = IDEM_ENOMEM;

    add_places(&raw, parts, places);
    if (!raw.failed) {
        rc = idem__tree_read(&tree, idem__buffer_slice(&raw), NULL);
    }
    if (rc == 0) {
        rc = idem__canonical(&tree, 0, IDEM_FLAVOUR_NONE, &parts->json, NULL);
    }
    if (rc == IDEM_EINVALID) {
        parts->json.len = 0;
        idem__buffer_add(&parts->json, raw.base, raw.len);
    }
    parts->json.failed = parts->json.failed || rc == IDEM_ENOMEM;
    idem__lambda_part(parts, idem__buffer_slice(&parts->json));
    idem__buffer_free(&raw);
    idem__tree_free(&tree);
}

void idem__lambda_body_json(struct idem__lambda_parts *parts,
                            const char *const *places)
{
    add_places(&parts->decoded, parts, places);
    parts->type = idem_str("application/json");
    parts->body = idem__buffer_slice(&parts->decoded);
}
