/* Writes results as attribute values, and reads them back. */
#include "aws/dynamodb/layout/json.h"

enum {
    LEVELS_MAX = 30,      /* DynamoDB allows 32. */
    DIGITS_MAX = 38,      /* The digits of a number that DynamoDB keeps. */
    EXPONENT_MAX = 120,   /* The least number is about 10^-EXPONENT_MAX. */
    NUMBER_LEN_MAX = 200, /* The length of its text. */
};

/* ---- Numbers ---- */

/* A number as digits without zeros at either end, and the place of its point. */
struct decimal {
    bool negative;
    char digits[NUMBER_LEN_MAX];
    size_t len;
    int64_t exponent; /* Of the digits after "0.". */
};

static int64_t read_exponent(const char *p, size_t len)
{
    int64_t exponent = 0;
    size_t i = len > 0 && (p[0] == '-' || p[0] == '+');

    for (; i < len && exponent < 100000; i++) {
        exponent = exponent * 10 + (p[i] - '0');
    }
    return len > 0 && p[0] == '-' ? -exponent : exponent;
}

static bool read_decimal(struct idem_slice text, struct decimal *ret)
{
    const char *p = text.base;
    bool point = false;
    size_t i = text.len > 0 && p[0] == '-';

    memset(ret, 0, sizeof(*ret));
    ret->negative = i == 1;
    if (text.len >= NUMBER_LEN_MAX) {
        return false;
    }
    for (; i < text.len && p[i] != 'e' && p[i] != 'E'; i++) {
        if (p[i] == '.') {
            point = true;
        } else if (p[i] < '0' || p[i] > '9') {
            return false;
        } else if (ret->len > 0 || p[i] != '0') {
            ret->digits[ret->len++] = p[i];
            ret->exponent += !point;
        } else {
            ret->exponent -= point;
        }
    }
    if (i < text.len) {
        ret->exponent += read_exponent(p + i + 1, text.len - i - 1);
    }
    while (ret->len > 0 && ret->digits[ret->len - 1] == '0') {
        ret->len--;
    }
    if (ret->len == 0) {
        ret->negative = false;
        ret->exponent = 0;
    }
    return true;
}

/* Up to 2^53 - 1, the largest integer that a JavaScript number holds exactly: the SDK turns
 * a larger one into a BigInt or fails, and JSON.stringify() refuses a BigInt. */
static bool number_fits(struct idem_slice text)
{
    static const char most[] = "9007199254740991";
    size_t len = sizeof(most) - 1;
    struct decimal d;
    int order;

    if (!read_decimal(text, &d) || d.len > DIGITS_MAX ||
        d.exponent > (int64_t)len || d.exponent < -EXPONENT_MAX) {
        return false;
    }
    order = memcmp(d.digits, most, d.len < len ? d.len : len);
    return d.exponent < (int64_t)len || order < 0 ||
           (order == 0 && d.len <= len);
}

static bool same_number(struct idem_slice a, struct idem_slice b)
{
    struct decimal x, y;

    return read_decimal(a, &x) && read_decimal(b, &y) &&
           x.negative == y.negative && x.len == y.len &&
           x.exponent == y.exponent && memcmp(x.digits, y.digits, x.len) == 0;
}

/* ---- Writing ---- */

/* True: DynamoDB has a value for every part of it. */
static bool fits(const struct idem__tree *tree)
{
    uint32_t ends[LEVELS_MAX];
    unsigned depth = 0;
    uint32_t i;

    if (tree->halves) {
        return false;
    }
    for (i = 0; i < idem__tree_len(tree); i++) {
        const struct idem__tree_node *node = idem__tree_at(tree, i);

        while (depth > 0 && ends[depth - 1] <= i) {
            depth--;
        }
        /* DynamoDB has no empty names, and json-c ends a name at a NUL. */
        if (node->named &&
            (node->name_len == 0 ||
             memchr(idem__tree_name(tree, node).base, '\0', node->name_len))) {
            return false;
        }
        if (node->kind == IDEM__TREE_NUMBER &&
            !number_fits(idem__tree_raw(tree, node))) {
            return false;
        }
        if (node->count > 0) {
            if (depth == LEVELS_MAX) {
                return false;
            }
            ends[depth++] = node->end;
        }
    }
    return true;
}

static void write_node(struct idem__buffer *out, const struct idem__tree *tree,
                       uint32_t number);

