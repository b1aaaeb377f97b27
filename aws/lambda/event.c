/* Reads events and responses, which are JSON, and writes errors. */
#include "aws/lambda/event.h"

#include "aws/client/clock.h"

#include <stdlib.h>

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

int64_t idem__lambda_time_of(struct idem_slice text)
{
    const char *p = text.base;
    uint64_t number;
    int64_t ms = 0;

    if (idem__digits(text, TIME_MAX_MS, &number)) {
        return (int64_t)number;
    }
    return text.len > 10 && p[10] == 'T' && p[text.len - 1] == 'Z' &&
                   idem__aws_time_parse(text, &ms)
               ? ms
               : 0;
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

/* Makes objects of json-c from @text, which idem__tree_read() has accepted: so it is
 * strict JSON, of which json-c reads nothing differently. */
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
        /* json-c sees the end of a number only with the NUL after it. */
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

/* ---- Writing ------------------------------------------------------------ */

void idem__lambda_error_body(struct idem__buffer *to, const char *type,
                             const char *text)
{
    idem__buffer_reset(to, to->cap);
    idem__buffer_str(to, "{");
    idem__json_pair(to, "errorType", idem_str(type));
    idem__json_pair(to, "errorMessage", idem_str(text));
    idem__buffer_str(to, "}");
}
