/* Responses of HTTP: ours, and those of handlers as they are recorded and replayed. */
#include "aws/lambda/http.h"

#include "aws/lambda/lambda.h"

#include <stdio.h>

/* ---- Answers ----------------------------------------------------------- */

void idem__lambda_header(struct idem__buffer *to, bool many, const char *name,
                         struct idem_slice value)
{
    idem__json_name(to, name);
    idem__buffer_str(to, many ? "[" : "");
    idem__json_string(to, value);
    idem__buffer_str(to, many ? "]" : "");
}

void idem__lambda_problem(struct idem__buffer *to, bool many,
                          enum idem_http_problem_kind kind, int64_t retry_s,
                          struct idem_slice error)
{
    char body[IDEM_HTTP_PROBLEM_MAX];
    char seconds[24];
    char start[32];

    idem__buffer_reset(to, to->cap);
    (void)snprintf(start, sizeof(start), "{\"statusCode\":%d",
                   idem_http_problem_of(kind)->status);
    idem__buffer_str(to, start);
    idem__json_name(to, many ? "multiValueHeaders" : "headers");
    idem__buffer_str(to, "{");
    idem__lambda_header(to, many, "Content-Type",
                        idem_str(IDEM_HTTP_PROBLEM_CONTENT));
    idem__lambda_header(to, many, "X-Content-Type-Options",
                        idem_str("nosniff"));
    if (retry_s > 0) {
        (void)snprintf(seconds, sizeof(seconds), "%lld", (long long)retry_s);
        idem__lambda_header(to, many, "Retry-After", idem_str(seconds));
    }
    idem__buffer_str(to, "}");
    idem__json_pair(to, "body",
                    idem_bytes(body,
                               idem_http_problem_body(kind, error, body)));
    idem__json_name(to, "isBase64Encoded");
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

/* True if a replay may have the header @name. */
typedef bool keeps_fn(struct idem_slice name, const char *replay_headers);

bool idem__lambda_keeps_header(struct idem_slice name,
                               const char *replay_headers)
{
    return idem__lambda_is_in_list("Content-Type", name) ||
           idem_http_header_kept(name, replay_headers);
}

/* True if any caller may get the header. A record of another front end, or of another
 * version, may have more headers than we would keep. */
static bool is_harmless(struct idem_slice name, const char *replay_headers)
{
    (void)replay_headers;
    return !idem_http_header_never(name);
}

/* Removes headers from @map, which may be NULL. True if it removed any. */
static bool strip_map(struct json_object *map, keeps_fn *keeps,
                      const char *replay_headers)
{
    bool stripped = false;

    if (map == NULL) {
        return false;
    }
    json_object_object_foreach(map, name, value)
    {
        (void)value;
        if (!keeps(idem_str(name), replay_headers)) {
            json_object_object_del(map, name);
            stripped = true;
        }
    }
    return stripped;
}

/* Removes headers of both forms, and the list of cookies of version 2. True if it removed
 * any. */
static bool strip(struct json_object *response, keeps_fn *keeps,
                  const char *replay_headers)
{
    bool stripped = json_object_object_get_ex(response, "cookies", NULL);

    json_object_object_del(response, "cookies");
    stripped |=
        strip_map(idem__json_member(response, "headers", json_type_object),
                  keeps, replay_headers);
    stripped |= strip_map(idem__json_member(response, "multiValueHeaders",
                                            json_type_object),
                          keeps, replay_headers);
    return stripped;
}

bool idem__lambda_is_response(struct json_object *value)
{
    return json_object_is_type(value, json_type_object) &&
           json_object_object_get_ex(value, "statusCode", NULL);
}

static void write_value(struct idem__buffer *to, struct json_object *value)
{
    size_t len;
    const char *text = json_object_to_json_string_length(
        value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);

    if (text == NULL) {
        to->failed = true;
    } else {
        idem__buffer_add(to, text, len);
    }
}

bool idem__lambda_keep_response(struct idem__buffer *to,
                                struct idem_slice response,
                                const char *replay_headers)
{
    struct json_object *value = idem__lambda_parse(response);
    bool stripped = idem__lambda_is_response(value) &&
                    strip(value, idem__lambda_keeps_header, replay_headers);

    idem__buffer_reset(to, to->cap);
    if (stripped) {
        write_value(to, value);
    }
    (void)json_object_put(value);
    return stripped;
}

/* ---- Marks ------------------------------------------------------------- */

bool idem__lambda_has_name(struct json_object *map, const char *name)
{
    json_object_object_foreach(map, other, value)
    {
        (void)value;
        if (idem__lambda_is_in_list(name, idem_str(other))) {
            return true;
        }
    }
    return false;
}

static bool add(struct json_object *map, bool many, const char *name,
                const char *text)
{
    struct json_object *value = json_object_new_string(text);
    struct json_object *values;

    if (!many) {
        return json_object_object_add(map, name, value) == 0;
    }
    values = json_object_new_array();
    return json_object_array_add(values, value) == 0 &&
           json_object_object_add(map, name, values) == 0;
}

/* Returns the headers of @response, and adds an object for them if it has none. NULL:
 * memory ran out. */
static struct json_object *map_of(struct json_object *response, bool *ret_many)
{
    struct json_object *map =
        idem__json_member(response, "multiValueHeaders", json_type_object);

    *ret_many = map != NULL;
    if (map == NULL) {
        map = idem__json_member(response, "headers", json_type_object);
    }
    if (map == NULL) {
        map = json_object_new_object();
        if (json_object_object_add(response, "headers", map) != 0) {
            return NULL;
        }
    }
    return map;
}

/* Marks a replay. As at the gateway, no cache may keep it unless the response allows
 * it. */
static bool mark_replay(struct json_object *response)
{
    bool many;
    struct json_object *map = map_of(response, &many);

    return map != NULL && add(map, many, "Idempotent-Replayed", "true") &&
           (idem__lambda_has_name(map, "Cache-Control") ||
            add(map, many, "Cache-Control", "no-store"));
}

static bool mark_unrecorded(struct json_object *response)
{
    bool many;
    struct json_object *map = map_of(response, &many);

    return map != NULL && add(map, many, "Idempotency-Recorded", "false");
}

static void rewrite(struct idem__buffer *to, struct idem_slice response,
                    bool (*change)(struct json_object *response))
{
    struct json_object *value = idem__lambda_parse(response);

    idem__buffer_reset(to, to->cap);
    if (!idem__lambda_is_response(value)) {
        idem__buffer_add(to, response.base, response.len);
    } else if (change(value)) {
        write_value(to, value);
    } else {
        to->failed = true;
    }
    (void)json_object_put(value);
}

static bool make_replay(struct json_object *response)
{
    (void)strip(response, is_harmless, /* replay_headers= */ NULL);
    return mark_replay(response);
}

void idem__lambda_replay_response(struct idem__buffer *to,
                                  struct idem_slice response)
{
    rewrite(to, response, make_replay);
}

void idem__lambda_unrecorded_response(struct idem__buffer *to,
                                      struct idem_slice response)
{
    rewrite(to, response, mark_unrecorded);
}
