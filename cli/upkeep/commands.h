/* commands.h: the commands of this room. */
#ifndef IDEM_CLI_UPKEEP_COMMANDS_H
#define IDEM_CLI_UPKEEP_COMMANDS_H

#include "options/command.h"

extern const struct cli_command cli_store, cli_export, cli_import, cli_purge;

#endif
