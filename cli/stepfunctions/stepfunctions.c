/* idem stepfunctions: starts executions of AWS Step Functions, one for each key. */
#include "options/command.h"
#include "options/common.h"
#include "options/usage.h"
#include "record/record.h"
#include "record/verdict.h"
#include "request/identity.h"
#include "request/request.h"
#include "stepfunctions/commands.h"
#include "store/journal.h"
#include "store/open.h"
#include "store/patience.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/screen.h"
#include "text/text.h"
#include "verbs/held.h"

#include <idem/stepfunctions.h>
#include <stdlib.h>

#define NINETY_DAYS_MS ((int64_t)90 * 86400000)

enum {
    RERUN = 1, /* In cli_on_expired_lease: the name protects. */
    ARN_MAX = 256,
    TIME_MS = 20000, /* To ask Step Functions, and at most half of the lease. */
};

static struct {
    struct cli_claim claim;
    const char *state_machine;
    struct cli_journal_choice journal;
    bool json;
    const char *store;
} args = {
    .claim = {.lease_ms = 60000,
              .retention_ms = NINETY_DAYS_MS,
              .on_expired_lease = RERUN},
};

/* ---- Answers ------------------------------------------------------------------- */

static const char *verdict_of(const struct idem_execution *execution)
{
    return execution->state == IDEM_EXECUTION_FOUND ? "found" : "started";
}

/* The result to record, as a line. NULL: no memory. The caller frees it. */
static char *make_result(const struct idem_execution *execution)
{
    struct cli_json json;
    char start[32];
    char *line = NULL;
    size_t len;
    FILE *f = open_memstream(&line, &len);

    if (f == NULL) {
        return NULL;
    }
    cli_time_text(execution->start_ms, start);
    cli_json_init(&json);
    cli_json_text(&json, "executionArn", execution->arn);
    cli_json_text(&json, "startDate", start);
    if (cli_json_write(&json, f) != 0) {
        json.failed = true;
    }
    if (fclose(f) != 0 || json.failed) {
        free(line);
        line = NULL;
    }
    cli_json_finish(&json);
    return line;
}

/* With --json, the verdict and the name before what is recorded. */
static int print_json(const char *verdict, const char *name,
                      struct idem_slice result)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    cli_json_text(&json, "verdict", verdict);
    cli_json_text(&json, "name", name);
    cli_json_bytes(&json, "result", result);
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

static int replay(const struct idem_attempt *attempt, const char *name)
{
    const struct idem_record *record = attempt->record;

    return args.json ? print_json("replay", name, record->result.bytes)
                     : cli_write_result(record);
}

/* ---- An attempt ---------------------------------------------------------------- */

/* Ends it without a result, and says why. Returns @status, unless the end could not
 * be recorded. */
static int end_without(struct cli_held *held, enum idem_status how,
                       const char *why, int status)
{
    struct idem_outcome outcome = {.status = how, .text = idem_str(why)};
    int rc = cli_held_end(held, &outcome, &args.journal);

    return rc != 0 ? rc : status;
}

static int complete(struct cli_held *held, const char *name,
                    const struct idem_execution *execution)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    char *line = make_result(execution);
    int rc;
    int status;

    if (line == NULL) {
        cli_say("out of memory");
        return end_without(held, IDEM_STATUS_RETRY, "out of memory",
                           CLI_INTERNAL);
    }
    if (execution->express) {
        cli_say("%s is EXPRESS, and Step Functions pays no attention to the "
                "names of its executions: only the record of idem keeps a "
                "second one from starting",
                args.state_machine);
    }
    outcome.result.bytes = idem_str(line);
    outcome.result.content_type = idem_str("application/json");
    status = cli_held_end(held, &outcome, &args.journal);
    /* It runs, whether that is on record or not. */
    if (args.json) {
        rc = print_json(verdict_of(execution), name, idem_str(line));
    } else {
        rc = 0;
        (void)fputs(line, stdout);
    }
    free(line);
    return status != 0 ? status : rc;
}

