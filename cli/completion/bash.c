/* Completions for bash. */
#include "completion/completion.h"
#include "options/command.h"

#include <stdio.h>

static void print_words(const char *const *words)
{
    size_t i;

    for (i = 0; words[i] != NULL; i++) {
        (void)printf("%s ", words[i]);
    }
}

static void print_command_names(void)
{
    size_t i;

    for (i = 0; cli_commands[i] != NULL; i++) {
        (void)printf("%s ", cli_commands[i]->name);
    }
    (void)printf("help");
}

/* After an option with a value comes that value and nothing else. */
static void print_value(const struct cli_command *command,
                        const struct cli_option *option)
{
    (void)printf("    '%s --%s'", command->name, option->name);
    if (option->letter != 0) {
        (void)printf(" | '%s -%c'", command->name, option->letter);
    }
    if (cli_complete_asks(option) != NULL) {
        (void)printf(") _idem_offer %s; return ;;\n",
                     cli_complete_asks(option));
    } else if (option->choices != NULL) {
        (void)printf(") words='");
        print_words(option->choices);
        (void)printf("' ;;\n");
    } else if (strcmp(option->arg, "FILE") == 0) {
        (void)printf(") compopt -o default; return ;;\n");
    } else {
        (void)printf(") return ;;\n");
    }
}

static void print_values(const struct cli_command *command)
{
    const struct cli_option *o;

    for (o = command->options; o->name != NULL; o++) {
        if (o->kind != CLI_FLAG) {
            print_value(command, o);
        }
    }
}

static void print_options(const struct cli_command *command)
{
    const struct cli_option *o;

    (void)printf("    '%s '*)", command->name);
    if (command->takes_key) {
        (void)printf(" [[ $cur != -* ]] && { _idem_offer keys; return; };");
    }
    (void)printf(" words='");
    if (command->operands != NULL) {
        print_words(command->operands);
    }
    for (o = command->options; o->name != NULL; o++) {
        (void)printf("--%s ", o->name);
    }
    (void)printf("--help' ;;\n");
}

static const char head[] =
    "# Completions for bash, made by: idem completion bash\n"
    "# A key is data: compgen -W would expand what is in it.\n"
    "_idem_offer()\n"
    "{\n"
    "    local line word begun=${cur%%[\\\\\\\"\\']*}\n"
    "\n"
    "    while IFS= read -r line; do\n"
    "        printf -v word %q \"$line\"\n"
    "        [[ $line == \"$cur\"* || $word == \"$cur\"* ]] &&\n"
    "            COMPREPLY+=(\"$word\")\n"
    "    done < <(idem completion \"$1\" -- \"$begun\" 2>/dev/null)\n"
    "    return 0\n"
    "}\n"
    "\n"
    "_idem()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    local prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local words='' i\n"
    "\n"
    "    # After \"--\" comes a command line.\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
    "            if ((i == COMP_CWORD - 1)); then\n"
    "                mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
    "            else\n"
    "                compopt -o default\n"
    "            fi\n"
    "            return\n"
    "        fi\n"
    "    done\n"
    "\n"
    "    # bash takes --option=VALUE for three words, and @FILE for two.\n"
    "    if [[ $cur == @ || $prev == @ ]]; then\n"
    "        compopt -o default\n"
    "        return\n"
    "    fi\n"
    "    [[ $prev == '=' ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    [[ $cur == '=' ]] && cur=''\n"
    "\n"
    "    case \"${COMP_WORDS[1]} $prev\" in\n";

static const char tail[] =
    " --help --version'\n"
    "    fi\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
    "}\n"
    "complete -F _idem idem\n";

/* The first row that fits is taken: those of values precede those that offer
 * the options. */
void cli_complete_bash(void)
{
    size_t i;

    (void)fputs(head, stdout);
    for (i = 0; cli_commands[i] != NULL; i++) {
        print_values(cli_commands[i]);
    }
    for (i = 0; cli_commands[i] != NULL; i++) {
        print_options(cli_commands[i]);
    }
    (void)printf("    'help '*) words='");
    print_command_names();
    (void)printf("' ;;\n"
                 "    esac\n"
                 "    if ((COMP_CWORD == 1)); then\n"
                 "        words='");
    print_command_names();
    (void)fputs(tail, stdout);
}
