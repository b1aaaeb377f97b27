/* The parts that the sources of HTTP share. */
#include "aws/lambda/http.h"

#include "aws/lambda/text.h"
#include "base/base64.h"

#include <stdio.h>
#include <strings.h>

const char idem__lambda_no_header[] = "the header Idempotency-Key is missing";

/* ---- The key ----------------------------------------------------------- */

static const char *add_key(struct idem__buffer *key, struct idem_slice value)
{
    char text[IDEM_KEY_MAX];
    size_t len;

    if (idem_http_key(value, text, &len, NULL) != 0) {
        return "the Idempotency-Key is not one: 1 to 255 visible ASCII "
               "characters, best in quotes";
    }
    idem__buffer_add(key, text, len);
    return NULL;
}

/* What was found of a header so far: one value, as often as it is there. */
struct search {
    const char *name;
    struct idem_slice value;
    size_t found;
    bool is_odd; /* It is not a text. */
    bool is_two;
};

static void look_at(struct search *search, struct json_object *value)
{
    struct idem_slice s;

    if (!json_object_is_type(value, json_type_string)) {
        search->is_odd = true;
        return;
    }
    s = idem_bytes(json_object_get_string(value),
                   (size_t)json_object_get_string_len(value));
    if (search->found > 0 && (s.len != search->value.len ||
                              memcmp(s.base, search->value.base, s.len) != 0)) {
        search->is_two = true;
    }
    search->value = s;
    search->found++;
}

static void search_map(struct search *search, struct json_object *map)
{
    struct json_object_iterator at;
    struct json_object_iterator end;
    size_t i;

    if (map == NULL) {
        return;
    }
    at = json_object_iter_begin(map);
    end = json_object_iter_end(map);
    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        struct json_object *value = json_object_iter_peek_value(&at);

        if (strcasecmp(json_object_iter_peek_name(&at), search->name) != 0) {
            continue;
        }
        if (!json_object_is_type(value, json_type_array)) {
            look_at(search, value);
            continue;
        }
        for (i = 0; i < json_object_array_length(value); i++) {
            look_at(search, json_object_array_get_idx(value, i));
        }
    }
}

/* Of values that are sent twice "headers" has only the last one. */
static struct search search_header(struct json_object *event, const char *name)
{
    struct search search = {.name = name};

    search_map(&search, idem__lambda_object(event, "headers"));
    search_map(&search, idem__lambda_object(event, "multiValueHeaders"));
    return search;
}

const char *idem__lambda_header_key(struct json_object *event,
                                    const struct idem_lambda_invocation *now,
                                    struct idem__buffer *key)
{
    struct search search = search_header(event, "idempotency-key");

    (void)now;
    if (search.is_odd) {
        return "the Idempotency-Key is not a text";
    }
    if (search.is_two) {
        return "there is more than one Idempotency-Key";
    }
    return search.found == 0 ? idem__lambda_no_header
                             : add_key(key, search.value);
}

/* ---- The fingerprint --------------------------------------------------- */

/* NULL, or why not. Two content types say as little of the body as none. */
static const char *add_body(struct json_object *event,
                            struct idem__lambda_parts *parts)
{
    struct idem_slice body = idem__lambda_text(event, "body");
    struct search type = search_header(event, "content-type");
    struct json_object *encoded;

    if (!json_object_object_get_ex(event, "isBase64Encoded", &encoded) ||
        !json_object_get_boolean(encoded)) {
        idem__lambda_message(parts, body);
    } else if (!idem__lambda_message_base64(parts, body)) {
        return parts->decoded.failed ? "memory ran out"
                                     : "the body is not base64";
    }
    if (!type.is_odd && !type.is_two) {
        parts->type = type.value;
    }
    return NULL;
}

struct idem_slice idem__lambda_method_1(struct json_object *event)
{
    return idem__lambda_text(event, "httpMethod");
}

const char *idem__lambda_parts_1(struct json_object *event,
                                 struct idem__lambda_parts *parts)
{
    static const char *const query[] = {"queryStringParameters",
                                        "multiValueQueryStringParameters",
                                        NULL};

    idem__lambda_part(parts, idem__lambda_method_1(event));
    idem__lambda_part(parts, idem__lambda_text(event, "path"));
    idem__lambda_part_json(parts, query);
    return add_body(event, parts);
}

static struct json_object *http_of(struct json_object *event)
{
    return idem__lambda_object(idem__lambda_object(event, "requestContext"),
                               "http");
}

struct idem_slice idem__lambda_method_2(struct json_object *event)
{
    return idem__lambda_text(http_of(event), "method");
}

const char *idem__lambda_parts_2(struct json_object *event,
                                 struct idem__lambda_parts *parts)
{
    idem__lambda_part(parts, idem__lambda_method_2(event));
    idem__lambda_part(parts, idem__lambda_text(event, "rawPath"));
    idem__lambda_part(parts, idem__lambda_text(event, "rawQueryString"));
    return add_body(event, parts);
}

/* ---- Answers ----------------------------------------------------------- */

static void add_header(struct idem__buffer *to, bool many, const char *name,
                       const char *value)
{
    idem__lambda_member_name(to, name);
    idem__buffer_str(to, many ? "[" : "");
    idem__lambda_string(to, idem_str(value));
    idem__buffer_str(to, many ? "]" : "");
}

bool idem__lambda_wants_many(struct json_object *event)
{
    return idem__lambda_object(event, "multiValueHeaders") != NULL &&
           idem__lambda_object(event, "headers") == NULL;
}

void idem__lambda_problem(struct idem__buffer *to, struct json_object *event,
                          enum idem_http_problem_kind kind, int64_t retry_s)
{
    bool many = idem__lambda_wants_many(event);
    char body[IDEM_HTTP_PROBLEM_MAX];
    char seconds[24];
    char start[32];

    idem__buffer_reset(to, to->cap);
    (void)snprintf(start, sizeof(start), "{\"statusCode\":%d",
                   idem_http_problem_of(kind)->status);
    idem__buffer_str(to, start);
    idem__lambda_member_name(to, many ? "multiValueHeaders" : "headers");
    idem__buffer_str(to, "{");
    add_header(to, many, "Content-Type", IDEM_HTTP_PROBLEM_CONTENT);
    add_header(to, many, "X-Content-Type-Options", "nosniff");
    if (retry_s > 0) {
        (void)snprintf(seconds, sizeof(seconds), "%lld", (long long)retry_s);
        add_header(to, many, "Retry-After", seconds);
    }
    idem__buffer_str(to, "}");
    idem__lambda_member(to, "body",
                        idem_bytes(body, idem_http_problem_body(
                                             kind, idem_bytes(NULL, 0), body)));
    idem__lambda_member_name(to, "isBase64Encoded");
    idem__buffer_str(to, "false}");
}

/* ---- Responses of handlers --------------------------------------------- */

int idem__lambda_status_of(struct idem_slice response)
{
    struct json_object *value = idem__lambda_parse(response);
    struct json_object *status;
    int found = 200;

    if (json_object_object_get_ex(value, "statusCode", &status)) {
        found = json_object_get_int(status);
    }
    (void)json_object_put(value);
    return found;
}
