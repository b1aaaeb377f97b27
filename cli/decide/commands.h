/* commands.h: the commands of this room. */
#ifndef IDEM_CLI_DECIDE_COMMANDS_H
#define IDEM_CLI_DECIDE_COMMANDS_H

#include "options/command.h"

extern const struct cli_command cli_resolve, cli_reopen, cli_reconcile;

#endif
