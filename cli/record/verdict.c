/* Refusals: what a verdict means for the caller, and the commands that help. */
#include "record/verdict.h"

#include "contract/kind.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <stdlib.h>

/* ---- The commands that decide about a record ---- */

/* Characters that mean nothing special to a shell. */
static bool is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (c != '\0' && strchr("_./:@%+,-", c));
}

static bool is_printable(unsigned char c)
{
    return c >= ' ' && c <= '~';
}

static bool all(struct idem_slice s, bool (*is)(unsigned char))
{
    const unsigned char *bytes = s.base;
    size_t i;

    for (i = 0; i < s.len; i++) {
        if (!is(bytes[i])) {
            return false;
        }
    }
    return true;
}

static void print_single_quoted(FILE *f, struct idem_slice s)
{
    const char *bytes = s.base;
    size_t i;

    (void)fputc('\'', f);
    for (i = 0; i < s.len; i++) {
        if (bytes[i] == '\'') {
            (void)fputs("'\\''", f);
        } else {
            (void)fputc(bytes[i], f);
        }
    }
    (void)fputc('\'', f);
}

/* $'...' is the only form in which every byte can be typed and read. */
static void print_dollar_quoted(FILE *f, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    size_t i;

    (void)fputs("$'", f);
    for (i = 0; i < s.len; i++) {
        if (is_printable(bytes[i]) && bytes[i] != '\'' && bytes[i] != '\\') {
            (void)fputc(bytes[i], f);
        } else {
            (void)fprintf(f, "\\%03o", bytes[i]);
        }
    }
    (void)fputc('\'', f);
}

void cli_print_quoted(FILE *f, struct idem_slice s)
{
    if (s.len > 0 && all(s, is_plain)) {
        (void)fwrite(s.base, 1, s.len, f);
    } else if (cli_is_seen(s)) {
        print_single_quoted(f, s);
    } else {
        print_dollar_quoted(f, s);
    }
}

void cli_print_url(FILE *f, const char *url)
{
    char shown[IDEM_STORE_URL_MAX + 1];

    cli_print_quoted(f, idem_str(idem_url_hide(url, shown, sizeof(shown))));
}

/* Leaves out the scope only if it is empty and $IDEM_SCOPE does not set another. */
static void print_scope(FILE *f, struct idem_slice scope)
{
    const char *usual = secure_getenv("IDEM_SCOPE");

    if (scope.len > 0 || (usual != NULL && *usual != '\0')) {
        (void)fputs(" --scope=", f);
        cli_print_quoted(f, scope);
    }
}

void cli_print_operand(FILE *f, struct idem_slice text)
{
    const char *bytes = text.base;

    (void)fputs(text.len > 0 && bytes[0] == '-' ? " -- " : " ", f);
    cli_print_quoted(f, text);
}

char *cli_shown_key(struct idem_slice key)
{
    char *shown = NULL;
    size_t len;
    FILE *f = open_memstream(&shown, &len);

    if (f == NULL) {
        return NULL;
    }
    cli_print_key(f, key);
    return fclose(f) == 0 ? shown : (free(shown), NULL);
}

static bool has_mark(struct idem_slice key)
{
    size_t len = strlen(CLI_ESCAPED);

    return key.len >= len && memcmp(key.base, CLI_ESCAPED, len) == 0;
}

/* No argument can hold a NUL; such a key goes through a file. A key that begins like an
 * escaped one would be read as one, so it is printed escaped itself. */
static void print_key(FILE *f, struct idem_slice key)
{
    char *shown = has_mark(key) ? cli_shown_key(key) : NULL;

    if (key.len > 0 && memchr(key.base, '\0', key.len) != NULL) {
        (void)fputs(" --key-file=FILE", f);
    } else if (!has_mark(key)) {
        cli_print_operand(f, key);
    } else if (shown != NULL) {
        cli_print_operand(f, idem_str(shown));
    }
    free(shown);
}

void cli_print_remedy(FILE *f, const char *command, const char *options,
                      const struct idem_record *record, const char *store_url)
{
    (void)fprintf(f, "idem %s", command);
    if (store_url != NULL) {
        (void)fputs(" --store=", f);
        cli_print_url(f, store_url);
    }
    print_scope(f, record->scope);
    (void)fputs(options, f);
    print_key(f, record->key);
}

static void print_decision(FILE *f, const char *command, const char *decision,
                           const struct idem_record *record,
                           const char *store_url)
{
    char options[128];

    (void)snprintf(options, sizeof(options), " --fence %llu%s --reason TEXT",
                   (unsigned long long)record->fence, decision);
    (void)fputs("\n  ", f);
    cli_print_remedy(f, command, options, record, store_url);
}

bool cli_is_http(const struct idem_record *record)
{
    static const char end[] = "/nginx";
    size_t len = sizeof(end) - 1;
    const char *owner = record->owner.base;

    return record->owner.len > len &&
           memcmp(owner + record->owner.len - len, end, len) == 0;
}

void cli_print_resolve(FILE *f, const struct idem_record *record,
                       const char *store_url)
{
    print_decision(f, "resolve",
                   cli_is_http(record)
                       ? " --complete @FILE --http-status N --content-type TYPE"
                       : " --complete @FILE",
                   record, store_url);
    print_decision(f, "resolve", " --release", record, store_url);
}

void cli_print_reopen(FILE *f, const struct idem_record *record,
                      const char *store_url)
{
    print_decision(f, "reopen", "", record, store_url);
}

