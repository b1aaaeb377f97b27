/* The fields of a record, as they are printed, compared and named. */
#include "record/record.h"

#include "options/command.h"
#include "process/host.h"
#include "text/text.h"

#include <idem/http.h>
#include <idem/operator.h>
#include <stdlib.h>

int cli_outcome_exit(const struct idem_record *record)
{
    /* A record in progress has the exit status of the attempt that was retried. */
    return record->status == IDEM_STATUS_COMPLETED ||
                   record->status == IDEM_STATUS_FAILED ||
                   (record->status == IDEM_STATUS_IN_PROGRESS &&
                    record->failures > 0)
               ? cli_meta_status(record->result.meta)
               : -1;
}

int cli_outcome_http(const struct idem_record *record)
{
    struct idem_slice rest;
    int status;

    return record->result.meta.len > 0 &&
                   idem_http_head_read(record->result.meta, &status, &rest) == 0
               ? status
               : -1;
}

bool cli_outcome_failed(const struct idem_record *record)
{
    return record->status == IDEM_STATUS_FAILED || idem_outcome_failed(record);
}

/* ---- What is printed ---------------------------------------------------- */

/* Prints a word of a column. On a terminal its spaces stay; in a pipe a reader would take
 * a space for the end of the column. */
static void print_word(FILE *f, struct idem_slice s, bool is_tty)
{
    const char *bytes = s.base;
    size_t from = 0;
    size_t i;

    for (i = 0; i < s.len && !is_tty; i++) {
        if (bytes[i] == ' ') {
            cli_print_escaped(f, idem_bytes(bytes + from, i - from));
            (void)fputs("\\x20", f);
            from = i + 1;
        }
    }
    cli_print_escaped(f, idem_bytes(bytes + from, s.len - from));
    (void)fputs(s.len == 0 ? "-" : "", f);
}

static void print_span(FILE *f, int64_t ms)
{
    char text[32];

    cli_span_text(ms < 0 && ms != IDEM_NEVER ? -ms : ms, text);
    (void)fprintf(f, "%s%s", ms < 0 ? "-" : "", text);
}

static void print_time(FILE *f, int64_t ms, bool is_tty)
{
    char text[48];

    cli_time_for(is_tty, ms, text);
    (void)fputs(text, f);
}

static void print_status(FILE *f, const struct idem_record *r, bool is_tty)
{
    (void)is_tty;
    (void)fputs(idem_status_name(idem_record_status(r)), f);
}

static void print_exit(FILE *f, const struct idem_record *r, bool is_tty)
{
    int exit_status = cli_outcome_exit(r);
    int http = cli_outcome_http(r);

    (void)is_tty;
    if (exit_status < 0 && http < 0) {
        (void)fputc('-', f);
    } else {
        (void)fprintf(f, "%d", exit_status >= 0 ? exit_status : http);
    }
}

static void print_started(FILE *f, const struct idem_record *r, bool is_tty)
{
    print_time(f, r->started_ms, is_tty);
}

static void print_created(FILE *f, const struct idem_record *r, bool is_tty)
{
    print_time(f, r->created_ms, is_tty);
}

static void print_ended(FILE *f, const struct idem_record *r, bool is_tty)
{
    print_time(f, r->ended_ms, is_tty);
}

static void print_expires(FILE *f, const struct idem_record *r, bool is_tty)
{
    print_time(f, r->expires_ms, is_tty);
}

static int64_t age_ms(const struct idem_record *r)
{
    int64_t ms = cli_now_ms() - r->started_ms;

    return ms > 0 ? ms : 0;
}

static void print_age(FILE *f, const struct idem_record *r, bool is_tty)
{
    (void)is_tty;
    print_span(f, age_ms(r));
}

/* How long the work took, or has taken so far. */
static void print_took(FILE *f, const struct idem_record *r, bool is_tty)
{
    (void)is_tty;
    print_span(f, r->ended_ms >= r->started_ms ? r->ended_ms - r->started_ms
                                               : age_ms(r));
}

/* The rest of the lease, "-12s" if it is over; "-" where none runs. */
static void print_lease(FILE *f, const struct idem_record *r, bool is_tty)
{
    (void)is_tty;
    if (r->status != IDEM_STATUS_IN_PROGRESS || r->retry) {
        (void)fputc('-', f);
    } else if (r->lease_end_ms == IDEM_NEVER) {
        (void)fputs("never", f);
    } else {
        print_span(f, r->lease_end_ms - cli_now_ms());
    }
}

static void print_attempts(FILE *f, const struct idem_record *r, bool is_tty)
{
    (void)is_tty;
    (void)fprintf(f, "%u", (unsigned)r->attempts);
}

static void print_fence(FILE *f, const struct idem_record *r, bool is_tty)
{
    (void)is_tty;
    (void)fprintf(f, "%llu", (unsigned long long)r->fence);
}

