/* Turns results on record into responses for Lambda, and responses of HTTP handlers into
 * results. */
#include "aws/lambda/http.h"

#include "aws/lambda/lambda.h"
#include "base/base64.h"
#include "base/bytes.h"

#include <stdio.h>

/* Returns the bytes of standard output in one piece. A caller never gets those of standard
 * error. @joined holds the bytes if there were several pieces; the caller frees it. */
static struct idem_slice output_of(const struct idem_form *form,
                                   struct idem__buffer *joined)
{
    struct idem_slice rest = form->bytes;
    struct idem_slice piece;
    enum idem_stream stream;

    if (!form->framed) {
        return rest;
    }
    while (idem_form_next(form, &rest, &stream, &piece)) {
        if (stream == IDEM_STREAM_STDOUT) {
            idem__buffer_add(joined, piece.base, piece.len);
        }
    }
    return idem__buffer_slice(joined);
}

/* ---- For an event ------------------------------------------------------ */

static void add_base64(struct idem__buffer *to, struct idem_slice bytes)
{
    idem__buffer_str(to, "\"");
    idem__buffer_base64(to, bytes);
    idem__buffer_str(to, "\"");
}

void idem__lambda_form_value(struct idem__buffer *to,
                             const struct idem_form *form)
{
    struct idem__buffer joined = {0};
    struct idem_slice output = output_of(form, &joined);
    bool may_be_json = form->kind == IDEM_FORM_JSON || idem_form_is_plain(form);

    idem__buffer_reset(to, to->cap);
    if (joined.failed) {
        to->failed = true;
    } else if (output.len == 0) {
        idem__buffer_str(to, "null");
    } else if (may_be_json && idem__lambda_is_json(output)) {
        idem__buffer_add(to, output.base, output.len);
    } else if (idem__utf8_is(output)) {
        idem__json_string(to, output);
    } else {
        idem__buffer_str(to, "{\"body\":");
        add_base64(to, output);
        idem__buffer_str(to, ",\"isBase64Encoded\":true}");
    }
    idem__buffer_free(&joined);
}

/* ---- For HTTP ---------------------------------------------------------- */

static bool has_field(struct idem_slice head, const char *wanted)
{
    struct idem_slice name, value;
    int code;

    while (idem_http_head_next(&head, &name, &value, &code)) {
        if (idem__lambda_is_in_list(wanted, name)) {
            return true;
        }
    }
    return false;
}

static void add_headers(struct idem__buffer *to, bool many,
                        const struct idem_form *form, bool replay)
{
    struct idem_slice type = idem_form_content_type(form);

    if (type.len > 0) {
        idem__lambda_header(to, many, "Content-Type", type);
    }
    if (type.len > 0 && idem_form_is_plain(form)) {
        idem__lambda_header(to, many, "X-Content-Type-Options",
                            idem_str("nosniff"));
    }
    idem__json_head(to, form->headers, many);
    if (replay) {
        idem__lambda_header(to, many, "Idempotent-Replayed", idem_str("true"));
    }
    if (replay && !has_field(form->headers, "Cache-Control")) {
        idem__lambda_header(to, many, "Cache-Control", idem_str("no-store"));
    }
}

static void add_body(struct idem__buffer *to, const struct idem_form *form)
{
    struct idem__buffer joined = {0};
    struct idem_slice body = output_of(form, &joined);
    bool is_text = idem__utf8_is(body);

    idem__json_name(to, "body");
    if (is_text) {
        idem__json_string(to, body);
    } else {
        add_base64(to, body);
    }
    idem__json_name(to, "isBase64Encoded");
    idem__buffer_str(to, is_text ? "false" : "true");
    to->failed |= joined.failed;
    idem__buffer_free(&joined);
}

void idem__lambda_form_answer(struct idem__buffer *to, bool many,
                              const struct idem_form *form, bool replay)
{
    char start[32];

    idem__buffer_reset(to, to->cap);
    (void)snprintf(start, sizeof(start), "{\"statusCode\":%d",
                   form->http_status);
    idem__buffer_str(to, start);
    idem__json_name(to, many ? "multiValueHeaders" : "headers");
    idem__buffer_str(to, "{");
    add_headers(to, many, form, replay);
    idem__buffer_str(to, "}");
    add_body(to, form);
    idem__buffer_str(to, "}");
}

/* ---- Responses of handlers ---------------------------------------------- */

/* A result under construction. */
struct record {
    struct idem_http_head head;
    struct idem_slice type; /* Its content type; points into the response. */
    bool named;             /* The table names its status complete. */
    const char *replay_headers;
};

/* Reads a text, or a value that Lambda turns into a text. */
static bool read_text(struct json_object *value, struct idem_slice *ret_text)
{
    switch (json_object_get_type(value)) {
    case json_type_string:
        *ret_text = idem_bytes(json_object_get_string(value),
                               (size_t)json_object_get_string_len(value));
        return true;
    case json_type_int:
    case json_type_double:
    case json_type_boolean:
        *ret_text = idem_str(json_object_get_string(value));
        return true;
    case json_type_null:
    case json_type_object:
    case json_type_array:
        break;
    }
    return false;
}

