/* idem run: runs a command once for each key, and replays its outcome. */
#include "run/run.h"

#include "options/common.h"
#include "options/usage.h"
#include "process/crash.h"
#include "run/commands.h"
#include "run/supervisor.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#define MEBIBYTE ((uint64_t)1 << 20)

static struct run_options options = {
    .claim = CLI_CLAIM_INIT,
    .release_on = {.has = {[CLI_BUSY] = true}},
    .max_output = 16 * MEBIBYTE,
    .busy_exit = CLI_BUSY,
    .kill_after_ms = 5000,
};

static const char *const on_failure_names[] = {
    [RUN_KEEP] = "keep",       [RUN_FAIL] = "fail",   [RUN_UNKNOWN] = "unknown",
    [RUN_RELEASE] = "release", [RUN_RETRY] = "retry", NULL,
};

static const char *const capture_names[] = {
    [RUN_CAPTURE_BOTH] = "both",
    [RUN_CAPTURE_NONE] = "none",
    NULL,
};

static struct cli_option option_table[] = {
    CLI_CLAIM_OPTIONS(&options.claim),
    {.name = "key-from-args",
     .kind = CLI_FLAG,
     .target = &options.claim.from_args,
     .help = "make the key from the command line"},
    {.name = "on-failure",
     .kind = CLI_CHOICE,
     .target = &options.on_failure,
     .arg = "RULE",
     .choices = on_failure_names,
     .help = "a failure: keep (default), retry, fail, unknown, release"},
    {.name = "release-on",
     .kind = CLI_CODES,
     .target = &options.release_on,
     .arg = "CODES",
     .help = "statuses of: nothing happened, try again (75)"},
    CLI_OPTION_KILL_AFTER(&options.kill_after_ms),
    CLI_OPTION_MAX_TIME(&options.max_time_ms),
    {.name = "allow-background",
     .kind = CLI_FLAG,
     .target = &options.allow_background,
     .help = "let processes that outlive the command go on"},
    {.name = "max-output",
     .kind = CLI_SIZE,
     .target = &options.max_output,
     .arg = "SIZE",
     .max = IDEM_RESULT_MAX,
     .help = "record up to SIZE of output (16M), else none"},
    {.name = "capture",
     .kind = CLI_CHOICE,
     .target = &options.capture,
     .arg = "WHAT",
     .choices = capture_names,
     .help = "both: record the output; none: leave it alone"},
    {.name = "pty",
     .kind = CLI_FLAG,
     .target = &options.pty,
     .help = "give the command a terminal; its output is one stream"},
    {.name = "busy-exit",
     .kind = CLI_COUNT,
     .target = &options.busy_exit,
     .arg = "STATUS",
     .max = 255,
     .help = "exit status where another is at work (75)"},
    {.name = "status-fd",
     .kind = CLI_COUNT,
     .target = &options.status_fd,
     .arg = "N",
     .max = INT32_MAX,
     .given = &options.status_fd_given,
     .help = "say what happened, in a line of JSON, to N"},
    {.name = "status-file",
     .kind = CLI_TEXT,
     .target = &options.status_file,
     .arg = "FILE",
     .help = "say it in FILE, which is replaced"},
    {.name = "tag",
     .kind = CLI_TEXT,
     .target = &options.tag,
     .arg = "TAG",
     .help = "send idem's own lines to syslog too, as TAG"},
    CLI_OPTION_JOURNAL(&options.journal),
    {.name = "dry-run",
     .letter = 'n',
     .kind = CLI_FLAG,
     .target = &options.dry_run,
     .help = "only say what would happen"},
    CLI_OPTION_VERBOSE(&options.verbose),
    CLI_OPTION_QUIET(&options.quiet),
    CLI_OPTION_STORE(&options.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem run -k backup-$(date +%F) -- /usr/local/bin/backup",
    "idem run -k order-42 --wait 30s -- ./charge 42",
    "idem run -k import-7 --on-expired-lease rerun -- ./import 7",
    "idem run -k deploy-1.4 --on-failure retry -- ./deploy 1.4",
    "idem run --key-from-args --busy-exit 0 -q -- make nightly",
    "idem run -k mail-9 --input @mail.json -- ./send",
    "idem run --input @order.json --key-from .id --fingerprint-from .sum -- ./pay",
    NULL,
};

/* The report is ours to tell: the command does not get the descriptor, unless it
 * is one of the three that everybody has. */
static int check_status_fd(const struct cli_command *command)
{
    int fd = (int)options.status_fd;
    int flags = fcntl(fd, F_GETFD);

    if (flags < 0) {
        return cli_usage(command, "--status-fd: descriptor %d is not open", fd);
    }
    if (fd > STDERR_FILENO) {
        (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    }
    return 0;
}

static int check(const struct cli_command *command, int argc)
{
    const struct cli_claim *claim = &options.claim;

    if (argc < 1) {
        return cli_usage(
            command,
            "no command given: idem run [OPTION...] -k KEY -- COMMAND [ARG...]");
    }
    if (claim->key == NULL && claim->key_file == NULL &&
        claim->key_from == NULL && !claim->from_args) {
        return cli_usage(command,
                         "which operation is this? Name it with --key KEY (an "
                         "order number, a date), select it from the request "
                         "with --input @FILE --key-from JQ, or let "
                         "--key-from-args make a key of the command line");
    }
    if (options.release_on.has[0]) {
        return cli_usage(command, "--release-on: 0 is success, and is kept");
    }
    if (options.pty && options.capture == RUN_CAPTURE_NONE) {
        return cli_usage(command, "--pty passes the output through idem: it "
                                  "cannot go with --capture none");
    }
    return options.status_fd_given ? check_status_fd(command) : 0;
}

/* The key is passed on in the environment, where no NUL can be. */
static int check_key(const struct cli_command *command,
                     const struct idem_request *request)
{
    if (memchr(request->key.base, '\0', request->key.len) != NULL) {
        return cli_usage(command, "there is a NUL in the key, which the "
                                  "environment of a command cannot hold");
    }
    return 0;
}

/* Claims the key, and gives the answer or does the work. */
static int claim_and_act(struct run *run)
{
    int status = run_claim(run);

    if (status != 0) {
        return status;
    }
    if (run->attempt->verdict == IDEM_STARTED) {
        /* The claim was worth a longer wait than renewals are, during which the
         * end of the command would not be noticed. */
        cli_patience_set(run->store,
                         cli_patience_ms(&run->patience, run->store, 0));
        return run_work(run);
    }
    supervisor_dismiss(run->supervisor);
    signals_give_back(&run->signals); /* No process or file remains from here
                                         on. */
    return run_answer(run);
}

/* The store has just answered: what else waits for it is told now. A replay has
 * no time for that. */
static void catch_up(struct run *run)
{
    if (run->report.executed && run->report.recorded) {
        cli_journal_catch_up(run->store, run_says(run, RUN_REMARK));
    }
}

/* In an open store. */
static int act_in_store(struct run *run)
{
    int status;

    if (options.dry_run) {
        status = run_dry(run);
    } else if (signals_take(&run->signals) != 0) {
        cli_say("cannot watch for signals: %s; nothing was run",
                strerror(errno));
        status = CLI_UNAVAILABLE;
    } else {
        status = claim_and_act(run);
        signals_give_back(&run->signals);
        catch_up(run);
    }
    idem_attempt_destroy(run->attempt);
    idem_close(run->store);
    return status;
}

static int open_and_act(struct run *run)
{
    struct idem_host host = run_nonce_host(&run->nonce);
    int status;

    status =
        cli_open_store_to_wait(options.store,
                               options.dry_run ? IDEM_OPEN_READONLY : 0, &host,
                               &run->asked.request.wait_ms, &run->store);
    if (status != 0) {
        status_report_set_error(&run->report, "the store cannot be opened");
        return status;
    }
    CLI_CRASH_POINT("run/store-opened");
    return act_in_store(run);
}

/* The supervisor comes before everything that must not be carried across fork. */
static int act(struct run *run)
{
    struct supervisor supervisor;
    int status;

    if (options.dry_run) {
        return open_and_act(run);
    }
    if (getrandom(run->nonce.bytes, sizeof(run->nonce.bytes), 0) !=
        (ssize_t)sizeof(run->nonce.bytes)) {
        cli_say("random numbers are not available: %s; nothing was run",
                strerror(errno));
        return CLI_UNAVAILABLE;
    }
    supervisor_start(&supervisor, run);
    CLI_CRASH_POINT("run/supervisor-started");
    run->supervisor = &supervisor;
    status = open_and_act(run);
    supervisor_finish(&supervisor);
    return status;
}

static int run_main(const struct cli_command *command, int argc, char **argv)
{
    struct run run = {.options = &options, .argv = argv, .signals = {.fd = -1}};
    int status;

    if (options.tag != NULL) {
        cli_say_to_syslog(options.tag);
    }
    status = check(command, argc);
    if (status == 0) {
        status = cli_journal_choose(command, &options.journal);
    }
    if (status == 0) {
        status = cli_patience_choose(command, &run.patience);
    }
    if (status == 0) {
        status =
            cli_request_init(&run.asked, command, &options.claim, argc, argv);
    }
    if (status != 0) {
        return status;
    }
    status = check_key(command, &run.asked.request);
    if (status == 0) {
        status_report_init(&run.report, run.asked.request.scope,
                           run.asked.request.key);
        status = act(&run);
        status_report_tell(&run.report, status,
                           options.status_fd_given ? (int)options.status_fd
                                                   : -1,
                           options.status_file);
        status_report_finish(&run.report);
    }
    cli_request_finish(&run.asked);
    return status;
}

const struct cli_command cli_run = {
    .name = "run",
    .summary = "run a command once for each key, and replay its outcome",
    .usage = "idem run [OPTION...] -k KEY -- COMMAND [ARG...]",
    .examples = examples,
    .options = option_table,
    .run = run_main,
    .takes_command = true,
    .hint = "name the key with --key KEY",
};
