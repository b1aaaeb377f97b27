/* idem fail: records that the work failed, and that a person must look. */
#include "cli.h"
#include "held.h"
#include "result.h"

static struct {
    const char *token;
    const char *error;
    const char *result;
    struct cli_result_spec spec;
    struct cli_journal_choice journal;
    bool json;
    const char *store;
} args;

static int fail(const struct cli_command *command,
                const struct idem_result *result)
{
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_FAILED,
        .result = *result,
        .text = idem_str(args.error),
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
    if (status == 0) {
        status = cli_result_init(&result, "result", args.result, &args.spec);
    }
    if (status != 0) {
        return status;
    }

    status = fail(command, &result.result);

    cli_result_finish(&result);
    return status;
}

static struct cli_option options[] = {
    CLI_OPTION_TOKEN(&args.token),
    {.name = "error",
     .kind = CLI_ANY_TEXT,
     .target = &args.error,
     .arg = "TEXT",
     .max = IDEM_TEXT_MAX,
     .help = "what went wrong, for the person who looks"},
    {.name = "result",
     .letter = 'r',
     .kind = CLI_ANY_TEXT,
     .target = &args.result,
     .arg = "WHAT",
     .help = "what is replayed: TEXT, @FILE or - for stdin"},
    CLI_RESULT_OPTIONS(&args.spec),
    CLI_OPTION_JOURNAL(&args.journal),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem fail --token \"$token\" --error \"card 4711 was refused\"",
    "idem fail --token \"$token\" --result @answer.json --exit 3",
    "idem list --status failed                  # who looks, finds it here",
    NULL,
};

const struct cli_command cli_fail = {
    .name = "fail",
    .summary = "record that the work failed and a person must look",
    .usage = "idem fail [OPTION...] --token TOKEN",
    .examples = examples,
    .options = options,
    .run = run,
    .hint = CLI_HELD_HINT,
};
