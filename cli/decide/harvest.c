/* Outcomes that wait in a journal, in files of other hosts, and in logs. */
#include "base/base64.h"
#include "decide/reconcile.h"
#include "options/read.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/lines.h"
#include "text/text.h"

#include <errno.h>
#include <stdlib.h>

/* ---- What waits in a journal ---- */

static const char *const state_names[] = {
    [IDEM_JOURNAL_WAITING] = "waiting",   [IDEM_JOURNAL_IN_USE] = "in_use",
    [IDEM_JOURNAL_RECORDED] = "recorded", [IDEM_JOURNAL_LOST] = "lost",
    [IDEM_JOURNAL_DAMAGED] = "damaged",   [IDEM_JOURNAL_NEWER] = "newer",
};

bool cli_waiting_known(const struct idem_journal_info *info)
{
    return info->fence != 0;
}

static void print_word(struct idem_slice s)
{
    if (s.len == 0) {
        (void)putchar('-');
    }
    cli_print_escaped(stdout, s);
    (void)fputs("  ", stdout);
}

/* recorded  completed  2026-11-21T08:24:00.123Z  -  order-42  4f1c...idj */
static void print_row(const struct idem_journal_info *info,
                      enum idem_journal_state state, bool dry_run)
{
    char when[32] = "-";

    if (cli_waiting_known(info)) {
        cli_time_text(info->written_ms, when);
    }
    (void)printf("%s%-8s  %-9s  %-24s  ", dry_run ? "would be " : "",
                 state_names[state],
                 cli_waiting_known(info)
                     ? idem_status_name(info->outcome.status)
                     : "-",
                 when);
    print_word(info->scope);
    print_word(info->key);
    cli_print_escaped(stdout, idem_str(info->name));
    (void)putchar('\n');
}

static void fill_outcome(struct cli_json *json,
                         const struct idem_journal_info *info)
{
    const struct idem_outcome *outcome = &info->outcome;

    cli_json_text(json, "status", idem_status_name(outcome->status));
    cli_json_bytes(json, "store", info->store_url);
    cli_json_hex(json, "id", idem_bytes(info->id, sizeof(info->id)));
    cli_json_count(json, "fence", info->fence);
    cli_json_ms(json, "written_ms", info->written_ms);
    cli_json_count(json, "result_len", outcome->result.bytes.len);
    cli_json_bool(json, "not_kept", outcome->result.not_kept);
    if (outcome->text.len > 0) {
        cli_json_bytes(json, "text", outcome->text);
    }
}

static int print_json(const struct idem_journal_info *info,
                      enum idem_journal_state state, bool dry_run,
                      const struct idem_error *error)
{
    struct cli_json json;

    cli_json_init(&json);
    cli_json_text(&json, "state", state_names[info->state]);
    if (dry_run) {
        cli_json_text(&json, "would_be", state_names[state]);
    }
    cli_json_bytes(&json, "entry", idem_str(info->name));
    if (info->key.len > 0) {
        cli_json_bytes(&json, "scope", info->scope);
        cli_json_bytes(&json, "key", info->key);
    }
    if (cli_waiting_known(info)) {
        fill_outcome(&json, info);
    }
    if (error->code != 0) {
        cli_json_text(&json, "problem", idem_error_name(error->code));
        cli_json_text(&json, "why", error->text);
    }
    return cli_json_print(&json);
}

int cli_waiting_print(const struct cli_waiting_style *style,
                      const struct idem_journal_info *info,
                      enum idem_journal_state state,
                      const struct idem_error *error)
{
    if (style->json) {
        return print_json(info, state, style->dry_run, error);
    }
    print_row(info, state, style->dry_run);
    if (error->code != 0) {
        (void)fflush(stdout);
        cli_say("%s", error->text);
    }
    return 0;
}

/* ---- Outcomes from elsewhere ---- */

/* "IDJ1" and the version, with which every entry begins, and their base64. */
#define ENTRY_MAGIC "IDJ1\1"
#define TEXT_MAGIC "SURKMQE"

/* The base64 of the longest entry, in the longest line around it. */
#define LINE_MAX_LEN ((size_t)128 << 20)

static bool is_base64(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= '0' && c <= '9') || c == '+' || c == '/';
}

/* Copies the base64 at @text to @to without the backslashes that JSON may put
 * before a "/", once or, in JSON in JSON, more often. Returns its length in @text. */
