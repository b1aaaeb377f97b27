/* completion.h: the shells that `idem completion` speaks.
 *
 * Each script is made from the table of commands, and so is never out of
 * date. */
#ifndef IDEM_CLI_COMPLETION_COMPLETION_H
#define IDEM_CLI_COMPLETION_COMPLETION_H

#include "options/command.h"

void cli_complete_bash(void);
void cli_complete_zsh(void);
void cli_complete_fish(void);

/* Whether `idem completion WHAT` knows what may follow @option: its WHAT, such as
 * "keys", or NULL. */
const char *cli_complete_asks(const struct cli_option *option);

#endif
