/* STARTED: runs the command and records how it ended. */
#include "run/work.h"

#include "base/crash.h"
#include "run/descendants.h"
#include "run/run.h"
#include "run/signals.h"
#include "run/status_report.h"
#include "run/supervisor.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <unistd.h>

/* ---- A process of the command that may be alive ---- */

/* How the command itself ended. */
static const char *end_of(const struct watch *watch,
                          const struct ending *ending)
{
    return watch->ended ? ending->text : "the command was told to stop";
}

static void say_next(struct run *run, const char *what)
{
    const struct idem_record *record = run->attempt->record;
    char until[32];

    if (record->lease_ms == IDEM_NEVER) {
        run_say_resolve(
            run, RUN_ERROR,
            "%s; nothing was recorded, and the key stays claimed: its lease never ends; once the process is gone, record the outcome:",
            what);
        return;
    }
    cli_time_text(record->lease_end_ms, until);
    if (record->on_expired_lease == IDEM_RERUN) {
        run_say(
            run, RUN_ERROR,
            "%s; nothing was recorded, and the key stays claimed until its lease ends at %s; the next run then takes over: end the process first",
            what, until);
    } else {
        run_say_resolve(
            run, RUN_ERROR,
            "%s; nothing was recorded, and the key stays claimed until its lease ends at %s; its outcome is unknown then: find out and record it:",
            what, until);
    }
}

/* Report who is alive and what happens next, and record nothing: a record that the
 * work or its lease ended would let another attempt start beside it. Returns the exit
 * status. */
static int survived_say(struct run *run, const struct watch *watch,
                        const struct ending *ending)
{
    enum idem_status own = self_report(run->store, run->attempt);
    char who[SURVIVOR_TEXT_MAX];
    char what[SURVIVOR_TEXT_MAX + sizeof(ending->text) + 8]; /* ", but " */

    descendants_describe(&watch->survivor, who, sizeof(who));
    (void)snprintf(what, sizeof(what), "%s, but %s", end_of(watch, ending),
                   who);
    status_report_set_error(&run->report, what);
    if (own != 0) {
        run->report.recorded = true;
        run->report.status = idem_status_name(own);
        run_say(run, RUN_ERROR, "%s; recorded as %s by the command itself",
                what, run->report.status);
        return watch->ended ? ending->exit_status : CLI_NOT_RECORDED;
    }
    say_next(run, what);
    return CLI_NOT_RECORDED;
}

/* ---- What idem reports ---- */

static void say_retried(const struct run *run, const struct ending *ending)
{
    const struct idem_record *record = run->attempt->record;
    char pause[32];

    if (record->status == IDEM_STATUS_FAILED) {
        run_say_resolve(
            run, RUN_NOTICE,
            "%s; failure %u of %u: it is not run again; fix the cause, then record the outcome:",
            ending->text, (unsigned)record->failures,
            (unsigned)run->options->failures_max);
    } else if (run->options->retry_after_ms > 0) {
        cli_span_text(run->options->retry_after_ms, pause);
        run_say(run, RUN_REMARK, "%s; a run after %s retries it", ending->text,
                pause);
    } else {
        run_say(run, RUN_REMARK, "%s; the next run retries it", ending->text);
    }
}

static void say_recorded(const struct run *run, const struct ending *ending)
{
    if (ending->status == IDEM_STATUS_UNKNOWN) {
        run_say_resolve(
            run, RUN_ERROR,
            "%s; what it had done by then is unknown: find out, then record the outcome:",
            ending->text);
    } else if (ending->status == IDEM_STATUS_RETRY) {
        say_retried(run, ending);
    } else if (ending->status == IDEM_STATUS_IN_PROGRESS) {
        run_say(run, RUN_DETAIL,
                "%s; its lease was ended, and the next run takes over",
                ending->text);
    } else {
        run_say(run, RUN_DETAIL, "%s; recorded as %s", ending->text,
                run->report.status);
    }
}

static void say_why_stopped(struct run *run, const struct watch *watch,
                            const char *why)
{
    status_report_set_error(&run->report, why);
    run_say(run, RUN_ERROR, "the command was %s: %s",
            watch->survived ? "told to stop" : "stopped", why);
}

/* Always report that idem stopped the command: otherwise it looks like a crash. */
static void say_stopped(struct run *run, const struct watch *watch)
{
    const struct idem_error *error = &watch->lease.error;

    if (watch->supervisor_died) {
        say_why_stopped(run, watch, "its supervisor was killed");
    } else if (watch->left && !watch->survived) {
        run_say(
            run, RUN_NOTICE,
            "processes outlived the command and were stopped; --allow-background keeps them");
    }
    if (!watch->end.cut_short && watch->end.signal == 0) {
        return;
    }
    switch (watch->stopping) {
    case SUPERVISOR_WHY_NOT:
    case SUPERVISOR_WHY_LEFT:
    case SUPERVISOR_WHY_ORPHANED:
        break;
    case SUPERVISOR_WHY_LEASE:
    case SUPERVISOR_WHY_ORDER:
        say_why_stopped(run, watch,
                        error->code != 0 ? error->text
                                         : "its lease was not renewed in time");
        break;
    case SUPERVISOR_WHY_MAX_TIME:
        say_why_stopped(run, watch, "it ran longer than --max-time");
        break;
    }
}

