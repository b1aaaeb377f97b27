/* The part of an event that is kept with its record.
 *
 * An event of HTTP brings along what its sender is trusted by: Authorization, cookies,
 * API keys, the claims of a token. They have no place in a store that people read, so
 * of such an event only members that are named here are kept. */
#include "aws/lambda/input.h"

#include "aws/lambda/list.h"

static const char kept_headers[] =
    "Idempotency-Key,Content-Type,Content-Encoding,Content-Language";

/* A copy of the members of @from that @names lists, for the caller to put. */
static struct json_object *pick(struct json_object *from, const char *names)
{
    struct json_object *to = json_object_new_object();
    struct json_object_iterator at = json_object_iter_begin(from);
    struct json_object_iterator end = json_object_iter_end(from);

    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        const char *name = json_object_iter_peek_name(&at);

        if (idem__lambda_is_in_list(names, idem_str(name))) {
            (void)json_object_object_add(to, name,
                                         json_object_get(
                                             json_object_iter_peek_value(&at)));
        }
    }
    return to;
}

/* The member @name of @from, if it is an object, picked from likewise. */
static void pick_into(struct json_object *to, struct json_object *from,
                      const char *name, const char *names)
{
    struct json_object *member = idem__lambda_object(from, name);

    if (member != NULL) {
        (void)json_object_object_add(to, name, pick(member, names));
    }
}

static void keep_request(struct idem__buffer *to, struct json_object *event)
{
    struct json_object *kept =
        pick(event, "version,resource,routeKey,httpMethod,path,rawPath,"
                    "pathParameters,queryStringParameters,"
                    "multiValueQueryStringParameters,rawQueryString,body,"
                    "isBase64Encoded");
    struct json_object *from = idem__lambda_object(event, "requestContext");
    struct json_object *context = json_object_new_object();
    const char *text;
    size_t len;

    pick_into(kept, event, "headers", kept_headers);
    pick_into(kept, event, "multiValueHeaders", kept_headers);
    pick_into(context, from, "http", "method,path");
    pick_into(context, from, "elb", "targetGroupArn");
    (void)json_object_object_add(kept, "requestContext", context);
    text = json_object_to_json_string_length(
        kept, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
    if (text == NULL) {
        to->failed = true;
    } else {
        idem__buffer_add(to, text, len);
    }
    (void)json_object_put(kept);
}

void idem__lambda_input(struct idem__buffer *to,
                        const struct idem__lambda_unit *unit)
{
    bool is_record = unit->rule->shape != IDEM__LAMBDA_EVENT;

    idem__buffer_reset(to, /* keep= */ 1 << 20);
    if (unit->rule->shape == IDEM__LAMBDA_HTTP) {
        keep_request(to, unit->json);
        return;
    }
    idem__buffer_str(to, is_record ? "{\"Records\":[" : "");
    idem__buffer_add(to, unit->text.base, unit->text.len);
    idem__buffer_str(to, is_record ? "]}" : "");
}
