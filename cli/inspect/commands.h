/* commands.h: the commands of this room. */
#ifndef IDEM_CLI_INSPECT_COMMANDS_H
#define IDEM_CLI_INSPECT_COMMANDS_H

#include "options/command.h"

extern const struct cli_command cli_show, cli_list, cli_stats, cli_watch,
    cli_doctor, cli_completion;

#endif
