/* idem completion: prints what a shell needs to complete our command lines. */
#include "cli.h"
#include "completion.h"

static int run(const struct cli_command *command, int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], "bash") == 0) {
        cli_complete_bash();
        return CLI_OK;
    }
    if (argc == 1 && strcmp(argv[0], "zsh") == 0) {
        cli_complete_zsh();
        return CLI_OK;
    }
    return cli_usage(command, "say which shell: bash or zsh");
}

static struct cli_option options[] = {
    {.name = NULL},
};

static const char *const examples[] = {
    "source <(idem completion bash)    # in ~/.bashrc",
    "source <(idem completion zsh)     # in ~/.zshrc, after compinit",
    NULL,
};

static const char *const shells[] = {"bash", "zsh", NULL};

const struct cli_command cli_completion = {
    .name = "completion",
    .summary = "print the completions for a shell",
    .usage = "idem completion bash|zsh",
    .examples = examples,
    .options = options,
    .run = run,
    .operands = shells,
};
