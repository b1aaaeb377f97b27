/* A line of a command that idem consume keeps running: what is taken for an answer is a
 * whole JSON object with the two strings, and its result is a part of the line that is
 * whole JSON and that says the same as the member of that name does to a parser.
 */
#include "consume/warm.h"
#include "fuzz.h"

static struct json_object *parse(struct idem_slice text)
{
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *value;

    json_tokener_set_flags(tokener,
                           JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    /* A number ends where something follows it. */
    value = json_tokener_parse_ex(tokener, text.base, (int)text.len);
    if (json_tokener_get_error(tokener) == json_tokener_continue) {
        value = json_tokener_parse_ex(tokener, " ", 1);
    }
    must(json_tokener_get_error(tokener) == json_tokener_success);
    json_tokener_free(tokener);
    return value;
}

static void check_result(struct idem_slice line,
                         const struct warm_answer *answer)
{
    struct json_object *meant = NULL;
    struct json_object *got;
    bool has = json_object_object_get_ex(answer->object, "result", &meant) != 0;

    if (answer->result.len == 0) {
        /* A name with escapes in it is not looked for. */
        must(!has || memmem(line.base, line.len, "\\u", 2) != NULL);
        return;
    }
    must((const char *)answer->result.base > (const char *)line.base);
    must((const char *)answer->result.base + answer->result.len <
         (const char *)line.base + line.len);
    if (memmem(line.base, line.len, "\\u", 2) != NULL) {
        return; /* Another member may have that name, too. */
    }
    got = parse(answer->result);
    /* As texts: the parser takes NaN, which is equal to nothing. */
    must(has && strcmp(json_object_to_json_string(got),
                       json_object_to_json_string(meant)) == 0);
    (void)json_object_put(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct idem_slice line = idem_bytes(data, len);
    struct warm_answer answer;
    enum warm_line_kind kind;

    if (memchr(data, '\n', len) != NULL) {
        return 0;
    }
    kind = warm_answer_read(line, &answer);
    if (kind != WARM_NO_ANSWER) {
        must(json_object_is_type(answer.object, json_type_object));
        must(same_bytes(answer.id,
                        idem_str(json_object_get_string(
                            json_object_object_get(answer.object, "id")))) ||
             memchr(answer.id.base, '\0', answer.id.len) != NULL);
    }
    if (kind == WARM_ANSWER) {
        must(warm_outcome_name(answer.outcome)[0] != '\0');
        check_result(line, &answer);
    }
    warm_answer_finish(&answer);
    return 0;
}
