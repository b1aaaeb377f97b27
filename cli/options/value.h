/* value.h: the values of options: converted, and lists of statuses. */
#ifndef IDEM_CLI_OPTIONS_VALUE_H
#define IDEM_CLI_OPTIONS_VALUE_H

#include "options/command.h"

/* Converts @text and stores it in the option's target. 0, or CLI_USAGE after
 * saying what the option takes. */
int cli_set_value(const struct cli_command *command,
                  const struct cli_option *option, const char *text);

/* Reads "failed,unknown" to the bits of idem_filter; a @text of NULL means all statuses, for
 * which the bits are 0. 0, or CLI_USAGE after an error message. */
int cli_statuses(const struct cli_command *command, const char *text,
                 unsigned *ret_statuses);

#endif
