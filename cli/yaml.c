/* A JSON value as YAML, in its simplest form: block style, and whatever could be
 * taken for something else than a text in double quotes. */
#include "yaml.h"

#include <stdbool.h>
#include <string.h>

enum {
    STEP = 2
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Words that are no texts, in one version of YAML or another. */
static bool is_word(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no",  "on",
                                        "off",  "y",     "n",   "null"};
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_plain(const char *text)
{
    size_t len = strlen(text);
    size_t i;

    for (i = 0; i < len; i++) {
        bool inner = (text[i] >= '0' && text[i] <= '9') ||
                     strchr("_.:/-", text[i]) != NULL;

        if (!is_letter(text[i]) && (i == 0 || !inner)) {
            return false;
        }
    }
    return len > 0 && text[len - 1] != ':' && !is_word(text);
}

static void scalar(FILE *f, struct json_object *value)
{
    const char *text = json_object_get_string(value);

    if (json_object_is_type(value, json_type_string) && is_plain(text)) {
        (void)fputs(text, f);
    } else {
        (void)fputs(json_object_to_json_string_ext(
                        value, JSON_C_TO_STRING_NOSLASHESCAPE),
                    f);
    }
    (void)putc('\n', f);
}

static bool is_scalar(const struct json_object *value)
{
    return !json_object_is_type(value, json_type_object) &&
           !json_object_is_type(value, json_type_array);
}

static void block(FILE *f, struct json_object *value, int indent, bool begun);

/* @begun: the first line is indented already. */
static void object(FILE *f, struct json_object *value, int indent, bool begun)
{
    json_object_object_foreach(value, name, child)
    {
        (void)fprintf(f, "%*s%s:%s", begun ? 0 : indent, "", name,
                      is_scalar(child) ? " " : "\n");
        block(f, child, indent + STEP, /* begun= */ false);
        begun = false;
    }
}

static void array(FILE *f, struct json_object *value, int indent)
{
    size_t n = json_object_array_length(value);
    size_t i;

    for (i = 0; i < n; i++) {
        (void)fprintf(f, "%*s- ", indent, "");
        block(f, json_object_array_get_idx(value, i), indent + STEP,
              /* begun= */ true);
    }
}

static void block(FILE *f, struct json_object *value, int indent, bool begun)
{
    if (json_object_is_type(value, json_type_object)) {
        object(f, value, indent, begun);
    } else if (json_object_is_type(value, json_type_array)) {
        array(f, value, indent);
    } else {
        scalar(f, value);
    }
}

void cli_yaml(FILE *f, struct json_object *value)
{
    block(f, value, 0, /* begun= */ false);
}
