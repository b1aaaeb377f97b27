/* help.h: the page that --help prints. */
#ifndef IDEM_CLI_OPTIONS_HELP_H
#define IDEM_CLI_OPTIONS_HELP_H

#include "options/command.h"

/* The page of `idem CMD --help`. */
void cli_print_help(const struct cli_command *command);

/* "idem 0.1.0" on stdout. */
void cli_print_version(void);

#endif
