/* Reads the report of `idem run` on a message. */
#include "consume/consume.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    STORY_MAX = 65536,
};

struct json_object *consume_status_report_line(int fd)
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

void consume_status_report_read(struct json_object *line,
                                struct consume_status_report *ret_report)
{
    struct consume_status_report report = {.verdict = "", .status = ""};
    struct json_object *value;

    report.lease_left_ms = -1;
    if (line != NULL &&
        json_object_object_get_ex(line, "idem_status", &value)) {
        report.told = true;
        report.idem_status = json_object_get_int(value);
        report.executed = flag_of(line, "executed");
        report.recorded = flag_of(line, "recorded");
        report.verdict = text_of(line, "verdict");
        report.status = text_of(line, "status");
        report.journaled = text_of(line, "journal")[0] != '\0';
        if (json_object_object_get_ex(line, "lease_left_ms", &value)) {
            report.lease_left_ms =
                value == NULL ? IDEM_NEVER : json_object_get_int64(value);
        }
    }
    *ret_report = report;
}
