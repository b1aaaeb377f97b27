/* idem unknown: records that the work may have happened. */
#include "cli.h"
#include "held.h"

static struct cli_word word;

static int run(const struct cli_command *command, int argc, char **argv)
{
    return cli_held_say(command, &word, IDEM_STATUS_UNKNOWN, argc, argv);
}

static struct cli_option options[] = {
    CLI_OPTION_TOKEN(&word.token),
    {.name = "note",
     .kind = CLI_ANY_TEXT,
     .target = &word.text,
     .arg = "TEXT",
     .max = IDEM_TEXT_MAX,
     .help = "what is known, for the person who looks"},
    CLI_OPTION_JOURNAL(&word.journal),
    CLI_OPTION_JSON(&word.json),
    CLI_OPTION_STORE(&word.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem unknown --token \"$token\" --note \"no answer from the bank\"",
    "idem list --status unknown         # who looks, finds it here",
    NULL,
};

const struct cli_command cli_unknown = {
    .name = "unknown",
    .summary = "record that the work may have happened",
    .usage = "idem unknown [OPTION...] --token TOKEN",
    .examples = examples,
    .options = options,
    .run = run,
    .hint = CLI_HELD_HINT,
};
