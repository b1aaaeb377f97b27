/* value.h: the values of options: converted, read from files, and lists of statuses. */
#ifndef IDEM_CLI_OPTIONS_VALUE_H
#define IDEM_CLI_OPTIONS_VALUE_H

#include "options/command.h"

#include <stdbool.h>
#include <stddef.h>

/* Converts @text and stores it in the option's target. 0, or CLI_USAGE after
 * saying what the option takes. */
int cli_set_value(const struct cli_command *command,
                  const struct cli_option *option, const char *text);

/* ---- Values that may be in a file ---------------------------------------- */

/* Reads @spec: "-" is stdin, "@FILE" a file, else (where @text_ok) the text
 * itself. At most @max bytes. The caller frees *@ret_data. 0 or an exit status,
 * after saying why. */
int cli_read_arg(const char *option, const char *spec, bool text_ok, size_t max,
                 char **ret_data, size_t *ret_len);

/* The same, but more than @max bytes are not an error: *@ret_len is more than
 * @max then, and the rest was not read. */
int cli_read_some(const char *option, const char *spec, bool text_ok,
                  size_t max, char **ret_data, size_t *ret_len);

/* ---- Statuses of records ------------------------------------------------- */

/* The statuses of "failed,unknown" as in idem_filter; all (0) of NULL. 0 or a
 * usage error. */
int cli_statuses(const struct cli_command *command, const char *text,
                 unsigned *ret_statuses);

#endif
