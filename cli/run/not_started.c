/* The answer of a run that runs nothing: the recorded outcome, the reason for a
 * refusal, or what --dry-run found. */
#include "base/crash.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "record/record.h"
#include "record/verdict.h"
#include "run/frames.h"
#include "run/run.h"
#include "run/status_report.h"
#include "store/journal.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <errno.h>
#include <idem/form.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Output that cannot be written to our stdout ---- */

/* True if an outcome is recorded that a replay will give again. */
static bool is_outcome(const struct status_report *report)
{
    return report->status != NULL &&
           (strcmp(report->status, "completed") == 0 ||
            strcmp(report->status, "failed") == 0);
}

static void print_what_is_lost(FILE *f, const struct run *run)
{
    if (!is_outcome(&run->report)) {
        (void)fputs("part of the output is lost", f);
    } else if (run->report.not_kept) {
        (void)fputs(
            "the outcome is recorded without its output, part of which is lost; a larger --max-output keeps it",
            f);
    } else {
        (void)fputs("the outcome is recorded; print its output again with: ",
                    f);
        cli_print_remedy(f, "show", " --output", run->attempt->record,
                         run->options->store);
    }
}

static void say_lost(struct run *run, int write_error)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (f != NULL) {
        print_what_is_lost(f, run);
        (void)fclose(f);
    }
    run_say(run, RUN_ERROR, "cannot write to standard output: %s; %s",
            strerror(write_error), text != NULL ? text : "out of memory");
    free(text);
    status_report_set_error(&run->report, "cannot write to standard output");
}

/* EPIPE is not a failure: the reader of a pipeline had enough. Where no outcome is
 * recorded, the status that says so matters more than CLI_OUTPUT_LOST. */
int run_passed_on(struct run *run, int write_error, int status)
{
    if (write_error == 0 || write_error == EPIPE) {
        return status;
    }
    say_lost(run, write_error);
    return is_outcome(&run->report) ? CLI_OUTPUT_LOST : status;
}

/* ---- Replays and refusals ---- */

/* The commands that run a failure again, whose cause may be fixed by now. NULL: out
 * of memory. */
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
            reopen != NULL ? "; to run it again:" : "",
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
        run_say(run, RUN_ERROR, "%s; none of it was printed", damaged);
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

/* True if there was never any output to keep. */
static bool has_no_output(const struct idem_form *form)
{
    return form->kind != IDEM_FORM_HTTP && form->bytes.len == 0 &&
           form->content_type.len == 0;
}

/* Never exit with success and an empty stdout where there was output: the next
 * program would take the nothing for it. */