static size_t unescape(const char *text, size_t len, char *to, size_t *ret_len)
{
    size_t i = 0;
    size_t n = 0;

    while (i < len) {
        size_t next = i;

        while (next < len && text[next] == '\\') {
            next++;
        }
        if (next == len || !is_base64(text[next]) ||
            (next > i && text[next] != '/')) {
            break;
        }
        to[n++] = text[next];
        i = next + 1;
    }
    while (i < len && text[i] == '=') {
        to[n++] = text[i++];
    }
    *ret_len = n;
    return i;
}

static int take(struct cli_harvest *harvest, struct idem_slice bytes)
{
    struct idem_error error = {0};

    error.code = idem_journal_adopt(harvest->journal, bytes, &error);
    if (error.code == IDEM_ECORRUPT) {
        harvest->damaged++;
        return 0;
    }
    harvest->found += error.code == 0;
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static int take_text(struct cli_harvest *harvest, struct idem_slice text)
{
    uint8_t *bytes = malloc(text.len + 1);
    size_t len;
    int status = 0;

    if (bytes == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    if (idem__base64_read(IDEM__BASE64, text, bytes, &len) == 0) {
        status = take(harvest, idem_bytes(bytes, len));
    } else {
        harvest->damaged++;
    }
    free(bytes);
    return status;
}

/* Takes all outcomes of a line. @room is as long as the line. */
static int take_line(struct cli_harvest *harvest, const char *line, size_t len,
                     char *room)
{
    const char *end = line + len;
    const char *p = line;
    int status = 0;

    while (status == 0 && p != NULL && p < end) {
        p = memmem(p, (size_t)(end - p), TEXT_MAGIC, strlen(TEXT_MAGIC));
        if (p != NULL) {
            size_t text_len;
            size_t used = unescape(p, (size_t)(end - p), room, &text_len);

            status = take_text(harvest, idem_bytes(room, text_len));
            p += used;
        }
    }
    return status;
}

static int take_lines(struct cli_harvest *harvest, FILE *f, const char *path)
{
    struct cli_lines lines = {.f = f, .max = LINE_MAX_LEN};
    enum cli_lines_got got = CLI_LINES_ONE;
    int status = 0;

    while (status == 0 && got != CLI_LINES_END) {
        char *room;

        got = cli_lines_next(&lines);
        if (got == CLI_LINES_FAILED) {
            cli_say("cannot read %s: %s", path, strerror(errno));
            status = CLI_DENIED;
        } else if (got == CLI_LINES_TOO_LONG) {
            cli_say("%s: line %llu is too long", path,
                    (unsigned long long)lines.number);
            harvest->damaged++;
        } else if (got == CLI_LINES_ONE &&
                   memmem(lines.line, lines.len, TEXT_MAGIC,
                          strlen(TEXT_MAGIC)) != NULL) {
            room = malloc(lines.len);
            status = room == NULL
                         ? CLI_INTERNAL
                         : take_line(harvest, lines.line, lines.len, room);
            free(room);
        }
    }
    cli_lines_finish(&lines);
    return status;
}

static int take_entry(struct cli_harvest *harvest, const char *path)
{
    char *spec = NULL;
    char *bytes;
    size_t len;
    int status;

    if (asprintf(&spec, "@%s", path) < 0) {
        return CLI_INTERNAL;
    }
    status = cli_read_arg("reconcile", spec, /* text_ok= */ false, LINE_MAX_LEN,
                          &bytes, &len);
    free(spec);
    if (status == 0) {
        status = take(harvest, idem_bytes(bytes, len));
        free(bytes);
    }
    return status;
}

static int take_file(struct cli_harvest *harvest, FILE *f, const char *path)
{
    char magic[sizeof(ENTRY_MAGIC) - 1];
    size_t n;

    if (fseek(f, 0, SEEK_SET) != 0) {
        return take_lines(harvest, f, path); /* A pipe can be read only once. */
    }
    n = fread(magic, 1, sizeof(magic), f);
    if (n == sizeof(magic) && memcmp(magic, ENTRY_MAGIC, n) == 0) {
        return take_entry(harvest, path);
    }
    rewind(f);
    return take_lines(harvest, f, path);
}

int cli_harvest_file(struct cli_harvest *harvest, const char *path)
{
    FILE *f;
    int status;

    if (strcmp(path, "-") == 0) {
        return take_lines(harvest, stdin, "standard input");
    }
    f = fopen(path, "re");
    if (f == NULL) {
        cli_say("cannot read %s: %s", path, strerror(errno));
        return errno == ENOENT ? CLI_NO_RECORD : CLI_DENIED;
    }
    status = take_file(harvest, f, path);
    (void)fclose(f);
    return status;
}
