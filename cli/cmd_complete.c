/* idem complete: records that the work was done, and its result. */
#include "cli.h"
#include "held.h"
#include "result.h"

static struct {
    const char *token;
    const char *result;
    struct cli_result_spec spec;
    struct cli_journal_choice journal;
    bool json;
    const char *store;
} args;

static int complete(const struct cli_command *command,
                    const struct idem_result *result)
{
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_COMPLETED,
        .result = *result,
    };
    struct cli_held held;
    int status;

    status = cli_hold(command, args.token, args.store, args.json, &held);
    return status != 0 ? status : cli_held_end(&held, &outcome, &args.journal);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_result result;
    int status;

    if (argc > 0) {
        return cli_unexpected(command, argv[0]);
    }
    status = cli_journal_choose(command, &args.journal);
    if (status == 0) {
        status = cli_result_check(command, &args.spec);
    }
    if (status != 0) {
        return status;
    }
    status = cli_result_init(&result, "result", args.result, &args.spec);
    if (status != 0) {
        return status;
    }

    status = complete(command, &result.result);

    cli_result_finish(&result);
    return status;
}

static struct cli_option options[] = {
    CLI_OPTION_TOKEN(&args.token),
    {.name = "result",
     .letter = 'r',
     .kind = CLI_ANY_TEXT,
     .target = &args.result,
     .arg = "WHAT",
     .help = "TEXT, @FILE or - for stdin (default: empty)"},
    CLI_RESULT_OPTIONS(&args.spec),
    CLI_OPTION_JOURNAL(&args.journal),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem complete --token \"$token\" --result paid",
    "IDEM_TOKEN=$token idem complete --result @receipt.json \\",
    "    --content-type application/json",
    "make_report | idem complete --result -    # inside idem run",
    NULL,
};

const struct cli_command cli_complete = {
    .name = "complete",
    .summary = "record that the work was done, and its result",
    .usage = "idem complete [OPTION...] --token TOKEN",
    .examples = examples,
    .options = options,
    .run = run,
    .hint = CLI_HELD_HINT,
};
