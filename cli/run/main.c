/* idem run: runs a command once for each key, and replays its outcome.
 *
 * run_main() is the whole of it, from the command line to the exit status. Each step
 * gives 0, or the exit status with which the run ends there. */
#include "run/run.h"

#include "base/crash.h"
#include "options/commands.h"
#include "process/host.h"
#include "run/supervisor.h"
#include "run/work.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <unistd.h>

/* Identify the work: everything that can be checked before a store is touched. 0 with
 * run->asked, or an exit status. */
static int read_command_line(struct run *run, const struct cli_command *command,
                             int argc, char **argv)
{
    int status = run_check_options(command, argc);

    if (status != 0) {
        return status;
    }
    status = cli_patience_choose(command, &run->patience);
    if (status != 0) {
        return status;
    }
    status =
        cli_request_init(&run->asked, command, &run_options.claim, argc, argv);
    if (status != 0) {
        return status;
    }
    status = run_check_key(command, &run->asked.request);
    if (status == 0 && run_options.lock) {
        status = run_lock_key(command, &run->asked);
    }
    if (status != 0) {
        cli_request_finish(&run->asked);
    }
    return status;
}

/* The supervisor gets the nonce of the attempt that we will ask for, so that it
 * knows, if we die, whether that attempt was ours. */
static int start_supervisor(struct run *run, struct supervisor *supervisor)
{
    if (cli_random(run->nonce.bytes, sizeof(run->nonce.bytes)) != 0) {
        cli_say("cannot get random bytes: %s; nothing was run",
                strerror(errno));
        return CLI_UNAVAILABLE;
    }
    supervisor_start(supervisor, run);
    IDEM__CRASH_POINT("run/supervisor-started");
    run->supervisor = supervisor;
    return 0;
}

static int open_store(struct run *run)
{
    struct idem_host host = run_nonce_host(&run->nonce);
    unsigned flags = run->options->dry_run ? IDEM_OPEN_READONLY : 0;
    bool budgets =
        run->options->failures_max != 0 || run->options->retry_after_ms != 0;
    int status =
        cli_open_store_to_wait(run->options->store,
                               flags | (budgets ? IDEM_OPEN_BUDGETS : 0), &host,
                               &run->asked.request.wait_ms, &run->store);

    if (status != 0) {
        status_report_set_error(&run->report, "cannot open the store");
        return status;
    }
    IDEM__CRASH_POINT("run/store-opened");
    return 0;
}

static int take_signals(struct run *run)
{
    if (signals_take(&run->signals) != 0) {
        cli_say("cannot watch for signals: %s; nothing was run",
                strerror(errno));
        return CLI_UNAVAILABLE;
    }
    return 0;
}

/* The store has just answered, so record what else waits in the journal. A replay
 * skips this to stay fast. */
static void catch_up(struct run *run)
{
    if (run->report.executed && run->report.recorded) {
        cli_journal_catch_up(run->store, run_says(run, RUN_REMARK));
    }
}

/* Undo whatever was set up. The supervisor was started first, so its end is awaited
 * last. */
static void finish(struct run *run)
{
    signals_give_back(&run->signals);
    catch_up(run);
    idem_attempt_destroy(run->attempt);
    idem_close(run->store);
    if (run->supervisor != NULL) {
        supervisor_finish(run->supervisor);
    }
}

/* True if the current window may follow the window before: that one is done, or need
 * not be waited for. */
static bool may_follow(const struct run *run, const struct work *work)
{
    if (run->report.executed) {
        return run->report.recorded && work->told == 0;
    }
    return run->attempt->verdict == IDEM_REPLAY ||
           (run->attempt->verdict == IDEM_BUSY && run->options->overlap);
}

/* Run one key, from the start of the supervisor to its end. With @windows the key
 * may be that of the window before; then *@ret_again is true if the current one is
 * to follow. */
