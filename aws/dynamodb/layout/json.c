/* Writing and reading the JSON of DynamoDB: attribute values. */
#include "aws/dynamodb/layout/json.h"

#include "aws/client/json.h"
#include "base/base64.h"

enum {
    DEPTH_MAX = 80, /* Items are 32 deep, twice that in JSON. */
};

/* ---- UTF-8 ---- */

/* How many bytes the character at @p has, of @left; 0: it is none. */
static size_t character(const uint8_t *p, size_t left)
{
    uint32_t code;
    size_t len;
    size_t i;

    if (p[0] < 0x80) {
        return 1;
    }
    len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || left < len) {
        return 0;
    }
    code = p[0] & (0x7fu >> len);
    for (i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (p[i] & 0x3fu);
    }
    if ((len == 3 && (code < 0x800 || (code >= 0xd800 && code <= 0xdfff))) ||
        (len == 4 && (code < 0x10000 || code > 0x10ffff))) {
        return 0;
    }
    return len;
}

bool idem__json_is_utf8(struct idem_slice text)
{
    const uint8_t *p = text.base;
    size_t left = text.len;

    while (left > 0) {
        size_t len = character(p, left);

        if (len == 0) {
            return false;
        }
        p += len;
        left -= len;
    }
    return true;
}

/* ---- Writing ---- */

static void add_escaped(struct idem__buffer *out, uint8_t c)
{
    static const char hex[] = "0123456789abcdef";
    char escape[] = "\\u0000";

    if (c == '"' || c == '\\') {
        escape[1] = (char)c;
        idem__buffer_add(out, escape, 2);
    } else {
        escape[4] = hex[c >> 4];
        escape[5] = hex[c & 15];
        idem__buffer_add(out, escape, 6);
    }
}

void idem__json_string(struct idem__buffer *out, struct idem_slice text)
{
    const uint8_t *p = text.base;
    size_t from = 0;
    size_t i;

    idem__buffer_str(out, "\"");
    for (i = 0; i < text.len; i++) {
        if (p[i] < 0x20 || p[i] == '"' || p[i] == '\\' || p[i] == 0x7f) {
            idem__buffer_add(out, p + from, i - from);
            add_escaped(out, p[i]);
            from = i + 1;
        }
    }
    if (text.len > from) {
        idem__buffer_add(out, p + from, text.len - from);
    }
    idem__buffer_str(out, "\"");
}

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
    if (!json_object_is_type(value, json_type_object) ||
        json_object_object_length(value) != 1 ||
        !json_object_object_get_ex(value, type, &text) ||
        !json_object_is_type(text, json_type_string)) {
        return IDEM_ECORRUPT;
    }
    *ret_text = idem_bytes(json_object_get_string(text),
                           (size_t)json_object_get_string_len(text));
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
