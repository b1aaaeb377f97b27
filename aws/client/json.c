/* Reading JSON, strictly: a text that two readers could take for two values is
 * refused. */
#include "aws/client/json.h"

#include <json-c/json_tokener.h>

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

static struct json_object *parse(struct json_tokener *tokener,
                                 struct idem_slice text, json_type type)
{
    struct json_object *value;

    json_tokener_set_flags(tokener,
                           JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    value = json_tokener_parse_ex(tokener, text.base, (int)text.len);
    if (json_tokener_get_error(tokener) != json_tokener_success ||
        !is_blank(text, json_tokener_get_parse_end(tokener)) ||
        !json_object_is_type(value, type)) {
        (void)json_object_put(value);
        value = NULL;
    }
    return value;
}

struct json_object *idem__aws_json(struct idem_slice text, json_type type,
                                   int depth_max, size_t len_max, int *ret_code)
{
    struct json_tokener *tokener = json_tokener_new_ex(depth_max);
    struct json_object *value = NULL;
    int code = tokener == NULL ? IDEM_ENOMEM : IDEM_ECORRUPT;

    if (tokener != NULL && text.len > 0 && text.len <= len_max &&
        text.len <= INT32_MAX) {
        value = parse(tokener, text, type);
    }
    if (tokener != NULL) {
        json_tokener_free(tokener);
    }
    if (ret_code != NULL) {
        *ret_code = code;
    }
    return value;
}
