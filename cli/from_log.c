/* Outcomes from the log of a Lambda function, as a journal of their own.
 *
 * The lines are JSON, maybe with a time before it; those with an "entry" hold what
 * the file of a journal would: see idem-lambda(1). */
#include "from_log.h"

#include "base64.h"
#include "cli.h"
#include "lines.h"

#include <idem/journal.h>

#include <json-c/json.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 1 << 20,
    ENTRIES_MAX = 1000000,
};

/* ---- The directory ----------------------------------------------------- */

static int make_directory(char **ret_directory)
{
    const char *above = secure_getenv("TMPDIR");
    char *path;

    if (asprintf(&path, "%s/idem-log-XXXXXX",
                 above == NULL || above[0] == '\0' ? "/tmp" : above) < 0) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    if (mkdtemp(path) == NULL) {
        cli_say("cannot make the directory %s: %s", path, strerror(errno));
        free(path);
        return CLI_FULL;
    }
    *ret_directory = path;
    return 0;
}

static int drop_one(void *ctx, const struct idem_journal_info *info,
                    const struct idem_error *error)
{
    (void)error;
    (void)idem_journal_drop(ctx, info->name, NULL);
    return 0;
}

void cli_from_log_close(struct idem_journal *journal, char *directory)
{
    if (journal != NULL) {
        (void)idem_journal_list(journal, NULL, drop_one, journal, NULL);
        idem_journal_close(journal);
    }
    if (directory != NULL) {
        (void)rmdir(directory);
    }
    free(directory);
}

/* ---- The lines --------------------------------------------------------- */

/* The text of the member "entry" of the object in @line; NULL: there is none. */
static struct json_object *find_entry(const char *line)
{
    const char *from = strchr(line, '{');
    struct json_object *object = from == NULL ? NULL : json_tokener_parse(from);
    struct json_object *entry = NULL;

    if (json_object_is_type(object, json_type_object) &&
        json_object_object_get_ex(object, "entry", &entry) &&
        json_object_is_type(entry, json_type_string)) {
        (void)json_object_get(entry);
    } else {
        entry = NULL;
    }
    (void)json_object_put(object);
    return entry;
}

static int add_entry(struct idem_journal *journal, struct json_object *entry,
                     struct idem_error *error)
{
    struct idem_slice text =
        idem_bytes(json_object_get_string(entry),
                   (size_t)json_object_get_string_len(entry));
    uint8_t *bytes = malloc(text.len / 4 * 3 + 1);
    size_t len;
    int rc = IDEM_ECORRUPT;

    if (bytes == NULL) {
        return IDEM_ENOMEM;
    }
    if (cli_base64_decode(text, bytes, &len)) {
        rc = idem_journal_add(journal, idem_bytes(bytes, len), error);
    } else {
        (void)snprintf(error->text, sizeof(error->text), "it is not base64");
    }
    free(bytes);
    return rc;
}

/* What cannot be trusted is said, and does not keep the others waiting. */
static int take_line(struct idem_journal *journal,
                     const struct cli_lines *lines)
{
    struct json_object *entry = find_entry(lines->line);
    struct idem_error error = {0};

    if (entry == NULL) {
        return 0;
    }
    error.code = add_entry(journal, entry, &error);
    (void)json_object_put(entry);
    if (error.code == IDEM_ECORRUPT || error.code == IDEM_ECONFIG) {
        cli_say("line %llu: %s", (unsigned long long)lines->number, error.text);
        return 0;
    }
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static int take_lines(struct idem_journal *journal, FILE *f)
{
    struct cli_lines lines = {.f = f, .max = LINE_MAX_BYTES};
    int status = 0;

    while (status == 0) {
        enum cli_lines_got got = cli_lines_next(&lines);

        if (got == CLI_LINES_END) {
            break;
        }
        if (got == CLI_LINES_ONE) {
            status = take_line(journal, &lines);
        } else if (got == CLI_LINES_FAILED) {
            cli_say("cannot read the log: %s", strerror(errno));
            status = CLI_CONFIG;
        }
    }
    cli_lines_finish(&lines);
    return status;
}

static int take_file(struct idem_journal *journal, const char *file)
{
    bool is_stdin = strcmp(file, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(file, "re");
    int status;

    if (f == NULL) {
        cli_say("cannot open %s: %s", file, strerror(errno));
        return CLI_CONFIG;
    }
    status = take_lines(journal, f);
    if (!is_stdin) {
        (void)fclose(f);
    }
    return status;
}

int cli_from_log_open(const char *file, struct idem_journal **ret_journal,
                      char **ret_directory)
{
    struct idem_journal_options options = IDEM_JOURNAL_OPTIONS_INIT;
    struct idem_journal *journal = NULL;
    struct idem_error error = {0};
    char *directory = NULL;
    int status = make_directory(&directory);

    if (status != 0) {
        return status;
    }
    options.entries_max = ENTRIES_MAX;
    error.code = idem_journal_open(directory, &options, &journal, &error);
    status = error.code == 0 ? take_file(journal, file) : cli_fail_with(&error);
    if (status != 0) {
        cli_from_log_close(journal, directory);
        return status;
    }
    *ret_journal = journal;
    *ret_directory = directory;
    return 0;
}
