/* Completions for zsh. */
#include "completion/completion.h"
#include "options/command.h"

#include <stdio.h>

/* Text within '...[text]' of a specification. */
static void print_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            (void)printf("'\\''");
        } else if (strchr("[]:\\", *text) != NULL) {
            (void)printf("\\%c", *text);
        } else {
            (void)putchar(*text);
        }
    }
}

/* The words that may follow an option: ":POLICY:(hold rerun)" */
static void print_value(const struct cli_option *option)
{
    size_t i;

    (void)printf(":%s:", option->arg);
    if (option->choices != NULL) {
        for (i = 0; option->choices[i] != NULL; i++) {
            (void)printf("%c%s", i == 0 ? '(' : ' ', option->choices[i]);
        }
        (void)putchar(')');
    } else if (cli_complete_asks(option) != NULL) {
        /* Without the space, words would be added to it. */
        (void)printf(" _idem_ask %s", cli_complete_asks(option));
    } else if (strcmp(option->arg, "FILE") == 0) {
        (void)printf("_files");
    } else {
        (void)printf("_idem_value");
    }
}

/* One specification for _arguments; a letter and its name are one option. */
static void print_option(const struct cli_option *option)
{
    bool flag = option->kind == CLI_FLAG;

    (void)printf(" \\\n            ");
    if (option->letter != 0) {
        (void)printf("'(-%c --%s)'{-%c%s,--%s%s}'[", option->letter,
                     option->name, option->letter, flag ? "" : "+",
                     option->name, flag ? "" : "=");
    } else {
        (void)printf("'--%s%s[", option->name, flag ? "" : "=");
    }
    print_text(option->help);
    (void)putchar(']');
    if (!flag) {
        print_value(option);
    }
    (void)putchar('\'');
}

static void print_command(const struct cli_command *command)
{
    const struct cli_option *o;
    size_t i;

    (void)printf("    %s)\n        _arguments -s", command->name);
    for (o = command->options; o->name != NULL; o++) {
        print_option(o);
    }
    (void)printf(" \\\n            '(- *)--help[show help]'");
    if (command->takes_key) {
        (void)printf(" \\\n            '1:KEY: _idem_ask keys'");
    }
    if (command->operands != NULL) {
        (void)printf(" \\\n            '1:what:(");
        for (i = 0; command->operands[i] != NULL; i++) {
            (void)printf("%s%s", i > 0 ? " " : "", command->operands[i]);
        }
        (void)printf(")'");
    }
    (void)printf(" ;;\n");
}

static void print_names(void)
{
    size_t i;

    for (i = 0; cli_commands[i] != NULL; i++) {
        (void)printf("        '%s:", cli_commands[i]->name);
        print_text(cli_commands[i]->summary);
        (void)printf("'\n");
    }
    (void)printf("        'help:show the help of a command'\n");
}

static const char head[] =
    "#compdef idem\n"
    "# Completions for zsh, made by: idem completion zsh\n"
    "_idem_ask()\n"
    "{\n"
    "    local -a found\n"
    "\n"
    "    found=(${(f)\"$(idem completion $1 -- ${PREFIX%%[\\\\\\\"\\']*} 2>/dev/null)\"})\n"
    "    compadd -a found\n"
    "}\n"
    "\n"
    "_idem_value()\n"
    "{\n"
    "    compset -P @ && _files\n"
    "}\n"
    "\n"
    "_idem()\n"
    "{\n"
    "    local -a names\n"
    "    local -i dashes=${words[(i)--]}\n"
    "    local verb=$words[2]\n"
    "\n"
    "    names=(\n";

static const char middle[] =
    "    )\n"
    "    if ((CURRENT == 2)) || [[ $verb == help ]]; then\n"
    "        _describe command names\n"
    "        return\n"
    "    fi\n"
    "    if ((dashes < CURRENT)); then # A command line follows.\n"
    "        shift $dashes words\n"
    "        ((CURRENT -= dashes))\n"
    "        _normal\n"
    "        return\n"
    "    fi\n"
    "    shift words\n"
    "    ((CURRENT--))\n"
    "    case $verb in\n";

static const char tail[] =
    "    esac\n"
    "}\n"
    "\n"
    "if [[ ${funcstack[1]} == _idem ]]; then # Loaded from $fpath.\n"
    "    _idem \"$@\"\n"
    "else\n"
    "    compdef _idem idem\n"
    "fi\n";

void cli_complete_zsh(void)
{
    size_t i;

    (void)fputs(head, stdout);
    print_names();
    (void)fputs(middle, stdout);
    for (i = 0; cli_commands[i] != NULL; i++) {
        print_command(cli_commands[i]);
    }
    (void)fputs(tail, stdout);
}
