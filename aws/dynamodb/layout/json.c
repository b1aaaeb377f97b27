/* Writes and reads the JSON of DynamoDB: attribute values. */
#include "aws/dynamodb/layout/json.h"

#include "base/base64.h"

enum {
    DEPTH_MAX = 80, /* An item can be 32 deep, which is twice that in JSON. */
};

/* ---- Writing ---- */

void idem__json_s(struct idem__buffer *out, const char *text)
{
    idem__buffer_str(out, "{\"S\":");
    idem__json_string(out, idem_str(text));
    idem__buffer_str(out, "}");
}

void idem__json_b(struct idem__buffer *out, struct idem_slice bytes)
{
    idem__buffer_str(out, "{\"B\":\"");
    idem__buffer_base64(out, bytes);
    idem__buffer_str(out, "\"}");
}

void idem__json_n(struct idem__buffer *out, uint64_t number)
{
    idem__buffer_str(out, "{\"N\":\"");
    idem__buffer_u64(out, number);
    idem__buffer_str(out, "\"}");
}

/* ---- Reading ---- */

json_object *idem__json_parse(struct idem_slice text, int *ret_code)
{
    return idem__aws_json(text, json_type_object, DEPTH_MAX, SIZE_MAX,
                          ret_code);
}

json_object *idem__json_parse_list(struct idem_slice text, int *ret_code)
{
    return idem__aws_json(text, json_type_array, DEPTH_MAX, SIZE_MAX, ret_code);
}

int idem__json_attribute(json_object *item, const char *name, const char *type,
                         struct idem_slice *ret_text)
{
    json_object *value;
    json_object *text;

    if (!json_object_object_get_ex(item, name, &value)) {
        return 0;
    }
    text = idem__json_member(value, type, json_type_string);
    if (text == NULL || json_object_object_length(value) != 1) {
        return IDEM_ECORRUPT;
    }
    *ret_text = idem__json_bytes_of(text);
    return 1;
}

int idem__json_bytes(struct idem_slice text, struct idem__buffer *out,
                     struct idem_slice *ret_bytes)
{
    uint8_t *to = out->base + out->len;
    size_t len;

    if (out->cap - out->len < idem__base64_max(text.len) ||
        idem__base64_read(IDEM__BASE64, text, to, &len) != 0) {
        return IDEM_ECORRUPT;
    }
    out->len += len;
    *ret_bytes = idem_bytes(to, len);
    return 0;
}

const char *idem__json_text(json_object *value, size_t *ret_len)
{
    return json_object_to_json_string_length(value,
                                             JSON_C_TO_STRING_PLAIN |
                                                 JSON_C_TO_STRING_NOSLASHESCAPE,
                                             ret_len);
}
