/* config.h: defaults of options from files, below the environment and flags.
 *
 *     # A line of comment
 *     store = sqlite:/var/lib/jobs/idem.db    for every command that has it
 *
 *     [run]                                   for idem run
 *     lease = 5m
 *     quiet = yes
 *
 * /etc/idem.conf comes first, then $XDG_CONFIG_HOME/idem/idem.conf (else
 * ~/.config/idem/idem.conf), whose lines count more. No line may say which
 * operation it is: the same command line on two hosts would be two operations.
 * A file that others may write is refused, and root reads only root's.
 */
#ifndef IDEM_CLI_OPTIONS_CONFIG_H
#define IDEM_CLI_OPTIONS_CONFIG_H

#include "options/command.h"

/* From here on cli_parse() applies the files. */
void cli_config_enable(void);

/* Sets the options of @command that @seen says were not given. 0, or CLI_CONFIG
 * after saying which line of which file is wrong. */
int cli_config_apply(const struct cli_command *command, const bool *seen);

/* Reads @text, which is changed, as the file @path, and applies it. The values
 * may point into @text. */
int cli_config_apply_text(const struct cli_command *command, const bool *seen,
                          const char *path, char *text);

#endif