static int run_key(struct run *run, const struct windows *windows,
                   bool *ret_again)
{
    struct supervisor supervisor;
    struct work work;
    int status;

    *ret_again = false;

    /* Fork before anything is open that must not be carried across. */
    status = start_supervisor(run, &supervisor);
    if (status != 0) {
        goto done;
    }
    status = open_store(run);
    if (status != 0) {
        goto done;
    }
    status = take_signals(run);
    if (status != 0) {
        goto done;
    }
    if (windows != NULL) {
        status = windows_look_back(windows, run, &run->is_before);
        if (status != 0) {
            goto done;
        }
    }

    /* The journal first: claiming the key over a known outcome could run the work
     * again. Then the key, waiting for it if --wait was given. */
    status = run_settle_journal(run);
    if (status != 0) {
        goto done;
    }
    status = run_claim(run);
    if (status != 0) {
        goto done;
    }

    /* Any verdict but STARTED: nothing runs. Release the supervisor and the signals
     * first, because the reader of the answer may be slow. */
    if (run->attempt->verdict != IDEM_STARTED) {
        *ret_again = run->is_before && may_follow(run, /* work= */ NULL);
        supervisor_dismiss(run->supervisor);
        signals_give_back(&run->signals);
        status = *ret_again ? 0 : run_answer(run);
        goto done;
    }

    work_init(&work, run);
    status = work_start(&work);
    if (status == 0) {
        watch_until_end(&work.watch);
        IDEM__CRASH_POINT("run/finish/ended");
        work_record(&work); /* In the store, or else in the journal. */
        IDEM__CRASH_POINT("run/finish/recorded");
        work_let_go(&work);
        work_pass_output_on(&work);
        IDEM__CRASH_POINT("run/finish/flushed");
        status = work_tell(&work); /* That of the command, if all is well. */
        *ret_again = run->is_before && may_follow(run, &work);
    }
    work_finish(&work);

done:
    finish(run);
    return status;
}

/* Report to programs what happened. */
static void report(struct run *run, int status)
{
    if (run_options.status_fd_given) {
        status_report_tell(&run->report, status, (int)run_options.status_fd);
    }
    status_report_finish(&run->report);
}

/* Run what is left of the window before, then the current one. The status is that of
 * the first that did not end well. */
static int run_windows(struct run *run, const struct windows *windows)
{
    const struct run fresh = *run;
    int status_before;
    int status;
    bool again;

    status_before = run_key(run, windows, &again);
    if (!again) {
        return status_before;
    }
    report(run, status_before);
    *run = fresh;
    status = windows_take(windows, run, &windows->current);
    if (status == 0) {
        status_report_init(&run->report, run->asked.request.scope,
                           run->asked.request.key);
        status = run_key(run, /* windows= */ NULL, &again);
    }
    return status_before != 0 ? status_before : status;
}

/* --drain: the writer of our standard input must not get SIGPIPE because we run
 * nothing. */
static void drain_input(const struct run *run)
{
    char ignored[16384];

    if (run->options->drain && !run->report.executed) {
        while (read(STDIN_FILENO, ignored, sizeof(ignored)) > 0) {
        }
    }
}

static int run_main(const struct cli_command *command, int argc, char **argv)
{
    struct run run = {.options = &run_options,
                      .argv = argv,
                      .signals = {.fd = -1}};
    struct windows windows;
    int status;
    bool again;

    status = read_command_line(&run, command, argc, argv);
    if (status != 0) {
        return status;
    }
    if (run_options.every != NULL) {
        status = windows_choose(&windows, &run, command);
        if (status != 0) {
            cli_request_finish(&run.asked);
            return status;
        }
    }
    status_report_init(&run.report, run.asked.request.scope,
                       run.asked.request.key);
    if (run_options.dry_run) {
        status = open_store(&run);
        if (status == 0) {
            status = run_dry(&run);
        }
        finish(&run);
    } else if (run_options.every != NULL) {
        status = run_windows(&run, &windows);
    } else {
        status = run_key(&run, /* windows= */ NULL, &again);
    }
    report(&run, status);
    drain_input(&run);
    cli_request_finish(&run.asked);
    return status;
}

static const char *const examples[] = {
    "idem run -k backup --every day -- /usr/local/bin/backup",
    "idem run -k deploy-1.4 --outcome jobs --max-failures 3 -- ./deploy 1.4",
    "idem run --input @order.json --key-from .id --fingerprint-from .sum -- ./pay",
    NULL,
};

const struct cli_command cli_run = {
    .name = "run",
    .summary = "run a command once for each key, and replay its outcome",
    .usage = "idem run [OPTION...] -k KEY -- COMMAND [ARG...]",
    .examples = examples,
    .options = run_option_table,
    .run = run_main,
    .takes_command = true,
    .hint = "name the key with --key KEY",
};
