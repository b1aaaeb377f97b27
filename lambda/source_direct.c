/* Whoever calls the function itself. A key is in the event; or, for want of one, it
 * is the id of the request, which Lambda keeps when it tries again by itself. */
#include "lambda/source.h"

/* All that has no records, of which there are many kinds that we do not know. */
static bool is_from(struct json_object *event)
{
    return !json_object_object_get_ex(event, "Records", NULL);
}

static const char *key(struct json_object *event,
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
                                 "there is no request id");
}

static const char *parts(struct json_object *event,
                         struct idem__lambda_parts *to)
{
    size_t len;
    const char *text = json_object_to_json_string_length(
        event, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);

    idem__lambda_part(to, idem_bytes(text, text == NULL ? 0 : len));
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
    .is_from = is_from,
    .key = key,
    .parts = parts,
};
