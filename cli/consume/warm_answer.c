/* Reads the lines of a command that is kept running. Pure. */
#include "consume/warm.h"

static const char *const names[] = {
    [WARM_DONE] = "done",       [WARM_FAIL] = "fail",
    [WARM_RETRY] = "retry",     [WARM_UNKNOWN] = "unknown",
    [WARM_RELEASE] = "release", [WARM_WORKING] = "working",
};

const char *warm_outcome_name(enum warm_outcome outcome)
{
    return names[outcome];
}

static bool text_of(struct json_object *object, const char *name,
                    struct idem_slice *ret_text)
{
    struct json_object *value;

    if (!json_object_object_get_ex(object, name, &value) ||
        !json_object_is_type(value, json_type_string)) {
        return false;
    }
    *ret_text = idem_bytes(json_object_get_string(value),
                           (size_t)json_object_get_string_len(value));
    return true;
}

/* ---- The text of a member ---- */

/* The offset after the string that starts at @at. The text is known to be whole JSON. */
static size_t skip_string(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++) {
        at += text[at] == '\\';
    }
    return at + 1;
}

/* The offset after the value that starts at or after @at: where a comma or the end of
 * the object follows. */
static size_t skip_value(const char *text, size_t len, size_t at)
{
    size_t depth = 0;

    while (at < len) {
        char c = text[at];

        if (c == '"') {
            at = skip_string(text, len, at);
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}')) {
            break;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at++;
    }
    return at < len ? at : len;
}

static struct idem_slice trim(const char *text, size_t from, size_t to)
{
    static const char space[] = " \t\r";

    while (from < to && strchr(space, text[from]) != NULL) {
        from++;
    }
    while (to > from && strchr(space, text[to - 1]) != NULL) {
        to--;
    }
    return idem_bytes(text + from, to - from);
}

/* The value of the last member "result" as it was written: a parser would round its
 * numbers. */
static struct idem_slice result_of(const char *text, size_t len)
{
    static const char name[] = "\"result\"";
    struct idem_slice found = idem_bytes(NULL, 0);
    size_t at = 0;

    while (at < len && text[at] != '{') {
        at++;
    }
    for (at++; at < len; at++) {
        size_t begin, end, value;

        while (at < len && text[at] != '"') {
            at++;
        }
        begin = at;
        end = skip_string(text, len, at);
        for (value = end; value < len && text[value] != ':'; value++) {
        }
        at = skip_value(text, len, value + 1);
        if (end <= len && end - begin == sizeof(name) - 1 &&
            memcmp(text + begin, name, sizeof(name) - 1) == 0) {
            found = trim(text, value + 1, at);
        }
    }
    return found;
}

/* ---- The line ---- */

static struct json_object *parse(struct idem_slice line)
{
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *object = NULL;

    if (tokener == NULL) {
        return NULL;
    }
    json_tokener_set_flags(tokener,
                           JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    object = json_tokener_parse_ex(tokener, line.base, (int)line.len);
    if (json_tokener_get_error(tokener) != json_tokener_success ||
        json_tokener_get_parse_end(tokener) != line.len ||
        !json_object_is_type(object, json_type_object)) {
        (void)json_object_put(object);
        object = NULL;
    }
    json_tokener_free(tokener);
    return object;
}

static bool find_outcome(struct idem_slice word, enum warm_outcome *ret_outcome)
{
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (word.len == strlen(names[i]) &&
            memcmp(word.base, names[i], word.len) == 0) {
            *ret_outcome = (enum warm_outcome)i;
            return true;
        }
    }
    return false;
}

enum warm_line_kind warm_answer_read(struct idem_slice line,
                                     struct warm_answer *ret_answer)
{
    struct json_object *fence;
    struct idem_slice word;

    memset(ret_answer, 0, sizeof(*ret_answer));
    if (line.len == 0 || memchr(line.base, '{', line.len) == NULL) {
        return WARM_NO_ANSWER;
    }
    ret_answer->object = parse(line);
    if (ret_answer->object == NULL ||
        !text_of(ret_answer->object, "id", &ret_answer->id) ||
        !text_of(ret_answer->object, "outcome", &word)) {
        return WARM_NO_ANSWER;
    }
    if (!find_outcome(word, &ret_answer->outcome)) {
        return WARM_BAD;
    }
    (void)text_of(ret_answer->object, "error", &ret_answer->error);
    if (json_object_object_get_ex(ret_answer->object, "fence", &fence)) {
        ret_answer->has_fence = true;
        ret_answer->fence = json_object_is_type(fence, json_type_int)
                                ? json_object_get_uint64(fence)
                                : 0; /* None has that. */
    }
    ret_answer->result = result_of(line.base, line.len);
    return WARM_ANSWER;
}

void warm_answer_finish(struct warm_answer *answer)
{
    (void)json_object_put(answer->object);
    memset(answer, 0, sizeof(*answer));
}
