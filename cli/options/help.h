/* help.h: what --help and `idem help` print. */
#ifndef IDEM_CLI_OPTIONS_HELP_H
#define IDEM_CLI_OPTIONS_HELP_H

#include "cli.h"

/* The page of `idem CMD --help`, and the overview of `idem help`. */
void cli_print_help(const struct cli_command *command);
void cli_print_overview(FILE *f);

/* "idem 0.1.0" on stdout. */
void cli_print_version(void);

/* The command of this name, or NULL. */
const struct cli_command *cli_command_find(const char *name);

#endif
