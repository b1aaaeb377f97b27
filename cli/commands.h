/* commands.h: the table of all commands. */
#ifndef IDEM_CLI_COMMANDS_H
#define IDEM_CLI_COMMANDS_H

#include "options/command.h"

/* In the order of the overview; ends with NULL. */
extern const struct cli_command *const cli_all_commands[];

#endif
