/* Completions for fish. */
#include "completion/completion.h"
#include "options/command.h"

#include <stdio.h>

/* Text within single quotes of fish. */
static void print_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') {
            (void)putchar('\\');
        }
        (void)putchar(*text);
    }
}

static void print_words(const char *const *words)
{
    size_t i;

    for (i = 0; words[i] != NULL; i++) {
        (void)printf("%s%s", i > 0 ? " " : "", words[i]);
    }
}

/* The words that may follow an option; files where we do not know better. */
static void print_value(const struct cli_option *option)
{
    const char *asked = cli_complete_asks(option);

    if (option->choices != NULL) {
        (void)printf(" -x -a '");
        print_words(option->choices);
        (void)putchar('\'');
    } else if (asked != NULL) {
        (void)printf(
            " -x -a '(idem completion %s -- (__idem_begun) 2>/dev/null)'",
            asked);
    } else if (strcmp(option->arg, "FILE") == 0 ||
               strcmp(option->arg, "WHAT") == 0) {
        (void)printf(" -rF");
    } else {
        (void)printf(" -x");
    }
}

static void print_option(const struct cli_command *command,
                         const struct cli_option *option)
{
    (void)printf("complete -c idem -n '__idem_in %s' -l %s", command->name,
                 option->name);
    if (option->letter != 0) {
        (void)printf(" -s %c", option->letter);
    }
    if (option->kind != CLI_FLAG) {
        print_value(option);
    }
    (void)printf(" -d '");
    print_text(option->help);
    (void)printf("'\n");
}

static void print_operands(const struct cli_command *command)
{
    if (command->operands != NULL) {
        (void)printf("complete -c idem -n '__idem_in %s' -a '", command->name);
        print_words(command->operands);
        (void)printf("'\n");
    } else if (command->takes_key) {
        (void)printf("complete -c idem -n '__idem_in %s' -a '(idem completion "
                     "keys -- (__idem_begun) 2>/dev/null)'\n",
                     command->name);
    }
}

static void print_command(const struct cli_command *command)
{
    const struct cli_option *o;

    (void)printf("complete -c idem -n __fish_use_subcommand -a %s -d '",
                 command->name);
    print_text(command->summary);
    (void)printf("'\n");
    print_operands(command);
    for (o = command->options; o->name != NULL; o++) {
        print_option(command, o);
    }
}

static const char head[] =
    "# Completions for fish, made by: idem completion fish\n"
    "function __idem_in\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -ge 2; and test $words[2] = $argv[1]\n"
    "    and not contains -- -- $words\n"
    "end\n"
    "function __idem_command\n"
    "    contains -- -- (commandline -opc)\n"
    "end\n"
    "# The start of the word, up to the first character that quotes another.\n"
    "function __idem_begun\n"
    "    commandline -ct | string replace -r '^--[a-z-]*=' ''"
    " | string replace -r \"[\\\\\\\\\\\"'].*\" ''\n"
    "end\n"
    "complete -c idem -f\n"
    "complete -c idem -n __idem_command -a '(__fish_complete_subcommand "
    "--fcs-skip=(contains -i -- -- (commandline -opc)))'\n"
    "complete -c idem -l help -s h -d 'show help'\n"
    "complete -c idem -l version -s V -d 'show the version'\n";

void cli_complete_fish(void)
{
    size_t i;

    (void)fputs(head, stdout);
    for (i = 0; cli_commands[i] != NULL; i++) {
        print_command(cli_commands[i]);
    }
}
