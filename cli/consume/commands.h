/* commands.h: the command of this room. */
#ifndef IDEM_CLI_CONSUME_COMMANDS_H
#define IDEM_CLI_CONSUME_COMMANDS_H

#include "options/command.h"

extern const struct cli_command cli_consume;

#endif
