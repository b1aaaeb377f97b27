/* commands.h: the commands of this room. */
#ifndef IDEM_CLI_VERBS_COMMANDS_H
#define IDEM_CLI_VERBS_COMMANDS_H

#include "options/command.h"

extern const struct cli_command cli_begin, cli_complete, cli_fail, cli_release,
    cli_retry, cli_unknown, cli_renew, cli_limit, cli_key;

#endif
