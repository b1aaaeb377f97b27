/* The commands of the program. */
#include "options/command.h"

static const struct cli_command *const none[] = {NULL};

const struct cli_command *const *cli_commands = none;

const struct cli_command *cli_command_find(const char *name)
{
    size_t i;

    for (i = 0; cli_commands[i] != NULL; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0) {
            return cli_commands[i];
        }
    }
    return NULL;
}
