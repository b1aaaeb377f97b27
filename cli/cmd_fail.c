/* idem fail: records that the work failed, and that a person must look. */
#include "cli.h"
#include "held.h"

static struct {
    const char *token;
    const char *error;
    struct cli_journal_choice journal;
    const char *store;
} args;

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_FAILED};
    struct cli_held held;
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "the error is said with --error");
    }
    status = cli_journal_choose(command, &args.journal);
    if (status == 0) {
        status = cli_hold(command, args.token, args.store, &held);
    }
    if (status != 0) {
        return status;
    }
    outcome.text = idem_str(args.error);
    return cli_held_end(&held, &outcome, &args.journal);
}

static struct cli_option options[] = {
    CLI_OPTION_TOKEN(&args.token),
    {.name = "error",
     .kind = CLI_ANY_TEXT,
     .target = &args.error,
     .arg = "TEXT",
     .max = IDEM_TEXT_MAX,
     .help = "what went wrong, for the person who looks"},
    CLI_OPTION_JOURNAL(&args.journal),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem fail --token \"$token\" --error \"card 4711 was refused\"",
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
};
