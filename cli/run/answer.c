/* The answer where nothing is run: the recorded outcome, or what is wrong. */
#include "base/crash.h"
#include "process/descriptors.h"
#include "record/fields.h"
#include "record/record.h"
#include "record/remedy.h"
#include "record/verdict.h"
#include "run/frames.h"
#include "run/run.h"
#include "run/status_report.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Where a failure is replayed its cause may be mended long since. NULL: no memory. */
static void reopen_text(const struct run *run, char **ret_text)
{
    size_t len;
    FILE *f = open_memstream(ret_text, &len);

    if (f != NULL) {
        cli_print_reopen(f, run->attempt->record, run->options->store);
        (void)fclose(f);
    }
}

static void remark_replay(const struct run *run)
{
    const struct idem_record *record = run->attempt->record;
    char *reopen = NULL;
    char outcome[64];
    char ended[48];

    cli_time_for(cli_stderr_is_tty(), record->ended_ms, ended);
    cli_outcome_text(record, outcome);
    if (cli_outcome_failed(record)) {
        reopen_text(run, &reopen);
    }
    run_say(run, RUN_REMARK, "replayed; %s at %s%s%s", outcome, ended,
            reopen != NULL ? "; to have it run again:" : "",
            reopen != NULL ? reopen : "");
    free(reopen);
}

/* 0 with the errno of the write to stdout that failed (0: none did), or an exit
 * status. */
static int write_result(struct run *run, const struct idem_form *form,
                        int *ret_write_error)
{
    static const char damaged[] = "the recorded output is damaged";
    int ignored;

    *ret_write_error = 0;
    switch (idem_form_way(form->kind, IDEM_FRONT_RUN)) {
    case IDEM_WAY_CORRUPT:
        status_report_set_error(&run->report, damaged);
        run_say(run, RUN_ERROR, "%s; nothing of it was printed", damaged);
        return CLI_CORRUPT;
    case IDEM_WAY_COMPLAIN:
        cli_form_write(form, STDERR_FILENO, STDERR_FILENO, &ignored);
        (void)io_write_all(STDERR_FILENO, "\n", 1);
        break;
    default:
        cli_form_write(form, STDOUT_FILENO, STDERR_FILENO, ret_write_error);
        break;
    }
    run->report.replayed_bytes = frames_payload(form);
    return 0;
}

/* True if there never was any output to keep. */
static bool has_no_output(const struct idem_form *form)
{
    return form->kind != IDEM_FORM_HTTP && form->bytes.len == 0 &&
           form->content_type.len == 0;
}

/* Never a status of success with nothing on stdout where there was something: the next
 * program would take it for the output. */
static int say_not_kept(struct run *run)
{
    const struct idem_record *record = run->attempt->record;
    char outcome[64];
    char ended[48];

    cli_outcome_text(record, outcome);
    cli_time_for(cli_stderr_is_tty(), record->ended_ms, ended);
    run_say(
        run, RUN_ERROR,
        "%s at %s, and its output was not kept: it was too long, or the store had no room",
        outcome, ended);
    return CLI_NOT_KEPT;
}

static int replay(struct run *run)
{
    const struct idem_record *record = run->attempt->record;
    struct idem_form form;
    char outcome[64];
    char ended[48];
    int write_error;
    int recorded;
    int status;

    idem_form_read(&record->result, &form);
    recorded = cli_replay_status(record, &form);
    if (form.has_exit) {
        run->report.exit_status = form.exit_status;
    }
    run->report.not_kept = form.kind == IDEM_FORM_NOT_KEPT;
    if (run->options->replay == RUN_REPLAY_QUIET) {
        return recorded;
    }
    if (run->report.not_kept) {
        return say_not_kept(run);
    }
    if (has_no_output(&form)) {
        cli_outcome_text(record, outcome);
        cli_time_for(cli_stderr_is_tty(), record->ended_ms, ended);
        run_say(run, RUN_NOTICE, "%s at %s; its output was not kept", outcome,
                ended);
        return recorded;
    }
    IDEM__CRASH_POINT("run/answer/replays");
    status = write_result(run, &form, &write_error);
    IDEM__CRASH_POINT("run/answer/replayed");
    if (status != 0) {
        return status;
    }
    remark_replay(run);
    return run_passed_on(run, write_error, recorded);
}

/* A quiet job is not told that somebody is at work. */
static int refuse_busy(const struct run *run)
{
    if (run_says(run, RUN_NOTICE)) {
        (void)cli_refuse(run->attempt, run->options->store);
    }
    return (int)run->options->busy_exit;
}

int run_answer(struct run *run)
{
    const struct idem_attempt *attempt = run->attempt;

    switch (attempt->verdict) {
    case IDEM_REPLAY:
        return replay(run);
    case IDEM_FAILED:
        if (attempt->record->result.meta.len > 0) {
            return replay(run);
        }
        break;
    case IDEM_BUSY:
    case IDEM_RELEASED:
        return refuse_busy(run);
    case IDEM_STARTED:
    case IDEM_MISMATCH:
    case IDEM_UNKNOWN:
        break;
    }
    return cli_refuse(attempt, run->options->store);
}
