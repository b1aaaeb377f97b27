/* Verdicts for people: why work is not started, and what to do about it. */
#include "record/verdict.h"

#include "record/remedy.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <stdlib.h>

int cli_exit_of_verdict(enum idem_verdict verdict)
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

static void print_key(FILE *f, const struct idem_record *record)
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

/* Of work that failed idem show says how another request may mend it. */
static void print_mismatch(FILE *f, const struct idem_attempt *attempt,
                           const char *store_url)
{
    (void)fputs("the key ", f);
    print_key(f, attempt->record);
    (void)fputs(" was used for another request", f);
    print_start(f, attempt->record);
    (void)fputs("; take another key, or look at it:\n  ", f);
    cli_print_remedy(f, "show", "", attempt->record, store_url);
}

static void print_failed(FILE *f, const struct idem_attempt *attempt,
                         const char *store_url)
{
    print_key(f, attempt->record);
    (void)fputs(" is on record as failed", f);
    if (attempt->record->error.len > 0) {
        (void)fputs(": ", f);
        cli_print_escaped(f, attempt->record->error);
    }
    (void)fputs("; mend the cause, then say how it ended:", f);
    cli_print_resolve(f, attempt->record, store_url);
    cli_print_reopen(f, attempt->record, store_url);
}

static void print_unknown(FILE *f, const struct idem_attempt *attempt,
                          const char *store_url)
{
    (void)fputs("nobody knows whether ", f);
    print_key(f, attempt->record);
    (void)fputs(" was done; it was started", f);
    print_start(f, attempt->record);
    if (attempt->record->note.len > 0) {
        (void)fputs(" (", f);
        cli_print_escaped(f, attempt->record->note);
        (void)fputc(')', f);
    }
    (void)fputs("; find out, then say how it ended:", f);
    cli_print_resolve(f, attempt->record, store_url);
}

static void print_busy(FILE *f, const struct idem_attempt *attempt)
{
    char left[32];

    cli_span_text(attempt->lease_left_ms, left);
    print_key(f, attempt->record);
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
    print_key(f, attempt->record);
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
