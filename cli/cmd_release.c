/* idem release: gives the key up, because nothing happened. */
#include "cli.h"
#include "held.h"

static struct cli_word word;

static int run(const struct cli_command *command, int argc, char **argv)
{
    return cli_held_say(command, &word, IDEM_STATUS_RELEASED, argc, argv);
}

static struct cli_option options[] = {
    CLI_OPTION_TOKEN(&word.token),
    {.name = "note",
     .kind = CLI_ANY_TEXT,
     .target = &word.text,
     .arg = "TEXT",
     .max = IDEM_TEXT_MAX,
     .help = "why, for people"},
    CLI_OPTION_JOURNAL(&word.journal),
    CLI_OPTION_JSON(&word.json),
    CLI_OPTION_STORE(&word.store),
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
    .hint = CLI_HELD_HINT,
};