static int say_other_input(struct cli_held *held, const char *name,
                           const struct idem_execution *execution)
{
    cli_say("the name %s was used for an execution with another input: %s; "
            "take another key",
            name, execution->arn);
    return end_without(held, IDEM_STATUS_RELEASED,
                       "its name was used with another input", CLI_MISMATCH);
}

static int say_in_doubt(struct cli_held *held)
{
    static const char why[] = "an earlier request may have started it, and the "
                              "state machine is EXPRESS";

    cli_say("%s: another request might start another execution; look for it "
            "in the log of %s, then decide with: idem resolve",
            why, args.state_machine);
    return end_without(held, IDEM_STATUS_UNKNOWN, why, CLI_UNKNOWN);
}

/* The state machine could not be asked, or did not let us. */
static int say_failure(struct cli_held *held, const struct idem_error *error)
{
    bool unknown = error->code == IDEM_EUNKNOWN;

    cli_say("%s; %s", error->text,
            unknown ? "the execution may have been started: run the same "
                      "command again, which starts no second one"
                    : "nothing was started");
    return end_without(held, unknown ? IDEM_STATUS_RETRY : IDEM_STATUS_RELEASED,
                       error->text,
                       error->code == IDEM_ENOTFOUND
                           ? CLI_CONFIG
                           : cli_exit_of(error->code));
}

static int start(struct cli_held *held, struct idem_execution_options *options)
{
    struct idem_execution execution;
    struct idem_error error = {0};

    options->in_doubt = held->attempt->takeover;
    error.code = idem_execution_start(options, &execution, &error);
    if (error.code != 0) {
        return say_failure(held, &error);
    }
    switch (execution.state) {
    case IDEM_EXECUTION_OTHER_INPUT:
        return say_other_input(held, options->name, &execution);
    case IDEM_EXECUTION_IN_DOUBT:
        return say_in_doubt(held);
    case IDEM_EXECUTION_STARTED:
    case IDEM_EXECUTION_FOUND:
        break;
    }
    return complete(held, options->name, &execution);
}

/* ---- The command ----------------------------------------------------------------- */

static int start_once(struct cli_held *held, const struct idem_request *request,
                      struct idem_execution_options *options)
{
    struct idem_error error = {0};
    int status;

    if (cli_journal_settle(held->store, request->scope, request->key,
                           cli_stderr_is_tty(), &error) == CLI_JOURNAL_WAITS) {
        status = cli_journal_refuse(&error);
        idem_close(held->store);
        return status;
    }
    error.code = idem_begin(held->store, request, &held->attempt, &error);
    if (error.code != 0) {
        status = cli_fail_before("nothing was started", &error);
        idem_close(held->store);
        return status;
    }
    if (held->attempt->verdict == IDEM_STARTED) {
        return start(held, options);
    }
    status = held->attempt->verdict == IDEM_REPLAY
                 ? replay(held->attempt, options->name)
                 : cli_refuse(held->attempt, args.store);
    idem_attempt_destroy(held->attempt);
    idem_close(held->store);
    return status;
}

/* Sets @ret_options from @request, and @name; they point to both. */
static int set_options(const struct cli_command *command,
                       const struct idem_request *request,
                       char name[IDEM_EXECUTION_NAME_MAX + 1],
                       struct idem_execution_options *ret_options)
{
    static const struct idem_execution_options empty =
        IDEM_EXECUTION_OPTIONS_INIT;
    struct idem_error error = {0};
    int code = idem_execution_name(request->scope, request->key, name);

    if (code != 0) {
        cli_say("cannot make the name: %s", idem_error_text(code));
        return cli_exit_of(code);
    }
    *ret_options = empty;
    ret_options->state_machine = args.state_machine;
    ret_options->name = name;
    ret_options->input = request->input;
    ret_options->time_ms = TIME_MS;
    if (request->lease_ms != IDEM_NEVER && request->lease_ms / 2 < TIME_MS) {
        ret_options->time_ms = request->lease_ms / 2;
    }
    return idem_execution_check(ret_options, &error) == 0
               ? 0
               : cli_usage(command, "%s", error.text);
}

static int start_prepared(const struct cli_command *command,
                          struct idem_request *request, struct cli_held *held)
{
    char name[IDEM_EXECUTION_NAME_MAX + 1];
    struct idem_execution_options options;
    int status = set_options(command, request, name, &options);