/* Adds a header. False: the head cannot hold it. Leaves out a header that is not valid,
 * which no server would send. */
static bool add_one(struct record *record, const char *name,
                    struct json_object *value)
{
    struct idem_slice text;

    if (!read_text(value, &text) ||
        !idem_http_header_valid(idem_str(name), text)) {
        return true;
    }
    if (idem__lambda_is_in_list("Content-Type", idem_str(name))) {
        if (record->type.len > 0 || text.len > 255) {
            return false;
        }
        record->type = text;
        return true;
    }
    return !idem__lambda_keeps_header(idem_str(name), record->replay_headers) ||
           idem_http_head_add(&record->head, idem_str(name), text) == 0;
}

static bool add_all(struct record *record, const char *name,
                    struct json_object *value)
{
    size_t i;

    if (!json_object_is_type(value, json_type_array)) {
        return add_one(record, name, value);
    }
    for (i = 0; i < json_object_array_length(value); i++) {
        if (!add_one(record, name, json_object_array_get_idx(value, i))) {
            return false;
        }
    }
    return true;
}

/* Adds the headers of @map, except those that @other has, too. */
static bool add_map(struct record *record, struct json_object *map,
                    struct json_object *other)
{
    if (map == NULL) {
        return true;
    }
    json_object_object_foreach(map, name, value)
    {
        if ((other == NULL || !idem__lambda_has_name(other, name)) &&
            !add_all(record, name, value)) {
            return false;
        }
    }
    return true;
}

static bool is_base64(struct json_object *response)
{
    struct json_object *value;

    return json_object_object_get_ex(response, "isBase64Encoded", &value) &&
           json_object_get_boolean(value);
}

static bool read_body(struct idem__buffer *to, struct json_object *response)
{
    struct json_object *value;
    struct idem_slice body;
    uint8_t *room;
    size_t len;

    if (!json_object_object_get_ex(response, "body", &value) || value == NULL) {
        return true;
    }
    if (!json_object_is_type(value, json_type_string)) {
        return false;
    }
    body = idem__json_text_of(response, "body");
    if (!is_base64(response)) {
        idem__buffer_add(to, body.base, body.len);
        return !to->failed;
    }
    room = idem__buffer_room(to, idem__base64_max(body.len) + 1);
    if (room == NULL ||
        idem__base64_read(IDEM__BASE64, body, room, &len) != 0) {
        return false;
    }
    to->len += len;
    return true;
}

/* True if @response has only members that a result can hold. The reason phrase of a load
 * balancer may be dropped: it adds nothing to the status. */
static bool is_plain(struct json_object *response)
{
    static const char names[] = "statusCode,statusDescription,headers,"
                                "multiValueHeaders,cookies,body,"
                                "isBase64Encoded";

    json_object_object_foreach(response, name, value)
    {
        (void)value;
        if (!idem__lambda_is_in_list(names, idem_str(name))) {
            return false;
        }
    }
    return true;
}

/* Writes the head, the content type and the body to @to, one after the other. */
static bool take_apart(struct idem__buffer *to, struct json_object *response,
                       struct record *record, struct idem_result *result)
{
    struct json_object *many =
        idem__json_member(response, "multiValueHeaders", json_type_object);
    struct json_object *status;
    uint8_t *room = idem__buffer_room(to, IDEM_META_MAX);
    size_t body_at;

    if (room == NULL || !is_plain(response) ||
        !json_object_object_get_ex(response, "statusCode", &status) ||
        idem_http_head_open(&record->head, (char *)room, IDEM_META_MAX,
                            json_object_get_int(status)) != 0 ||
        (record->named && idem_http_head_complete(&record->head) != 0) ||
        !add_map(record, many, NULL) ||
        !add_map(record,
                 idem__json_member(response, "headers", json_type_object),
                 many)) {
        return false;
    }
    to->len = record->head.len;
    idem__buffer_add(to, record->type.base, record->type.len);
    body_at = to->len;
    if (!read_body(to, response) || to->failed) {
        return false;
    }
    result->meta = idem_bytes(to->base, record->head.len);
    result->content_type =
        idem_bytes(to->base + record->head.len, record->type.len);
    result->bytes = idem_bytes(to->base + body_at, to->len - body_at);
    return true;
}

bool idem__lambda_form_record(struct idem__buffer *to,
                              struct idem_slice response, bool named,
                              const char *replay_headers,
                              struct idem_result *ret_result)
{
    struct json_object *value = idem__lambda_parse(response);
    struct record record = {.named = named, .replay_headers = replay_headers};
    bool done;

    idem__buffer_reset(to, to->cap);
    done = json_object_is_type(value, json_type_object) &&
           take_apart(to, value, &record, ret_result);
    (void)json_object_put(value);
    return done;
}
