/* What the sources that speak HTTP share. */
#include "lambda/http.h"

#include "base/base64_padded.h"
#include "lambda/text.h"

#include <stdio.h>
#include <strings.h>

#define HEADER "idempotency-key"

const char idem__lambda_no_header[] = "the header Idempotency-Key is missing";

/* ---- The key ----------------------------------------------------------- */

static struct idem_slice trim(struct idem_slice s)
{
    const char *p = s.base;

    while (s.len > 0 && (*p == ' ' || *p == '\t')) {
        p++;
        s.len--;
    }
    while (s.len > 0 && (p[s.len - 1] == ' ' || p[s.len - 1] == '\t')) {
        s.len--;
    }
    return idem_bytes(p, s.len);
}

/* A structured header's string: a backslash stands before quotes and itself. */
static const char *add_quoted(struct idem__buffer *key, struct idem_slice s)
{
    const char *p = s.base;
    size_t i;

    for (i = 1; i + 1 < s.len; i++) {
        if (p[i] == '\\') {
            i++;
            if (i + 1 >= s.len || (p[i] != '"' && p[i] != '\\')) {
                return "the Idempotency-Key has a stray backslash";
            }
        } else if (p[i] == '"') {
            return "the Idempotency-Key has something behind its quotes";
        }
        if (p[i] < 0x20 || p[i] > 0x7e) {
            return "the Idempotency-Key has a byte that is not printable";
        }
        idem__buffer_add(key, p + i, 1);
    }
    return NULL;
}

static const char *add_plain(struct idem__buffer *key, struct idem_slice s)
{
    const char *p = s.base;
    size_t i;

    for (i = 0; i < s.len; i++) {
        if (p[i] == ',') {
            return "there is more than one Idempotency-Key";
        }
        if (p[i] <= 0x20 || p[i] > 0x7e || p[i] == '"') {
            return "the Idempotency-Key has a byte that it must not have";
        }
    }
    idem__buffer_add(key, p, s.len);
    return NULL;
}

static const char *add_key(struct idem__buffer *key, struct idem_slice value)
{
    struct idem_slice s = trim(value);
    const char *p = s.base;
    size_t before = key->len;
    const char *why;

    if (s.len >= 2 && p[0] == '"' && p[s.len - 1] == '"') {
        why = add_quoted(key, s);
    } else {
        why = add_plain(key, s);
    }
    if (why != NULL) {
        return why;
    }
    if (key->len == before) {
        return "the Idempotency-Key is empty";
    }
    return key->len - before > IDEM_KEY_MAX ? "the Idempotency-Key is too long"
                                            : NULL;
}

/* What was found of the header so far: one value, as often as it is there. */
struct search {
    struct idem_slice value;
    size_t found;
    const char *why;
};