/* ---- Verdicts ---- */

static int cli_exit_of_verdict(enum idem_verdict verdict)
{
    switch (verdict) {
    case IDEM_STARTED:
        return CLI_OK;
    case IDEM_REPLAY:
        return CLI_REPLAY;
    case IDEM_MISMATCH:
        return CLI_MISMATCH;
    case IDEM_FAILED:
        return CLI_FAILED;
    case IDEM_UNKNOWN:
        return CLI_UNKNOWN;
    case IDEM_BUSY:
    case IDEM_RELEASED:
        return CLI_BUSY;
    }
    return CLI_INTERNAL;
}

static void print_key_of(FILE *f, const struct idem_record *record)
{
    (void)fputc('"', f);
    cli_print_escaped(f, record->key);
    (void)fputc('"', f);
    if (record->scope.len > 0) {
        (void)fputs(" in scope \"", f);
        cli_print_escaped(f, record->scope);
        (void)fputc('"', f);
    }
}

/* "by web-1/4711 at 2026-11-21T08:24:00.123Z" */
static void print_start(FILE *f, const struct idem_record *record)
{
    char started[48];

    cli_time_for(cli_stderr_is_tty(), record->started_ms, started);
    if (record->owner.len > 0) {
        (void)fputs(" by ", f);
        cli_print_escaped(f, record->owner);
    }
    (void)fprintf(f, " at %s", started);
}

/* If the work failed, idem show says how another request may run it again. */
static void print_mismatch(FILE *f, const struct idem_attempt *attempt,
                           const char *store_url)
{
    (void)fputs("the key ", f);
    print_key_of(f, attempt->record);
    (void)fputs(" was used for another request", f);
    print_start(f, attempt->record);
    (void)fputs("; use another key, or see the record:\n  ", f);
    cli_print_remedy(f, "show", "", attempt->record, store_url);
}

static void print_failed(FILE *f, const struct idem_attempt *attempt,
                         const char *store_url)
{
    print_key_of(f, attempt->record);
    (void)fputs(" is on record as failed", f);
    if (attempt->record->error.len > 0) {
        (void)fputs(": ", f);
        cli_print_escaped(f, attempt->record->error);
    }
    (void)fputs("; fix the cause, then record how it ended:", f);
    cli_print_resolve(f, attempt->record, store_url);
    cli_print_reopen(f, attempt->record, store_url);
}

static void print_unknown(FILE *f, const struct idem_attempt *attempt,
                          const char *store_url)
{
    (void)fputs("the outcome of ", f);
    print_key_of(f, attempt->record);
    (void)fputs(" is unknown; it was started", f);
    print_start(f, attempt->record);
    if (attempt->record->note.len > 0) {
        (void)fputs(" (", f);
        cli_print_escaped(f, attempt->record->note);
        (void)fputc(')', f);
    }
    (void)fputs("; find out what happened, then record it:", f);
    cli_print_resolve(f, attempt->record, store_url);
}

static void print_busy(FILE *f, const struct idem_attempt *attempt)
{
    char left[32];

    cli_span_text(attempt->lease_left_ms, left);
    print_key_of(f, attempt->record);
    (void)fputs(" was started", f);
    print_start(f, attempt->record);
    if (attempt->record->retry && attempt->lease_left_ms > 0) {
        (void)fprintf(f,
                      " and is to be run again, %s from now; try again "
                      "then, or use --wait-then-run",
                      left);
    } else if (attempt->record->retry) {
        (void)fputs(" and is to be run again; try again, or use "
                    "--wait-then-run",
                    f);
    } else if (attempt->lease_left_ms <= 0) {
        (void)fputs(" and was interrupted; try again, or use --wait-then-run",
                    f);
    } else if (attempt->lease_left_ms == IDEM_NEVER) {
        (void)fputs(" and has not ended; its lease never ends", f);
    } else {
        (void)fprintf(f,
                      " and has not ended; its lease runs %s more; "
                      "try again later, or use --wait",
                      left);
    }
}

static void print_released(FILE *f, const struct idem_attempt *attempt)
{
    (void)fputs("the attempt at ", f);
    print_key_of(f, attempt->record);
    (void)fputs(" was given up; try again, or use --wait-then-run", f);
}

static void print_refusal(FILE *f, const struct idem_attempt *attempt,
                          const char *store_url)
{
    switch (attempt->verdict) {
    case IDEM_STARTED:
    case IDEM_REPLAY:
        break; /* Nothing was refused. */
    case IDEM_MISMATCH:
        print_mismatch(f, attempt, store_url);
        break;
    case IDEM_FAILED:
        print_failed(f, attempt, store_url);
        break;
    case IDEM_UNKNOWN:
        print_unknown(f, attempt, store_url);
        break;
    case IDEM_BUSY:
        print_busy(f, attempt);
        break;
    case IDEM_RELEASED:
        print_released(f, attempt);
        break;
    }
}

int cli_refuse(const struct idem_attempt *attempt, const char *store_url)
{
    char *sentence = NULL;
    size_t len;
    FILE *f = open_memstream(&sentence, &len);

    if (f != NULL) {
        print_refusal(f, attempt, store_url);
        (void)fclose(f);
    }
    cli_say("%s",
            sentence != NULL ? sentence : idem_verdict_name(attempt->verdict));
    free(sentence);
    return cli_exit_of_verdict(attempt->verdict);
}
