/* The status line of idem run: whatever happened, one line, which is UTF-8 and one
 * object of JSON, and says what happened; and the file that holds it is there
 * whole, or not at all.
 */
#include "fuzz.h"
#include "run/status_report.h"
#include "text/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LINE_MAX_LEN = 16384
};

static void take_story(struct tape *tape, struct status_report *report,
                       char **ret_error)
{
    static const char *const words[] = {NULL, "STARTED", "REPLAY", "completed"};
    struct idem_slice scope = take_bytes(tape, IDEM_SCOPE_MAX);
    struct idem_slice key = take_bytes(tape, IDEM_KEY_MAX);

    status_report_init(report, scope, key);
    report->verdict = words[take_up_to(tape, 3)];
    report->status = words[take_up_to(tape, 3)];
    report->executed = take_bool(tape);
    report->recorded = take_bool(tape);
    report->exit_status = (int)take_up_to(tape, 254) - 1;
    report->signal = (int)take_up_to(tape, 64);
    report->not_kept = take_bool(tape);
    report->replayed_bytes = take_u64(tape);
    report->fence = take_u64(tape);
    report->attempts = (uint32_t)take_u64(tape);
    report->takeover = take_bool(tape);
    *ret_error = text_of(take_rest(tape));
    status_report_set_error(report, *ret_error);
}

static struct json_object *parse(struct idem_slice line)
{
    struct json_tokener *tokener = json_tokener_new();
    const char *text = line.base;
    struct json_object *object;

    must(line.len > 0 && text[line.len - 1] == '\n');
    must(memchr(text, '\n', line.len - 1) == NULL);
    must(cli_is_utf8(line));
    json_tokener_set_flags(tokener,
                           JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    object = json_tokener_parse_ex(tokener, text, (int)line.len - 1);
    /* The end of a number is not the end of an object. */
    must(json_tokener_get_error(tokener) == json_tokener_success);
    must(json_object_is_type(object, json_type_object));
    json_tokener_free(tokener);
    return object;
}

static uint64_t number(struct json_object *object, const char *name)
{
    struct json_object *member;

    must(json_object_object_get_ex(object, name, &member));
    must(json_object_is_type(member, json_type_int));
    return json_object_get_uint64(member);
}

static bool truth(struct json_object *object, const char *name)
{
    struct json_object *member;

    must(json_object_object_get_ex(object, name, &member));
    must(json_object_is_type(member, json_type_boolean));
    return json_object_get_boolean(member);
}

static void says(struct json_object *object, const char *name, const char *text)
{
    struct json_object *member;
    bool there = json_object_object_get_ex(object, name, &member);

    must(there == (text != NULL));
    must(text == NULL || strcmp(json_object_get_string(member), text) == 0);
}

static void bytes(struct json_object *object, const char *name,
                  struct idem_slice want)
{
    struct json_object *member;
    char hex_name[16];
    char hex[2 * IDEM_KEY_MAX + 1];

    must(json_object_object_get_ex(object, name, &member));
    (void)snprintf(hex_name, sizeof(hex_name), "%s_hex", name);
    if (member != NULL) {
        must(same_bytes(idem_bytes(json_object_get_string(member),
                                   (size_t)json_object_get_string_len(member)),
                        want));
        must(!json_object_object_get_ex(object, hex_name, &member));
    } else {
        cli_hex(want, hex);
        says(object, hex_name, hex);
    }
}

static void compare(struct json_object *object,
                    const struct status_report *report, int status)
{
    struct json_object *member;

    says(object, "verdict", report->verdict);
    says(object, "status", report->status);
    must(truth(object, "executed") == report->executed);
    must(truth(object, "recorded") == report->recorded);
    must(truth(object, "not_kept") == report->not_kept);
    must(truth(object, "takeover") == report->takeover);
    must(number(object, "replayed_bytes") == report->replayed_bytes);
    must(number(object, "idem_status") == (uint64_t)status);
    bytes(object, "scope", report->scope);
    bytes(object, "key", report->key);
    must(json_object_object_get_ex(object, "exit_status", &member) ==
         (report->exit_status >= 0));
    must(report->exit_status < 0 ||
         number(object, "exit_status") == (uint64_t)report->exit_status);
    must(json_object_object_get_ex(object, "signal", &member) ==
         (report->signal != 0));
    must(json_object_object_get_ex(object, "fence", &member) ==
         (report->fence != 0));
    must(report->fence == 0 ||
         (number(object, "fence") == report->fence &&
          number(object, "attempts") == report->attempts));
    if (cli_is_utf8(idem_str(report->error))) {
        says(object, "error", report->error[0] == '\0' ? NULL : report->error);
    } else {
        must(json_object_object_get_ex(object, "error", &member));
    }
}

static size_t read_line(int fd, char line[LINE_MAX_LEN])
{
    ssize_t n = pread(fd, line, LINE_MAX_LEN, 0);

    must(n > 0 && n < LINE_MAX_LEN);
    return (size_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    int status = (int)take_up_to(&tape, 255);
    int fd = memfd_create("status", MFD_CLOEXEC);
    struct json_object *object;
    char line[LINE_MAX_LEN];
    struct status_report report;
    char *error;
    size_t n;

    must(fd >= 0);
    take_story(&tape, &report, &error);
    status_report_tell(&report, status, fd);
    n = read_line(fd, line);
    must(close(fd) == 0);
    object = parse(idem_bytes(line, n));
    compare(object, &report, status);
    (void)json_object_put(object);
    free(error);
    return 0;
}
