/* The command line of idem run: its options, and which of them exclude each other. */
#include "options/command.h"
#include "options/common.h"
#include "request/request.h"
#include "run/run.h"
#include "run/work.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/exit_status.h"

#include <fcntl.h>
#include <unistd.h>

#define MEBIBYTE ((uint64_t)1 << 20)

struct run_options run_options = {
    .claim = CLI_CLAIM_INIT,
    .max_output = 16 * MEBIBYTE,
    .kill_after_ms = 5000,
};

static const char *const capture_names[] = {
    [RUN_CAPTURE_BOTH] = "both",
    [RUN_CAPTURE_NONE] = "none",
    NULL,
};

static const char *const replay_names[] = {
    [RUN_REPLAY_PRINT] = "print",
    [RUN_REPLAY_QUIET] = "quiet",
    NULL,
};

struct cli_option run_option_table[] = {
    CLI_CLAIM_OPTIONS(&run_options.claim),
    CLI_SWITCH("key-from-args", &run_options.claim.from_args,
               "make the key from the command line"),
    CLI_SWITCH("lock", &run_options.lock,
               "hold the key while it runs; record nothing"),
    CLI_VALUE("every", "PERIOD", CLI_TEXT, &run_options.every,
              "once per period: 15m, 6h, hour, day, week, month"),
    CLI_VALUE("zone", "NAME", CLI_TEXT, &run_options.zone,
              "time zone of --every: Europe/Berlin (UTC)"),
    CLI_SWITCH("overlap", &run_options.overlap,
               "start even if the previous period still runs"),
    CLI_VALUE("replay", "HOW", CLI_CHOICE, &run_options.replay,
              "print: the output too; quiet: the status alone",
              .choices = replay_names,
              .group = "Options of the command and its outcome"),
    CLI_SWITCH("drain", &run_options.drain,
               "if nothing runs, read standard input to its end"),
    CLI_OPTION_OUTCOME(&run_options.outcome,
                       "meaning of statuses (75=release *=complete)"),
    CLI_OPTION_MAX_FAILURES(&run_options.failures_max),
    CLI_OPTION_RETRY_AFTER(&run_options.retry_after_ms),
    CLI_OPTION_KILL_AFTER(&run_options.kill_after_ms),
    CLI_OPTION_MAX_TIME(&run_options.max_time_ms),
    CLI_SWITCH("allow-background", &run_options.allow_background,
               "do not stop processes that outlive the command"),
    CLI_VALUE("max-output", "SIZE", CLI_SIZE, &run_options.max_output,
              "record up to SIZE of output (16M), else none",
              .as = IDEM_SETTING_MAX_RESULT),
    CLI_VALUE("capture", "WHAT", CLI_CHOICE, &run_options.capture,
              "both: record the output; none: leave it alone",
              .choices = capture_names),
    CLI_VALUE("status-fd", "N", CLI_COUNT, &run_options.status_fd,
              "write a JSON status line to descriptor N", .max = INT32_MAX,
              .given = &run_options.status_fd_given),
    CLI_OPTION_JOURNAL(&run_options.journal),
    CLI_SWITCH("dry-run", &run_options.dry_run,
               "print what would happen, change nothing", .letter = 'n'),
    CLI_OPTION_VERBOSE(&run_options.verbose),
    CLI_OPTION_QUIET(&run_options.quiet),
    CLI_OPTION_STORE(&run_options.store),
    {.name = NULL},
};

/* Only idem writes the report: the command does not inherit the descriptor, unless
 * it is a standard stream. */
static int check_status_fd(const struct cli_command *command)
{
    int fd = (int)run_options.status_fd;
    int flags = fcntl(fd, F_GETFD);

    if (flags < 0) {
        return cli_usage(command, "--status-fd: descriptor %d is not open", fd);
    }
    if (fd > STDERR_FILENO) {
        (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    }
    return 0;
}

/* A lock keeps no record: requests are not compared, nothing is replayed, and every
 * ending releases it. */
static int choose_lock(const struct cli_command *command)
{
    struct cli_claim *claim = &run_options.claim;
    const char *refused = NULL;

    if (run_options.outcome != NULL) {
        refused = "outcome";
    } else if (run_options.every != NULL) {
        refused = "every";
    } else if (claim->on_expired_lease == IDEM_HOLD) {
        refused = "on-expired-lease hold";
    }
    if (refused != NULL) {
        return cli_usage(command, "--lock keeps no outcome: leave out --%s",
                         refused);
    }
    claim->on_expired_lease = IDEM_RERUN;
    claim->fingerprint = "none";
    claim->attempts_max = 0;
    claim->wait_then_run = claim->wait_ms > 0;
    run_options.capture = RUN_CAPTURE_NONE;
    return 0;
}

int run_lock_key(const struct cli_command *command, struct cli_request *asked)
{
    static const char prefix[] = "=lock:";
    struct cli_key_text *key = &asked->key;

    if (key->len + strlen(prefix) > IDEM_KEY_MAX) {
        return cli_usage(command,
                         "--lock: the name of a lock has at most %zu bytes",
                         IDEM_KEY_MAX - strlen(prefix));
    }
    memmove(key->bytes + strlen(prefix), key->bytes, key->len + 1);
    memcpy(key->bytes, prefix, strlen(prefix));
    key->len += strlen(prefix);
    asked->request.key = idem_bytes(key->bytes, key->len);
    return 0;
}

int run_check_options(const struct cli_command *command, int argc)
{
    const struct cli_claim *claim = &run_options.claim;
    struct idem_error error = {0};

    if (argc < 1) {
        return cli_usage(
            command,
            "no command given: idem run [OPTION...] -k KEY -- COMMAND [ARG...]");
    }
    if (claim->key == NULL && claim->key_file == NULL &&
        claim->key_from == NULL && !claim->from_args) {
        return cli_usage(
            command,
            "no key given: name the operation with --key KEY (an order number, a date), select it from the request with --input @FILE --key-from SEL, or make it from the command line with --key-from-args");
    }
    if (idem_outcome_table_read(&run_options.outcomes, IDEM_ENDINGS_EXIT,
                                run_options.outcome, &error) != 0) {
        return cli_usage(command, "--outcome: %s", error.text);
    }
    if ((run_options.failures_max != 0 || run_options.retry_after_ms != 0) &&
        !ending_may_be_retry(&run_options.outcomes)) {
        return cli_usage(
            command,
            "--%s applies to retries, and no entry of --outcome is one: use jobs, or add *=retry",
            run_options.failures_max != 0 ? "max-failures" : "retry-after");
    }
    if (run_options.every == NULL &&
        (run_options.zone != NULL || run_options.overlap)) {
        return cli_usage(command, "--%s needs --every PERIOD",
                         run_options.zone != NULL ? "zone" : "overlap");
    }
    if (run_options.lock && choose_lock(command) != 0) {
        return CLI_USAGE;
    }
    return run_options.status_fd_given ? check_status_fd(command) : 0;
}

/* The command gets the key in its environment, which cannot hold a NUL. */
int run_check_key(const struct cli_command *command,
                  const struct idem_request *request)
{
    if (memchr(request->key.base, '\0', request->key.len) != NULL) {
        return cli_usage(
            command,
            "the key contains a NUL byte, which an environment variable cannot hold");
    }
    return 0;
}
