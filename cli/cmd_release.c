/* idem release: gives the key up, because nothing happened. */
#include "cli.h"
#include "held.h"

static struct {
    const char *token;
    const char *note;
    struct cli_journal_choice journal;
    const char *store;
} args;

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_RELEASED};
    struct cli_held held;
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "the note is said with --note");
    }
    status = cli_journal_choose(command, &args.journal);
    if (status == 0) {
        status = cli_hold(command, args.token, args.store, &held);
    }
    if (status != 0) {
        return status;
    }
    outcome.text = idem_str(args.note);
    return cli_held_end(&held, &outcome, &args.journal);
}

static struct cli_option options[] = {
    CLI_OPTION_TOKEN(&args.token),
    {.name = "note",
     .kind = CLI_ANY_TEXT,
     .target = &args.note,
     .arg = "TEXT",
     .max = IDEM_TEXT_MAX,
     .help = "why, for people"},
    CLI_OPTION_JOURNAL(&args.journal),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem release --token \"$token\" --note \"the bank was closed\"",
    "idem release                       # inside idem run: try again later",
    NULL,
};

const struct cli_command cli_release = {
    .name = "release",
    .summary = "give the key up: nothing happened, another may try",
    .usage = "idem release [OPTION...] --token TOKEN",
    .examples = examples,
    .options = options,
    .run = run,
};
