/* repeat.h: the options of a command, to be typed once more. */
#ifndef IDEM_CLI_INSPECT_REPEAT_H
#define IDEM_CLI_INSPECT_REPEAT_H

#include "options/command.h"

#include <stdio.h>

/* Prints " --limit 20 --store 'URL'": each of @options that has a value, but not
 * those named in @but (ends with NULL). Values are quoted for the shell. */
void cli_print_options(FILE *f, const struct cli_option *options,
                       const char *const *but);

#endif
