/* JSON in the runtime: events, responses, and the writing of both. */
#include "aws/lambda/event.h"

#include "base/bytes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- Events ------------------------------------------------------------- */

uint32_t idem__lambda_child(const struct idem__tree *event, uint32_t at,
                            struct idem_slice name)
{
    const struct idem__tree_node *node = idem__tree_at(event, at);
    uint32_t end = node->kind == IDEM__TREE_OBJECT ? node->end : 0;

    for (at++; at < end; at = idem__tree_at(event, at)->end) {
        struct idem_slice found =
            idem__tree_name(event, idem__tree_at(event, at));

        if (found.len == name.len &&
            memcmp(found.base, name.base, name.len) == 0) {
            return at;
        }
    }
    return 0;
}

static uint32_t walk(const struct idem__tree *event, uint32_t at,
                     const char *place)
{
    do {
        size_t len = strcspn(place, ".|?#{");

        at = idem__lambda_child(event, at, idem_bytes(place, len));
        place += len;
    } while (at != 0 && *place++ == '.');
    return at;
}

uint32_t idem__lambda_find(const struct idem__tree *event, uint32_t unit,
                           const char *place)
{
    uint32_t found = 0;

    do {
        uint32_t at = walk(event, unit, place);

        if (at == 0 && unit != 0) {
            at = walk(event, 0, place);
        }
        if (at != 0) {
            found = at;
        }
        place += strcspn(place, "|");
    } while (
        *place++ == '|' &&
        (found == 0 || idem__tree_at(event, found)->kind == IDEM__TREE_NULL));
    return found;
}

struct idem_slice idem__lambda_text_of(const struct idem__tree *event,
                                       uint32_t at)
{
    const struct idem__tree_node *node = idem__tree_at(event, at);

    return at != 0 && node->kind == IDEM__TREE_STRING
               ? idem__tree_text(event, node)
               : idem_bytes(NULL, 0);
}

/* ---- Times -------------------------------------------------------------- */

#define TIME_MAX_MS 253402300799999 /* The end of the year 9999. */

/* The fraction after the seconds, ".123", in ms; what is finer is cut. -1: it
 * is none. @at moves past it. */
static int fraction_ms(const char **at)
{
    int ms = 0;
    int scale = 100;

    if (**at != '.') {
        return 0;
    }
    if (!isdigit((unsigned char)*++*at)) {
        return -1;
    }
    for (; isdigit((unsigned char)**at); ++*at) {
        ms += (**at - '0') * scale;
        scale /= 10;
    }
    return ms;
}

static bool in_range(const struct tm *tm)
{
    return tm->tm_year >= 70 && tm->tm_mon >= 0 && tm->tm_mon < 12 &&
           tm->tm_mday >= 1 && tm->tm_mday <= 31 && tm->tm_hour < 24 &&
           tm->tm_min < 60 && tm->tm_sec <= 60;
}

static int64_t read_utc(struct idem_slice text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    struct tm tm = {.tm_isdst = 0};
    char copy[40];
    const char *rest;
    size_t i;
    int ms;

    if (text.len < sizeof(form) || text.len >= sizeof(copy)) {
        return 0;
    }
    memcpy(copy, text.base, text.len);
    copy[text.len] = '\0';
    for (i = 0; i + 1 < sizeof(form); i++) {
        if (form[i] == 'd' ? !isdigit((unsigned char)copy[i])
                           : copy[i] != form[i]) {
            return 0;
        }
    }
    tm.tm_year = atoi(copy) - 1900;
    tm.tm_mon = atoi(copy + 5) - 1;
    tm.tm_mday = atoi(copy + 8);
    tm.tm_hour = atoi(copy + 11);
    tm.tm_min = atoi(copy + 14);
    tm.tm_sec = atoi(copy + 17);
    rest = copy + sizeof(form) - 1;
    ms = fraction_ms(&rest);
    if (ms < 0 || strcmp(rest, "Z") != 0 || rest + 1 != copy + text.len ||
        !in_range(&tm)) {
        return 0;
    }
    return (int64_t)timegm(&tm) * 1000 + ms;
}

static int64_t read_ms(struct idem_slice text)
{
    const char *p = text.base;
    int64_t ms = 0;
    size_t i;

    for (i = 0; i < text.len; i++) {
        if (!isdigit((unsigned char)p[i]) || ms > TIME_MAX_MS / 10) {
            return 0;
        }
        ms = ms * 10 + (p[i] - '0');
    }
    return ms > TIME_MAX_MS ? 0 : ms;
}

