/* completion.h: the shells that `idem completion` speaks.
 *
 * Each script is made from the table of commands, and so is never behind it. */
#ifndef IDEM_CLI_COMPLETION_H
#define IDEM_CLI_COMPLETION_H

void cli_complete_bash(void);
void cli_complete_zsh(void);

#endif
