/* idem retry: records that the work is to be run again. */
#include "cli.h"
#include "held.h"

static struct cli_word word;

static int run(const struct cli_command *command, int argc, char **argv)
{
    return cli_held_say(command, &word, IDEM_STATUS_RETRY, argc, argv);
}

static struct cli_option options[] = {
    CLI_OPTION_TOKEN(&word.token),
    {.name = "note",
     .kind = CLI_ANY_TEXT,
     .target = &word.text,
     .arg = "TEXT",
     .max = IDEM_TEXT_MAX,
     .help = "why, for the person who looks"},
    CLI_OPTION_JOURNAL(&word.journal),
    CLI_OPTION_JSON(&word.json),
    CLI_OPTION_STORE(&word.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem retry --token \"$token\" --note \"the host ran out of space\"",
    "idem list --status retry           # what waits for the next caller",
    NULL,
};

const struct cli_command cli_retry = {
    .name = "retry",
    .summary = "let the next caller run the work again",
    .usage = "idem retry [OPTION...] --token TOKEN",
    .examples = examples,
    .options = options,
    .run = run,
    .hint = CLI_HELD_HINT,
};
