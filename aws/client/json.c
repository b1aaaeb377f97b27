/* Reads JSON strictly, so that it refuses a text that two readers could take for two
 * values, and writes strings. */
#include "aws/client/json.h"

#include <idem/http.h>

#include <json-c/json_tokener.h>
#include <stdio.h>
#include <strings.h>

/* True if only white space follows from @from on. */
static bool is_blank(struct idem_slice text, size_t from)
{
    const char *p = text.base;

    while (from < text.len && (p[from] == ' ' || p[from] == '\t' ||
                               p[from] == '\r' || p[from] == '\n')) {
        from++;
    }
    return from == text.len;
}

/* True if json-c stopped at @end because memory ran out. Before 0.17 it reports success then,
 * although it is in the middle of the text, where it else does so only before a NUL. Later
 * versions have an error for it, after all errors of before. */
static bool ran_out(enum json_tokener_error error, struct idem_slice text,
                    size_t end)
{
    const char *p = text.base;

    return error > json_tokener_error_size ||
           (error == json_tokener_success && end < text.len && p[end] != '\0');
}

/* Returns the value, or NULL and sets *@ret_code. */
static struct json_object *parse(struct json_tokener *tokener,
                                 struct idem_slice text, json_type type,
                                 int *ret_code)
{
    enum json_tokener_error error;
    struct json_object *value;
    size_t end;

    json_tokener_set_flags(tokener,
                           JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    value = json_tokener_parse_ex(tokener, text.base, (int)text.len);
    error = json_tokener_get_error(tokener);
    end = json_tokener_get_parse_end(tokener);
    if (error == json_tokener_success && is_blank(text, end) &&
        json_object_is_type(value, type)) {
        return value;
    }
    *ret_code = ran_out(error, text, end) ? IDEM_ENOMEM : IDEM_ECORRUPT;
    (void)json_object_put(value);
    return NULL;
}

struct json_object *idem__aws_json(struct idem_slice text, json_type type,
                                   int depth_max, size_t len_max, int *ret_code)
{
    struct json_tokener *tokener = json_tokener_new_ex(depth_max);
    struct json_object *value = NULL;
    int code = tokener == NULL ? IDEM_ENOMEM : IDEM_ECORRUPT;

    if (tokener != NULL && text.len > 0 && text.len <= len_max &&
        text.len <= INT32_MAX) {
        value = parse(tokener, text, type, &code);
    }
    if (tokener != NULL) {
        json_tokener_free(tokener);
    }
    if (ret_code != NULL) {
        *ret_code = code;
    }
    return value;
}

struct json_object *idem__json_member(struct json_object *object,
                                      const char *name, json_type type)
{
    struct json_object *value = NULL;

    return json_object_object_get_ex(object, name, &value) &&
                   json_object_is_type(value, type)
               ? value
               : NULL;
}

struct idem_slice idem__json_bytes_of(struct json_object *string)
{
    return idem_bytes(json_object_get_string(string),
                      (size_t)json_object_get_string_len(string));
}

struct idem_slice idem__json_text_of(struct json_object *object,
                                     const char *name)
{
    struct json_object *text =
        idem__json_member(object, name, json_type_string);

    return text == NULL ? idem_bytes(NULL, 0) : idem__json_bytes_of(text);
}

/* ---- Writing ---- */

static void add_escape(struct idem__buffer *out, uint8_t c)
{
    bool plain = c == '"' || c == '\\';
    char escape[8];

    (void)snprintf(escape, sizeof(escape), plain ? "\\%c" : "\\u%04x",
                   c < 0x80 ? c : 0xfffd);
    idem__buffer_str(out, escape);
}

void idem__json_string(struct idem__buffer *out, struct idem_slice text)
{
    const uint8_t *p = text.base;
    size_t from = 0;
    size_t i = 0;

    idem__buffer_str(out, "\"");
    while (i < text.len) {
        bool plain = p[i] >= 0x20 && p[i] < 0x7f && p[i] != '"' && p[i] != '\\';
        size_t n = plain          ? 1
                   : p[i] >= 0x80 ? idem__utf8_len(p + i, text.len - i)
                                  : 0;

        if (n == 0) {
            idem__buffer_add(out, p + from, i - from);
            add_escape(out, p[i]);
            from = i + 1;
        }
        i += n == 0 ? 1 : n;
    }
    if (text.len > from) {
        idem__buffer_add(out, p + from, text.len - from);
    }
    idem__buffer_str(out, "\"");
}

static void add_name(struct idem__buffer *out, struct idem_slice name)
{
    char last = out->len == 0 ? '{' : (char)out->base[out->len - 1];

    if (last != '{' && last != '[') {
        idem__buffer_str(out, ",");
    }
    idem__json_string(out, name);
    idem__buffer_str(out, ":");
}

void idem__json_name(struct idem__buffer *out, const char *name)
{
    add_name(out, idem_str(name));
}

void idem__json_pair(struct idem__buffer *out, const char *name,
                     struct idem_slice text)
{
    idem__json_name(out, name);
    idem__json_string(out, text);
}

/* ---- Fields of HTTP ---- */

static bool same_name(struct idem_slice a, struct idem_slice b)
{
    return a.len == b.len && strncasecmp(a.base, b.base, a.len) == 0;
}

/* True if the field at @name, which points into @head, is the first of its name. */
static bool is_first(struct idem_slice head, struct idem_slice name)
{
    struct idem_slice other, value;
    int code;

    while (idem_http_head_next(&head, &other, &value, &code) &&
           !same_name(other, name)) {
    }
    return other.base == name.base;
}

/* Appends @value, and the values of the same @name in @rest, the fields after it. */
static void add_values(struct idem__buffer *out, struct idem_slice name,
                       struct idem_slice value, struct idem_slice rest,
                       bool many)
{
    struct idem__buffer text = {.len = 0};
    struct idem_slice other;
    int code;

    idem__buffer_add(&text, value.base, value.len);
    while (idem_http_head_next(&rest, &other, &value, &code)) {
        if (!same_name(other, name)) {
            continue;
        }
        if (many) {
            idem__json_string(out, idem__buffer_slice(&text));
            idem__buffer_str(out, ",");
            text.len = 0;
        } else {
            idem__buffer_str(&text, ", ");
        }
        idem__buffer_add(&text, value.base, value.len);
    }
    idem__json_string(out, idem__buffer_slice(&text));
    out->failed = out->failed || text.failed;
    idem__buffer_free(&text);
}

void idem__json_head(struct idem__buffer *out, struct idem_slice head,
                     bool many)
{
    struct idem_slice rest = head;
    struct idem_slice name, value;
    int code;

    while (idem_http_head_next(&rest, &name, &value, &code)) {
        if (is_first(head, name)) {
            add_name(out, name);
            idem__buffer_str(out, many ? "[" : "");
            add_values(out, name, value, rest, many);
            idem__buffer_str(out, many ? "]" : "");
        }
    }
}