static int say_not_kept(struct run *run)
{
    const struct idem_record *record = run->attempt->record;
    char outcome[64];
    char ended[48];

    cli_outcome_text(record, outcome);
    cli_time_for(cli_stderr_is_tty(), record->ended_ms, ended);
    run_say(
        run, RUN_ERROR,
        "%s at %s; its output was not kept: it was too long, or the store was full",
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
    IDEM__CRASH_POINT("run/not_started/replays");
    status = write_result(run, &form, &write_error);
    IDEM__CRASH_POINT("run/not_started/replayed");
    if (status != 0) {
        return status;
    }
    remark_replay(run);
    return run_passed_on(run, write_error, recorded);
}

/* With -q the busy status alone says that another owner is at work. */
static int refuse_busy(const struct run *run)
{
    if (run_says(run, RUN_NOTICE)) {
        (void)cli_refuse(run->attempt, run->options->store);
    }
    return CLI_BUSY;
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

/* ---- --dry-run ---- */

static bool is_other_request(const struct run *run,
                             const struct idem_record *record)
{
    struct idem_slice asked = run->asked.request.fingerprint;
    struct idem_slice found = record->fingerprint;

    return asked.len > 0 && found.len > 0 &&
           (asked.len != found.len ||
            memcmp(asked.base, found.base, asked.len) != 0);
}

/* Only the store knows whether the lease is over; people get its time, and programs
 * what holds by the clock of this host. */
static int print_in_progress(const struct run *run,
                             const struct idem_record *record)
{
    bool reruns = record->on_expired_lease == IDEM_RERUN &&
                  run->asked.request.on_expired_lease == IDEM_RERUN;
    bool runs = record->lease_end_ms > cli_now_ms();
    char until[48];

    cli_time_for(cli_stdout_is_tty(), record->lease_end_ms, until);
    (void)printf("would %srun: attempt %u is in flight; after its lease (%s) "
                 "%s\n",
                 runs || !reruns ? "not " : "", (unsigned)record->attempts,
                 until, reruns ? "would run again" : "a person must look");
    if (runs) {
        return CLI_BUSY;
    }
    return reruns ? CLI_OK : CLI_UNKNOWN;
}

static void print_outcome(const struct idem_record *record, const char *verb)
{
    struct idem_form form;
    char ended[48];

    cli_time_for(cli_stdout_is_tty(), record->ended_ms, ended);
    (void)printf("would %s: %s at %s", verb, idem_status_name(record->status),
                 ended);
    idem_form_read(&record->result, &form);
    if (form.has_exit || form.exit_status > 0) {
        (void)printf(" with exit status %d", form.exit_status);
    }
    (void)printf("\n");
}

static int print_record(const struct run *run, const struct idem_record *record)
{
    bool has_result = record->result.meta.len > 0;

    switch (idem_record_status(record)) {
    case IDEM_STATUS_IN_PROGRESS:
        return print_in_progress(run, record);
    case IDEM_STATUS_COMPLETED:
        print_outcome(record, "replay");
        return CLI_REPLAY;
    case IDEM_STATUS_FAILED:
        print_outcome(record, has_result ? "replay" : "not run");
        return CLI_FAILED;
    case IDEM_STATUS_UNKNOWN:
        print_outcome(record, "not run");
        return CLI_UNKNOWN;
    case IDEM_STATUS_RELEASED:
    case IDEM_STATUS_RETRY:
        break;
    }
    print_outcome(record, "run");
    return CLI_OK;
}

/* The run records first what waits in the journal: that is then the state of the
 * key. */
static int status_waiting(enum idem_status waits)
{
    switch (waits) {
    case IDEM_STATUS_COMPLETED:
        return CLI_REPLAY;
    case IDEM_STATUS_FAILED:
        return CLI_FAILED;
    case IDEM_STATUS_UNKNOWN:
        return CLI_UNKNOWN;
    case IDEM_STATUS_IN_PROGRESS:
    case IDEM_STATUS_RELEASED:
    case IDEM_STATUS_RETRY:
        break;
    }
    return CLI_OK;
}

int run_dry(struct run *run)
{
    const struct idem_request *asked = &run->asked.request;
    const struct idem_record *record;
    struct idem_answer *answer;
    struct idem_error error = {0};
    enum idem_status waits;
    int status;

    waits = cli_journal_peek(run->store, asked->scope, asked->key);
    if (waits != 0) {
        (void)printf("would first record it as %s, as the journal has it\n",
                     idem_status_name(waits));
    }
    error.code =
        idem_get(run->store, asked->scope, asked->key, &answer, &error);
    if (error.code == IDEM_ENOTFOUND) {
        (void)printf("would run: the key has no record\n");
        return CLI_OK;
    }
    if (error.code != 0) {
        status_report_set_error(&run->report, error.text);
        return cli_fail_with(&error);
    }
    record = idem_answer_record(answer);
    if (record->status != IDEM_STATUS_RELEASED &&
        is_other_request(run, record)) {
        (void)printf("would not run: the key was used for another request\n");
        status = CLI_MISMATCH;
    } else {
        status = print_record(run, record);
        status = waits != 0 ? status_waiting(waits) : status;
    }
    run->report.status = idem_status_name(idem_record_status(record));
    run->report.fence = record->fence;
    run->report.attempts = record->attempts;
    idem_answer_destroy(answer);
    return status;
}