int64_t idem__lambda_time_of(struct idem_slice text)
{
    int64_t ms = read_ms(text);

    return ms != 0 ? ms : read_utc(text);
}

int64_t idem__lambda_time_seconds(struct idem_slice number)
{
    char copy[40];
    double seconds;

    if (number.len == 0 || number.len >= sizeof(copy)) {
        return 0;
    }
    memcpy(copy, number.base, number.len);
    copy[number.len] = '\0';
    seconds = strtod(copy, NULL);
    return seconds > 0 && seconds < (double)(TIME_MAX_MS / 1000)
               ? (int64_t)(seconds * 1000 + 0.5)
               : 0;
}

/* ---- Responses ---------------------------------------------------------- */

/* The text that @tree has read is JSON of one meaning; json-c makes objects of
 * it. */
static struct json_object *make_value(struct idem_slice text)
{
    struct json_tokener *tokener =
        json_tokener_new_ex(IDEM__TREE_DEPTH_MAX + 1);
    struct json_object *value;

    if (tokener == NULL) {
        return NULL;
    }
    value = json_tokener_parse_ex(tokener, text.base, (int)text.len);
    if (json_tokener_get_error(tokener) == json_tokener_continue) {
        /* A number has an end only with the NUL after it. */
        value = json_tokener_parse_ex(tokener, "", 1);
    }
    json_tokener_free(tokener);
    return value;
}

bool idem__lambda_is_json(struct idem_slice text)
{
    struct idem__tree tree = {.halves = false};
    bool is = idem__tree_read(&tree, text, NULL) == 0;

    idem__tree_free(&tree);
    return is;
}

struct json_object *idem__lambda_parse(struct idem_slice text)
{
    return idem__lambda_is_json(text) ? make_value(text) : NULL;
}

struct idem_slice idem__lambda_text(struct json_object *object,
                                    const char *name)
{
    struct json_object *member;

    if (!json_object_object_get_ex(object, name, &member) ||
        !json_object_is_type(member, json_type_string)) {
        return idem_bytes(NULL, 0);
    }
    return idem_bytes(json_object_get_string(member),
                      (size_t)json_object_get_string_len(member));
}

struct json_object *idem__lambda_object(struct json_object *object,
                                        const char *name)
{
    struct json_object *member;

    return json_object_object_get_ex(object, name, &member) &&
                   json_object_is_type(member, json_type_object)
               ? member
               : NULL;
}

/* ---- Writing ------------------------------------------------------------ */

static void add_control(struct idem__buffer *to, uint8_t c)
{
    char escape[8];

    (void)snprintf(escape, sizeof(escape), "\\u%04x", c);
    idem__buffer_str(to, escape);
}

static size_t add_one(struct idem__buffer *to, struct idem_slice rest)
{
    const uint8_t *p = rest.base;
    size_t n = p[0] < 0x80 ? 1 : idem__utf8_len(p, rest.len);

    if (n == 0) {
        idem__buffer_str(to, "\\ufffd");
        return 1;
    }
    if (p[0] == '"' || p[0] == '\\') {
        idem__buffer_str(to, "\\");
    }
    if (p[0] < 0x20 || p[0] == 0x7f) {
        add_control(to, p[0]);
    } else {
        idem__buffer_add(to, p, n);
    }
    return n;
}

void idem__lambda_string(struct idem__buffer *to, struct idem_slice text)
{
    const uint8_t *p = text.base;
    size_t at = 0;

    idem__buffer_str(to, "\"");
    while (at < text.len) {
        at += add_one(to, idem_bytes(p + at, text.len - at));
    }
    idem__buffer_str(to, "\"");
}

void idem__lambda_member_name(struct idem__buffer *to, const char *name)
{
    char last = to->len == 0 ? '{' : (char)to->base[to->len - 1];

    if (last != '{' && last != '[') {
        idem__buffer_str(to, ",");
    }
    idem__lambda_string(to, idem_str(name));
    idem__buffer_str(to, ":");
}

void idem__lambda_member(struct idem__buffer *to, const char *name,
                         struct idem_slice text)
{
    idem__lambda_member_name(to, name);
    idem__lambda_string(to, text);
}

void idem__lambda_error_body(struct idem__buffer *to, const char *type,
                             const char *text)
{
    idem__buffer_reset(to, to->cap);
    idem__buffer_str(to, "{");
    idem__lambda_member(to, "errorType", idem_str(type));
    idem__lambda_member(to, "errorMessage", idem_str(text));
    idem__buffer_str(to, "}");
}