static void write_inside(struct idem__buffer *out,
                         const struct idem__tree *tree, uint32_t number)
{
    uint32_t end = idem__tree_at(tree, number)->end;
    uint32_t i;

    for (i = number + 1; i < end; i = idem__tree_at(tree, i)->end) {
        const struct idem__tree_node *node = idem__tree_at(tree, i);

        idem__buffer_str(out, i == number + 1 ? "" : ",");
        if (node->named) {
            idem__json_string(out, idem__tree_name(tree, node));
            idem__buffer_str(out, ":");
        }
        write_node(out, tree, i);
    }
}

static void write_node(struct idem__buffer *out, const struct idem__tree *tree,
                       uint32_t number)
{
    const struct idem__tree_node *node = idem__tree_at(tree, number);
    struct idem_slice raw = idem__tree_raw(tree, node);

    switch (node->kind) {
    case IDEM__TREE_NULL:
        idem__buffer_str(out, "{\"NULL\":true}");
        return;
    case IDEM__TREE_FALSE:
        idem__buffer_str(out, "{\"BOOL\":false}");
        return;
    case IDEM__TREE_TRUE:
        idem__buffer_str(out, "{\"BOOL\":true}");
        return;
    case IDEM__TREE_NUMBER:
        idem__buffer_str(out, "{\"N\":\"");
        idem__buffer_add(out, raw.base, raw.len);
        idem__buffer_str(out, "\"}");
        return;
    case IDEM__TREE_STRING:
        idem__buffer_str(out, "{\"S\":");
        idem__json_string(out, idem__tree_text(tree, node));
        idem__buffer_str(out, "}");
        return;
    case IDEM__TREE_ARRAY:
        idem__buffer_str(out, "{\"L\":[");
        write_inside(out, tree, number);
        idem__buffer_str(out, "]}");
        return;
    case IDEM__TREE_OBJECT:
        idem__buffer_str(out, "{\"M\":{");
        write_inside(out, tree, number);
        idem__buffer_str(out, "}}");
        return;
    }
}

static void write_string(struct idem__buffer *out, struct idem_slice text)
{
    idem__buffer_str(out, "{\"S\":");
    idem__json_string(out, text);
    idem__buffer_str(out, "}");
}

/* True for text that a person can read. Control characters would grow sixfold in JSON. */
static bool is_text(struct idem_slice bytes)
{
    const uint8_t *p = bytes.base;
    size_t i;

    for (i = 0; i < bytes.len; i++) {
        if (p[i] < ' ' && p[i] != '\n' && p[i] != '\r' && p[i] != '\t') {
            return false;
        }
    }
    return idem__utf8_is(bytes);
}

/* Writes bytes that are not JSON as a JSON string. */
static void write_text(struct idem__buffer *out, struct idem_slice bytes,
                       bool native, struct idem__buffer *scratch)
{
    bool text = is_text(bytes);

    scratch->len = 0;
    if (!text) {
        idem__buffer_base64(scratch, bytes);
    } else if (!native) {
        idem__json_string(scratch, bytes);
    }
    if (text) {
        write_string(out, native ? bytes : idem__buffer_slice(scratch));
    } else {
        idem__buffer_str(out, native ? "{\"S\":\"" : "{\"S\":\"\\\"");
        idem__buffer_add(out, scratch->base, scratch->len);
        idem__buffer_str(out, native ? "\"}" : "\\\"\"}");
    }
    out->failed = out->failed || scratch->failed;
}

bool idem__value_write(struct idem__buffer *out, struct idem_slice bytes,
                       bool native, struct idem__tree *scratch, bool *ret_plain)
{
    int rc = idem__tree_read(scratch, bytes, /* ret_error= */ NULL);

    *ret_plain = false;
    if (rc == IDEM_ENOMEM) {
        out->failed = true;
    } else if (rc != 0) {
        write_text(out, bytes, native, &scratch->text);
    } else if (native && fits(scratch)) {
        write_node(out, scratch, 0);
    } else {
        write_string(out, bytes);
        *ret_plain = !native;
    }
    return !out->failed;
}

/* ---- Reading ---- */

static bool read_list(json_object *list, struct idem__buffer *out)
{
    size_t n = json_object_array_length(list);
    size_t i;

    idem__buffer_str(out, "[");
    for (i = 0; i < n; i++) {
        idem__buffer_str(out, i == 0 ? "" : ",");
        if (!idem__value_read(json_object_array_get_idx(list, i), out)) {
            return false;
        }
    }
    idem__buffer_str(out, "]");
    return true;
}