/* ---- Its start ---- */

/* A fatal signal that came before there was a command to forward it to, or 0. */
static int early_signal(struct run *run)
{
    int signo;

    do {
        signo = signals_next(&run->signals);
    } while (signo != 0 && !signals_is_fatal(signo));
    return signo;
}

/* Report why the work may have been done before: how the previous attempt ended. */
static void say_takeover(const struct run *run)
{
    const struct idem_record *record = run->attempt->record;
    unsigned attempts = (unsigned)run->attempt->attempts;
    char who[4 * IDEM_OWNER_MAX + 1];

    switch (record->history_len > 0 ? record->history[0].end
                                    : IDEM_PAST_TAKEN_OVER) {
    case IDEM_PAST_REOPENED:
        run_say(run, RUN_REMARK, "attempt %u: reopened by %s", attempts,
                cli_escape(record->history[0].owner, who, sizeof(who)));
        break;
    case IDEM_PAST_RETRIED:
        run_say(
            run, RUN_REMARK,
            "attempt %u: the previous attempt failed and may have had effects",
            attempts);
        break;
    case IDEM_PAST_TAKEN_OVER:
        run_say(run, RUN_REMARK,
                "attempt %u: the previous attempt ended without an outcome",
                attempts);
        break;
    case IDEM_PAST_RELEASED:
    case IDEM_PAST_RESOLVED:
        run_say(run, RUN_REMARK,
                "attempt %u: an earlier attempt ended without an outcome",
                attempts);
        break;
    }
}

void work_init(struct work *ret_work, struct run *run)
{
    struct work *work = ret_work;

    memset(work, 0, sizeof(*work));
    work->run = run;
    work->watch.signals = &run->signals;
    work->watch.terminal = &work->terminal;
    work->watch.supervisor = run->supervisor;
    work->watch.allow_background = run->options->allow_background;
    work->watch.out.from = -1;
    work->watch.err.from = -1;
    terminal_init(&work->terminal);
    recorder_init(&work->recorder, (size_t)run->options->max_output);
}

int work_start(struct work *work)
{
    struct run *run = work->run;
    struct watch *watch = &work->watch;
    int signo = early_signal(run);
    int status;

    if (signo != 0) {
        return launch_give_up(run, 128 + signo, "stopped before it was run");
    }
    if (pump_init(&watch->out, FRAME_STDOUT, STDOUT_FILENO, &work->recorder) !=
            0 ||
        pump_init(&watch->err, FRAME_STDERR, STDERR_FILENO, &work->recorder) !=
            0) {
        run_say(run, RUN_ERROR, "out of memory; nothing was run");
        return launch_give_up(run, CLI_UNAVAILABLE, "out of memory");
    }
    if (run->attempt->takeover) {
        say_takeover(run);
    }
    status = launch(run, watch);
    run->report.executed = status == 0;
    return status;
}

/* ---- Its end ---- */

void work_record(struct work *work)
{
    const struct watch *watch = &work->watch;
    struct ending *ending = &work->ending;
    struct run *run = work->run;
    bool died = watch->end.signal != 0;

    ending_decide(run->options, run->attempt->record->on_expired_lease,
                  &watch->end, ending);
    if (run->options->capture == RUN_CAPTURE_BOTH) {
        recorder_result(&work->recorder, &ending->result);
    }
    run->report.signal = watch->end.signal;
    run->report.exit_status = died || !watch->ended ? -1 : ending->exit_status;
    if (!watch->survived) {
        work->error.code = ending_record(run, ending, &work->error);
    }
}

void work_let_go(struct work *work)
{
    struct run *run = work->run;

    supervisor_dismiss(run->supervisor);
    IDEM__CRASH_POINT("run/finish/dismissed");
    work->told = signals_drop(&run->signals);
    signals_give_back(&run->signals);
}

/* The outcome is recorded, so a signal that ends us now costs no more than the rest
 * of this copy. A signal that came during the recording is raised again here, unless
 * the readers kept up: its sender will not send it twice, and a blocked reader may
 * never come. */
void work_pass_output_on(struct work *work)
{
    struct watch *watch = &work->watch;
    bool all = pump_try(&watch->out);

    all = pump_try(&watch->err) && all;
    if (!all && work->told != 0) {
        (void)raise(work->told);
    }
    pump_flush(&watch->out);
    pump_flush(&watch->err);
    if (watch->err.sink_error != 0) {
        run_say(work->run, RUN_DETAIL, "cannot write to stderr: %s",
                strerror(watch->err.sink_error));
    }
}

int work_tell(struct work *work)
{
    const struct watch *watch = &work->watch;
    struct run *run = work->run;
    int status = work->ending.exit_status;

    say_stopped(run, watch);
    if (watch->survived) {
        status = survived_say(run, watch, &work->ending);
    } else if (work->error.code != 0) {
        status = ending_not_recorded(run, &work->ending, &work->error);
    } else {
        say_recorded(run, &work->ending);
    }
    return run_passed_on(run, watch->out.sink_error, status);
}

void work_finish(struct work *work)
{
    pump_finish(&work->watch.err);
    pump_finish(&work->watch.out);
    recorder_finish(&work->recorder);
    terminal_finish(&work->terminal);
}
