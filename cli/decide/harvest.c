/* Outcomes from the files of other hosts, and from logs. */
#include "base/base64.h"
#include "decide/reconcile.h"
#include "options/read.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/lines.h"

#include <errno.h>
#include <stdlib.h>

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

/* All outcomes of a line. @room is as long as the line. */
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
        return take_lines(harvest, f, path); /* A pipe: read once. */
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