static void print_owner(FILE *f, const struct idem_record *r, bool is_tty)
{
    print_word(f, r->owner, is_tty);
}

static void print_scope(FILE *f, const struct idem_record *r, bool is_tty)
{
    print_word(f, r->scope, is_tty);
}

static void print_key(FILE *f, const struct idem_record *r, bool is_tty)
{
    (void)is_tty;
    cli_print_key(f, r->key);
}

static void print_error(FILE *f, const struct idem_record *r, bool is_tty)
{
    struct idem_slice text = r->error.len > 0 ? r->error : r->note;

    (void)is_tty;
    cli_print_escaped(f, text);
    (void)fputs(text.len == 0 ? "-" : "", f);
}

/* ---- The table ----------------------------------------------------------- */

static const struct cli_field fields[] = {
    {"status", "STATUS", "status", 11, print_status},
    {"exit", "EXIT", "exit_status", -4, print_exit},
    {"started", "STARTED", "started_ms", 24, print_started},
    {"age", "AGE", "started_ms", 7, print_age},
    {"took", "TOOK", "ended_ms", 7, print_took},
    {"lease", "LEASE", "lease_end_ms", 7, print_lease},
    {"attempts", "TRIES", "attempts", -5, print_attempts},
    {"owner", "OWNER", "owner", 20, print_owner},
    {"scope", "SCOPE", "scope", 10, print_scope},
    {"key", "KEY", "key", 0, print_key},
    {"created", "CREATED", "created_ms", 24, print_created},
    {"ended", "ENDED", "ended_ms", 24, print_ended},
    {"expires", "EXPIRES", "expires_ms", 24, print_expires},
    {"fence", "FENCE", "fence", 13, print_fence},
    {"error", "ERROR", "error", 0, print_error},
};

#define FIELDS_LEN (sizeof(fields) / sizeof(fields[0]))

/* The field of this name, or NULL. */
static const struct cli_field *find(const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < FIELDS_LEN; i++) {
        if (strlen(fields[i].name) == len &&
            memcmp(fields[i].name, name, len) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

void cli_fields_print_names(FILE *f, const char *between)
{
    size_t i;

    for (i = 0; i < FIELDS_LEN; i++) {
        (void)fprintf(f, "%s%s", i > 0 ? between : "", fields[i].name);
    }
}

static int refuse(const struct cli_command *command, const char *option,
                  const char *name, size_t len)
{
    char shown[64];
    char *names = NULL;
    size_t size;
    FILE *f = open_memstream(&names, &size);
    int status;

    if (f != NULL) {
        cli_fields_print_names(f, ", ");
        (void)fclose(f);
    }
    status =
        cli_usage(command, "--%s: \"%s\" is not a field; expected %s", option,
                  cli_escape(idem_bytes(name, len), shown, sizeof(shown)),
                  names != NULL ? names : "others");
    free(names);
    return status;
}

int cli_fields_parse(const struct cli_command *command, const char *option,
                     const char *text, struct cli_fields *ret_fields)
{
    const char *p = text;

    ret_fields->len = 0;
    while (p != NULL) {
        size_t len = strcspn(p, ",");
        const struct cli_field *field = find(p, len);

        if (field == NULL) {
            return refuse(command, option, p, len);
        }
        if (ret_fields->len == CLI_FIELDS_MAX) {
            return cli_usage(command, "--%s: at most %d fields", option,
                             CLI_FIELDS_MAX);
        }
        ret_fields->list[ret_fields->len++] = field;
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    return 0;
}

/* True if @member is that of @field or a variant of it: key_hex if the key is not UTF-8,
 * http_status if the result is an HTTP response. */
static bool is_of(const char *member, const struct cli_field *field)
{
    size_t len = strlen(field->member);

    return strcmp(member, field->member) == 0 ||
           (strncmp(member, field->member, len) == 0 &&
            strcmp(member + len, "_hex") == 0) ||
           (strcmp(field->name, "exit") == 0 &&
            strcmp(member, "http_status") == 0) ||
           (strcmp(field->name, "error") == 0 && strcmp(member, "note") == 0);
}

static bool keeps(const struct cli_fields *chosen, const char *member)
{
    size_t i;

    for (i = 0; i < chosen->len; i++) {
        if (is_of(member, chosen->list[i])) {
            return true;
        }
    }
    return false;
}

void cli_fields_keep(const struct cli_fields *chosen, struct cli_json *json)
{
    struct json_object *object = cli_json_parse(json);

    cli_json_reset(json);
    json->text.failed = object == NULL;
    if (object != NULL) {
        json_object_object_foreach(object, member, value)
        {
            const char *text = json_object_to_json_string_ext(
                value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

            if (keeps(chosen, member)) {
                cli_json_raw(json, member, idem_str(text));
            }
        }
    }
    (void)json_object_put(object);
}
