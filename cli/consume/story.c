/* Reads the report of `idem run` on a message. */
#include "consume/consume.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    STORY_MAX = 65536,
};

struct json_object *consume_story_line(int fd)
{
    char *text = calloc(1, STORY_MAX + 1);
    struct json_object *line = NULL;
    ssize_t len = text == NULL ? -1 : pread(fd, text, STORY_MAX, 0);

    /* Without its newline it was cut. */
    if (len > 0 && text[len - 1] == '\n') {
        line = json_tokener_parse(text);
    }
    free(text);
    if (!json_object_is_type(line, json_type_object)) {
        (void)json_object_put(line);
        line = NULL;
    }
    return line;
}

static const char *text_of(struct json_object *line, const char *name)
{
    struct json_object *value;

    return json_object_object_get_ex(line, name, &value) &&
                   json_object_is_type(value, json_type_string)
               ? json_object_get_string(value)
               : "";
}

static bool flag_of(struct json_object *line, const char *name)
{
    struct json_object *value;

    return json_object_object_get_ex(line, name, &value) &&
           json_object_get_boolean(value);
}

void consume_story_read(struct json_object *line,
                        struct consume_story *ret_story)
{
    struct consume_story story = {.verdict = "", .status = ""};
    struct json_object *value;

    story.lease_left_ms = -1;
    if (line != NULL &&
        json_object_object_get_ex(line, "idem_status", &value)) {
        story.told = true;
        story.idem_status = json_object_get_int(value);
        story.executed = flag_of(line, "executed");
        story.recorded = flag_of(line, "recorded");
        story.verdict = text_of(line, "verdict");
        story.status = text_of(line, "status");
        story.journaled = text_of(line, "journal")[0] != '\0';
        if (json_object_object_get_ex(line, "lease_left_ms", &value)) {
            story.lease_left_ms =
                value == NULL ? IDEM_NEVER : json_object_get_int64(value);
        }
    }
    *ret_story = story;
}