static void look_at(struct search *search, struct json_object *value)
{
    struct idem_slice s;

    if (!json_object_is_type(value, json_type_string)) {
        search->why = "the Idempotency-Key is not a text";
        return;
    }
    s = idem_bytes(json_object_get_string(value),
                   (size_t)json_object_get_string_len(value));
    if (search->found > 0 && (s.len != search->value.len ||
                              memcmp(s.base, search->value.base, s.len) != 0)) {
        search->why = "there is more than one Idempotency-Key";
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

        if (strcasecmp(json_object_iter_peek_name(&at), HEADER) != 0) {
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
const char *idem__lambda_header_key(struct json_object *event,
                                    const struct idem_lambda_invocation *now,
                                    struct idem__buffer *key)
{
    struct search search = {.found = 0};

    (void)now;
    search_map(&search, idem__lambda_object(event, "headers"));
    search_map(&search, idem__lambda_object(event, "multiValueHeaders"));
    if (search.why != NULL) {
        return search.why;
    }
    return search.found == 0 ? idem__lambda_no_header
                             : add_key(key, search.value);
}

/* ---- The fingerprint --------------------------------------------------- */

const char *idem__lambda_body_part(struct json_object *event,
                                   struct idem__lambda_parts *parts)
{
    struct idem_slice body = idem__lambda_text(event, "body");
    struct json_object *encoded;
    uint8_t *room;
    size_t len;

    if (!json_object_object_get_ex(event, "isBase64Encoded", &encoded) ||
        !json_object_get_boolean(encoded)) {
        idem__lambda_part(parts, body);
        return NULL;
    }
    room = idem__buffer_room(&parts->decoded,
                             idem__base64_padded_max(body.len) + 1);
    if (room == NULL) {
        return "there is no memory";
    }
    if (idem__base64_padded_read(body, room, &len) != 0) {
        return "the body is not base64";
    }
    idem__lambda_part(parts, idem_bytes(room, len));
    return NULL;
}

struct idem_slice idem__lambda_method_1(struct json_object *event)
{
    return idem__lambda_text(event, "httpMethod");
}

const char *idem__lambda_parts_1(struct json_object *event,
                                 struct idem__lambda_parts *parts)
{
    idem__lambda_part(parts, idem__lambda_method_1(event));
    idem__lambda_part(parts, idem__lambda_text(event, "path"));
    idem__lambda_part_json(parts, event, "queryStringParameters");
    idem__lambda_part_json(parts, event, "multiValueQueryStringParameters");
    return idem__lambda_body_part(event, parts);
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
    return idem__lambda_body_part(event, parts);
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

static void add_body(struct idem__buffer *to, int status, const char *title,
                     const char *detail)
{
    struct idem__buffer body = {0};
    char number[16];

    (void)snprintf(number, sizeof(number), "%d", status);
    idem__buffer_str(&body, "{");
    idem__lambda_member(&body, "title", idem_str(title));
    idem__lambda_member_name(&body, "status");
    idem__buffer_str(&body, number);
    idem__lambda_member(&body, "detail", idem_str(detail));
    idem__buffer_str(&body, "}");
    idem__lambda_member(to, "body", idem__buffer_slice(&body));
    to->failed = to->failed || body.failed;
    idem__buffer_free(&body);
}

/* A balancer that sends many values takes no others. */
static bool wants_many(struct json_object *event)
{
    return idem__lambda_object(event, "multiValueHeaders") != NULL &&
           idem__lambda_object(event, "headers") == NULL;
}

void idem__lambda_problem(struct idem__buffer *to, struct json_object *event,
                          int status, const char *title, const char *detail,
                          bool retry)
{
    bool many = wants_many(event);
    char number[32];

    idem__buffer_reset(to, to->cap);
    (void)snprintf(number, sizeof(number), "{\"statusCode\":%d", status);
    idem__buffer_str(to, number);
    idem__lambda_member_name(to, many ? "multiValueHeaders" : "headers");
    idem__buffer_str(to, "{");
    add_header(to, many, "Content-Type", "application/problem+json");
    add_header(to, many, "X-Content-Type-Options", "nosniff");
    if (retry) {
        add_header(to, many, "Retry-After", "1");
    }
    idem__buffer_str(to, "}");
    add_body(to, status, title, detail);
    idem__lambda_member_name(to, "isBase64Encoded");
    idem__buffer_str(to, "false}");
}

/* ---- Responses of handlers --------------------------------------------- */

static bool mark(struct json_object *response)
{
    static const char name[] = "Idempotent-Replayed";
    struct json_object *many =
        idem__lambda_object(response, "multiValueHeaders");
    struct json_object *map =
        many != NULL ? many : idem__lambda_object(response, "headers");
    struct json_object *value = json_object_new_string("true");
    struct json_object *values;

    if (map == NULL) {
        map = json_object_new_object();
        if (json_object_object_add(response, "headers", map) != 0) {
            return false;
        }
    }
    if (many == NULL) {
        return json_object_object_add(map, name, value) == 0;
    }
    values = json_object_new_array();
    return json_object_array_add(values, value) == 0 &&
           json_object_object_add(map, name, values) == 0;
}

void idem__lambda_mark_replay(struct idem__buffer *to,
                              struct idem_slice response)
{
    struct json_object *value = idem__lambda_parse(response);
    const char *text;
    size_t len;

    idem__buffer_reset(to, to->cap);
    if (json_object_is_type(value, json_type_object) &&
        json_object_object_get_ex(value, "statusCode", NULL) && mark(value)) {
        text = json_object_to_json_string_length(
            value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE,
            &len);
        idem__buffer_add(to, text, text == NULL ? 0 : len);
    } else {
        idem__buffer_add(to, response.base, response.len);
    }
    (void)json_object_put(value);
}

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