    if (status == 0) {
        status = cli_open_store_to_wait(args.store, /* flags= */ 0,
                                        /* host= */ NULL, &request->wait_ms,
                                        &held->store);
    }
    return status != 0 ? status : start_once(held, request, &options);
}

static int start_command(const struct cli_command *command)
{
    /* These words make a request the same, beside its input. */
    char machine[ARN_MAX + 1];
    char noun[] = "stepfunctions";
    char verb[] = "start";
    char *words[] = {noun, verb, machine, NULL};
    struct cli_held held = {.store_url = args.store};
    struct cli_request request;
    int status;

    if (args.state_machine == NULL) {
        return cli_usage(command, "name the state machine: --state-machine "
                                  "ARN");
    }
    (void)snprintf(machine, sizeof(machine), "%s", args.state_machine);
    if (args.claim.input == NULL) {
        args.claim.input = "{}";
    }
    status = cli_journal_choose(command, &args.journal);
    if (status == 0) {
        status = cli_patience_choose(command, &held.patience);
    }
    if (status == 0) {
        status = cli_request_init(&request, command, &args.claim, 3, words);
    }
    if (status != 0) {
        return status;
    }
    status = start_prepared(command, &request.request, &held);
    cli_request_finish(&request);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    char shown[128];

    if (argc == 1 && strcmp(argv[0], "start") == 0) {
        return start_command(command);
    }
    if (argc == 0) {
        return cli_usage(command, "nothing to do; start an execution with: "
                                  "idem stepfunctions start");
    }
    return cli_usage(
        command, "unexpected argument \"%s\"; it is: idem stepfunctions start",
        cli_escape(idem_str(argv[argc > 1 && strcmp(argv[0], "start") == 0]),
                   shown, sizeof(shown)));
}

static struct cli_option options[] = {
    {.name = "state-machine",
     .letter = 'm',
     .kind = CLI_TEXT,
     .target = &args.state_machine,
     .arg = "ARN",
     .help = "the state machine, perhaps with a version or an alias",
     .max = ARN_MAX},
    CLI_OPTION_KEY(&args.claim.key,
                   "the idempotency key, of which the name is made"),
    CLI_OPTION_KEY_FILE(&args.claim.key_file),
    CLI_OPTION_KEY_FROM(&args.claim.key_from),
    CLI_OPTION_SCOPE(&args.claim.scope),
    {.name = "input",
     .kind = CLI_TEXT,
     .target = &args.claim.input,
     .arg = "JSON",
     .help = "the execution's input: JSON, @FILE or - for stdin ({})"},
    {.name = "lease",
     .kind = CLI_DURATION,
     .target = &args.claim.lease_ms,
     .arg = "TIME",
     .min = CLI_OR_NEVER(IDEM_LEASE_MIN_MS),
     .max = IDEM_DURATION_MAX_MS,
     .help = "how long the key is yours (60s)"},
    {.name = "retention",
     .kind = CLI_DURATION,
     .target = &args.claim.retention_ms,
     .arg = "TIME",
     .min = CLI_OR_NEVER(1),
     .max = IDEM_DURATION_MAX_MS,
     .help = "how long the outcome is replayed (90d)"},
    {.name = "wait",
     .kind = CLI_DURATION,
     .target = &args.claim.wait_ms,
     .arg = "TIME",
     .max = IDEM_DURATION_MAX_MS,
     .help = "how long to wait for another's attempt (0s)"},
    CLI_OPTION_JOURNAL(&args.journal),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem stepfunctions start -m \"$ARN\" -k order-42 --input @order.json",
    "idem stepfunctions start -m \"$ARN\" --key-from .id --input - <order.json",
    NULL,
};

static const char *const what[] = {"start", NULL};

const struct cli_command cli_stepfunctions = {
    .name = "stepfunctions",
    .summary = "start an execution of AWS Step Functions once for each key",
    .usage = "idem stepfunctions start [OPTION...] --state-machine ARN -k KEY",
    .examples = examples,
    .options = options,
    .run = run,
    .operands = what,
};
