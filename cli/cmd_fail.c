/* idem fail: records that the work failed, and that a person must look. */
#include "cli.h"
#include "held.h"

static struct cli_word word;

static int run(const struct cli_command *command, int argc, char **argv)
{
    (void)argv;
    return cli_held_say(command, &word, IDEM_STATUS_FAILED, "error", argc);
}

static struct cli_option options[] = {
    CLI_OPTION_TOKEN(&word.token),
    {.name = "error",
     .kind = CLI_ANY_TEXT,
     .target = &word.text,
     .arg = "TEXT",
     .max = IDEM_TEXT_MAX,
     .help = "what went wrong, for the person who looks"},
    CLI_OPTION_JOURNAL(&word.journal),
    CLI_OPTION_STORE(&word.store),
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
