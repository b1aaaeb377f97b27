/* The requests and answers of Step Functions, as JSON. */
#include "aws/stepfunctions/codec.h"

#include "aws/client/json.h"

#include <json-c/json.h>

#include <stdio.h>

enum {
    DEPTH_MAX = 16
};

#define TIME_MAX_S 253402300799.0 /* The end of the year 9999. */

/* ---- ARNs ------------------------------------------------------------------- */

static bool is_shown(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~' || *text == '"' || *text == '\\') {
            return false;
        }
    }
    return true;
}

/* Takes the next part of an ARN off *@at. Its length; 0: it is empty. */
static size_t take(const char **at, const char **ret_part)
{
    size_t len = strcspn(*at, ":");

    *ret_part = *at;
    *at += len + ((*at)[len] == ':');
    return len;
}

static bool is_word(const char *part, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(part, word, len) == 0;
}

bool idem__sfn_read_machine(const char *arn,
                            struct idem__sfn_machine *ret_machine)
{
    struct idem__sfn_machine *m = ret_machine;
    const char *account, *at = arn, *name, *part, *region;
    size_t account_len, name_len, part_len, region_len;

    if (strlen(arn) > IDEM__SFN_ARN_MAX || !is_shown(arn)) {
        return false;
    }
    part_len = take(&at, &part);
    if (!is_word(part, part_len, "arn") || take(&at, &part) == 0) {
        return false;
    }
    part_len = take(&at, &part);
    if (!is_word(part, part_len, "states")) {
        return false;
    }
    region_len = take(&at, &region);
    account_len = take(&at, &account);
    part_len = take(&at, &part);
    name_len = take(&at, &name);
    if (region_len == 0 || region_len >= sizeof(m->region) ||
        account_len == 0 || !is_word(part, part_len, "stateMachine") ||
        name_len == 0 || strchr(at, ':') != NULL) {
        return false;
    }
    (void)snprintf(m->region, sizeof(m->region), "%.*s", (int)region_len,
                   region);
    (void)snprintf(m->arn, sizeof(m->arn), "%.*s", (int)(name + name_len - arn),
                   arn);
    (void)snprintf(m->executions, sizeof(m->executions), "%.*sexecution:%.*s",
                   (int)(part - arn), arn, (int)name_len, name);
    return true;
}

/* ---- Writing ---------------------------------------------------------------- */

static void add_text(struct idem__buffer *out, const char *name,
                     struct idem_slice text)
{
    struct json_object *string =
        json_object_new_string_len(text.len > 0 ? text.base : "",
                                   (int)text.len);

    if (string == NULL) {
        out->failed = true;
        return;
    }
    idem__buffer_str(out, name);
    idem__buffer_str(out, json_object_to_json_string_ext(
                              string, JSON_C_TO_STRING_PLAIN |
                                          JSON_C_TO_STRING_NOSLASHESCAPE));
    (void)json_object_put(string);
}

void idem__sfn_start(struct idem__buffer *out, const char *machine,
                     const char *name, struct idem_slice input)
{
    add_text(out, "{\"stateMachineArn\":", idem_str(machine));
    add_text(out, ",\"name\":", idem_str(name));
    add_text(out, ",\"input\":", input);
    idem__buffer_str(out, "}");
}

void idem__sfn_describe_execution(struct idem__buffer *out, const char *prefix,
                                  const char *name)
{
    char arn[IDEM_EXECUTION_ARN_MAX + 1];

    (void)snprintf(arn, sizeof(arn), "%s:%s", prefix, name);
    add_text(out, "{\"executionArn\":", idem_str(arn));
    idem__buffer_str(out, "}");
}

void idem__sfn_describe_machine(struct idem__buffer *out, const char *arn)
{
    add_text(out, "{\"stateMachineArn\":", idem_str(arn));
    idem__buffer_str(out, "}");
}

/* ---- Reading ---------------------------------------------------------------- */

static struct json_object *parse(struct idem_slice text, int *ret_code)
{
    return idem__aws_json(text, json_type_object, DEPTH_MAX,
                          IDEM__SFN_ANSWER_MAX, ret_code);
}

static const char *get_text(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;

    return json_object_object_get_ex(object, name, &value) &&
                   json_object_is_type(value, json_type_string)
               ? json_object_get_string(value)
               : NULL;
}

static int read_fields(struct json_object *object,
                       struct idem_execution *ret_execution)
{
    const char *arn = get_text(object, "executionArn");
    struct json_object *date = NULL;
    double start_s;

    (void)json_object_object_get_ex(object, "startDate", &date);
    if (arn == NULL || strncmp(arn, "arn:", 4) != 0 || !is_shown(arn) ||
        strlen(arn) > IDEM_EXECUTION_ARN_MAX ||
        (!json_object_is_type(date, json_type_double) &&
         !json_object_is_type(date, json_type_int))) {
        return IDEM_ECORRUPT;
    }
    start_s = json_object_get_double(date);
    if (!(start_s >= 0 && start_s <= TIME_MAX_S)) {
        return IDEM_ECORRUPT;
    }
    (void)snprintf(ret_execution->arn, sizeof(ret_execution->arn), "%s", arn);
    ret_execution->start_ms = (int64_t)(start_s * 1000 + 0.5);
    ret_execution->express = strstr(arn, ":express:") != NULL;
    return 0;
}

int idem__sfn_read_started(struct idem_slice answer,
                           struct idem_execution *ret_execution)
{
    int rc;
    struct json_object *object = parse(answer, &rc);

    if (object != NULL) {
        rc = read_fields(object, ret_execution);
    }
    (void)json_object_put(object);
    return rc;
}

static int compare_input(struct json_object *object, struct idem_slice input,
                         bool *ret_same)
{
    struct json_object *value = NULL;

    if (!json_object_object_get_ex(object, "input", &value) || value == NULL) {
        return IDEM_EDENIED;
    }
    if (!json_object_is_type(value, json_type_string)) {
        return IDEM_ECORRUPT;
    }
    *ret_same =
        (size_t)json_object_get_string_len(value) == input.len &&
        memcmp(json_object_get_string(value), input.base, input.len) == 0;
    return 0;
}

int idem__sfn_read_execution(struct idem_slice answer, struct idem_slice input,
                             struct idem_execution *ret_execution,
                             bool *ret_same)
{
    int rc;
    struct json_object *object = parse(answer, &rc);

    if (object != NULL) {
        rc = read_fields(object, ret_execution);
    }
    if (rc == 0) {
        rc = compare_input(object, input, ret_same);
    }
    (void)json_object_put(object);
    return rc;
}

int idem__sfn_read_type(struct idem_slice answer, bool *ret_express)
{
    int rc;
    struct json_object *object = parse(answer, &rc);
    const char *type;

    if (object != NULL) {
        type = get_text(object, "type");
        rc = type == NULL ? IDEM_ECORRUPT : 0;
        /* A type that we do not know may be one that starts twice. */
        *ret_express = rc == 0 && strcmp(type, "STANDARD") != 0;
    }
    (void)json_object_put(object);
    return rc;
}
