/* An HTTP response as the object that a function on Lambda returns. */
#include "aws/dynamodb/layout/foreign.h"

#include <idem/http.h>
#include <strings.h>

/* ---- Writing ---- */

bool idem__envelope_write(struct idem__buffer *out,
                          const struct idem_result *result)
{
    struct idem_slice head;
    int status;

    if (result->meta.len == 0 ||
        idem_http_head_read(result->meta, &status, &head) != 0) {
        return false;
    }
    idem__buffer_str(out, "{\"statusCode\":");
    idem__buffer_u64(out, (uint64_t)status);
    idem__buffer_str(out, ",\"headers\":{");
    if (result->content_type.len > 0) {
        idem__json_pair(out, "Content-Type", result->content_type);
    }
    idem__json_head(out, head, /* many= */ false);
    idem__buffer_str(out, "},\"body\":");
    if (idem__utf8_is(result->bytes)) {
        idem__json_string(out, result->bytes);
    } else {
        idem__buffer_str(out, "\"");
        idem__buffer_base64(out, result->bytes);
        idem__buffer_str(out, "\",\"isBase64Encoded\":true");
    }
    idem__buffer_str(out, "}");
    return true;
}

/* ---- Reading ---- */

/* Adds a header to the head, or sets the content type. False: the head cannot hold it. */
static bool take_header(struct idem_http_head *head, const char *name,
                        json_object *value, struct idem_slice *type)
{
    struct idem_slice text;

    if (!json_object_is_type(value, json_type_string)) {
        return false;
    }
    text = idem__json_bytes_of(value);
    if (strcasecmp(name, "content-type") == 0) {
        *type = text;
        return text.len <= 255 && idem_http_header_valid(idem_str(name), text);
    }
    return idem_http_head_add(head, idem_str(name), text) == 0;
}

/* Adds those of "headers", and of "multiValueHeaders", whose values are lists. */
static bool take_headers(struct idem_http_head *head, json_object *object,
                         struct idem_slice *type)
{
    static const char *const members[] = {"headers", "multiValueHeaders"};
    size_t i, k;

    for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_object *headers = NULL;

        if (!json_object_object_get_ex(object, members[i], &headers) ||
            headers == NULL) {
            continue;
        }
        if (!json_object_is_type(headers, json_type_object)) {
            return false;
        }
        json_object_object_foreach(headers, name, value)
        {
            bool list = i == 1 && json_object_is_type(value, json_type_array);
            size_t n = list ? json_object_array_length(value) : 1;

            for (k = 0; k < n; k++) {
                json_object *each =
                    list ? json_object_array_get_idx(value, k) : value;

                if (!take_header(head, name, each, type)) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* Copies the body to @memory. False: it is not a string, or is marked as base64 and is not
 * base64. */
static bool take_body(json_object *object, struct idem__buffer *memory,
                      struct idem_slice *ret_body)
{
    json_object *body = NULL;
    json_object *packed = NULL;
    struct idem_slice text;

    *ret_body = idem_bytes(NULL, 0);
    if (!json_object_object_get_ex(object, "body", &body) || body == NULL) {
        return true;
    }
    if (!json_object_is_type(body, json_type_string)) {
        return false;
    }
    text = idem__json_bytes_of(body);
    if (json_object_object_get_ex(object, "isBase64Encoded", &packed) &&
        json_object_get_boolean(packed)) {
        return idem__json_bytes(text, memory, ret_body) == 0;
    }
    *ret_body = idem_bytes(memory->base + memory->len, text.len);
    idem__buffer_add(memory, text.base, text.len);
    return true;
}

static bool take_apart(json_object *object, struct idem__buffer *memory,
                       struct idem_result *ret)
{
    struct idem_slice type = {NULL, 0};
    struct idem_http_head head;
    json_object *status = NULL;

    if (!json_object_object_get_ex(object, "statusCode", &status) ||
        !json_object_is_type(status, json_type_int) ||
        idem_http_head_open(&head, (char *)memory->base + memory->len,
                            memory->cap - memory->len,
                            json_object_get_int(status)) != 0 ||
        !take_headers(&head, object, &type)) {
        return false;
    }
    memory->len += head.len;
    ret->meta = idem_bytes(head.base, head.len);
    ret->content_type = idem_bytes(memory->base + memory->len, type.len);
    idem__buffer_add(memory, type.base, type.len);
    return take_body(object, memory, &ret->bytes);
}

int idem__envelope_read(struct idem_slice text, struct idem__buffer *memory,
                        struct idem_result *ret_result)
{
    struct idem_result result = {.not_kept = false};
    size_t from = memory->len;
    json_object *object;
    bool taken;
    int rc;

    object = idem__json_parse(text, &rc);
    if (object == NULL) {
        return rc == IDEM_ENOMEM ? rc : 0;
    }
    taken = take_apart(object, memory, &result);
    (void)json_object_put(object);
    if (taken) {
        *ret_result = result;
    } else {
        memory->len = from;
    }
    return taken;
}