static bool read_map(json_object *map, struct idem__buffer *out)
{
    bool first = true;

    idem__buffer_str(out, "{");
    json_object_object_foreach(map, name, value)
    {
        idem__buffer_str(out, first ? "" : ",");
        idem__json_string(out, idem_str(name));
        idem__buffer_str(out, ":");
        if (!idem__value_read(value, out)) {
            return false;
        }
        first = false;
    }
    idem__buffer_str(out, "}");
    return true;
}

/* A set becomes an array of its numbers or strings. */
static bool read_set(json_object *set, bool numbers, struct idem__buffer *out)
{
    size_t n = json_object_array_length(set);
    size_t i;

    idem__buffer_str(out, "[");
    for (i = 0; i < n; i++) {
        json_object *text = json_object_array_get_idx(set, i);

        if (!json_object_is_type(text, json_type_string)) {
            return false;
        }
        idem__buffer_str(out, i == 0 ? "" : ",");
        if (numbers) {
            idem__buffer_add(out, idem__json_bytes_of(text).base,
                             idem__json_bytes_of(text).len);
        } else {
            idem__json_string(out, idem__json_bytes_of(text));
        }
    }
    idem__buffer_str(out, "]");
    return true;
}

static bool read_typed(const char *type, json_object *value,
                       struct idem__buffer *out)
{
    bool text = json_object_is_type(value, json_type_string);
    bool list = json_object_is_type(value, json_type_array);

    if (text && strcmp(type, "N") == 0) {
        idem__buffer_add(out, idem__json_bytes_of(value).base,
                         idem__json_bytes_of(value).len);
    } else if (text && (strcmp(type, "S") == 0 || strcmp(type, "B") == 0)) {
        idem__json_string(out, idem__json_bytes_of(value));
    } else if (strcmp(type, "NULL") == 0) {
        idem__buffer_str(out, "null");
    } else if (strcmp(type, "BOOL") == 0) {
        idem__buffer_str(out,
                         json_object_get_boolean(value) ? "true" : "false");
    } else if (list && strcmp(type, "L") == 0) {
        return read_list(value, out);
    } else if (json_object_is_type(value, json_type_object) &&
               strcmp(type, "M") == 0) {
        return read_map(value, out);
    } else if (list && strlen(type) == 2 && type[1] == 'S') {
        return read_set(value, type[0] == 'N', out);
    } else {
        return false;
    }
    return true;
}

/* The one member of an attribute value: its type and what it holds. */
static bool open_value(json_object *value, const char **ret_type,
                       json_object **ret_held)
{
    bool found = false;

    if (!json_object_is_type(value, json_type_object) ||
        json_object_object_length(value) != 1) {
        return false;
    }
    json_object_object_foreach(value, type, held)
    {
        *ret_type = type;
        *ret_held = held;
        found = true;
    }
    return found;
}

bool idem__value_read(json_object *value, struct idem__buffer *out)
{
    json_object *held;
    const char *type;

    return open_value(value, &type, &held) && read_typed(type, held, out);
}

/* ---- Comparing ---- */

static bool same_lists(json_object *a, json_object *b)
{
    size_t n = json_object_array_length(a);
    size_t i;

    if (json_object_array_length(b) != n) {
        return false;
    }
    for (i = 0; i < n; i++) {
        if (!idem__value_same(json_object_array_get_idx(a, i),
                              json_object_array_get_idx(b, i))) {
            return false;
        }
    }
    return true;
}

static bool same_maps(json_object *a, json_object *b)
{
    json_object *other;

    if (json_object_object_length(a) != json_object_object_length(b)) {
        return false;
    }
    json_object_object_foreach(a, name, value)
    {
        if (!json_object_object_get_ex(b, name, &other) ||
            !idem__value_same(value, other)) {
            return false;
        }
    }
    return true;
}

bool idem__value_same(json_object *a, json_object *b)
{
    json_object *x, *y;
    const char *type, *other;

    if (!open_value(a, &type, &x) || !open_value(b, &other, &y) ||
        strcmp(type, other) != 0 ||
        json_object_get_type(x) != json_object_get_type(y)) {
        return false;
    }
    switch (json_object_get_type(x)) {
    case json_type_array:
        return same_lists(x, y);
    case json_type_object:
        return same_maps(x, y);
    case json_type_string:
        if (strcmp(type, "N") == 0) {
            return same_number(idem__json_bytes_of(x), idem__json_bytes_of(y));
        }
        break;
    case json_type_null:
    case json_type_boolean:
    case json_type_double:
    case json_type_int:
        break;
    }
    return json_object_equal(x, y) == 1;
}
