/* idem store mark-restored, and store create --accept-loss. */
#ifndef IDEM_CLI_UPKEEP_RESTORED_H
#define IDEM_CLI_UPKEEP_RESTORED_H

#include <stdbool.h>

struct cli_command;

/* Marks the file of --store (may be NULL) as put back from a copy, after a
 * question at the terminal unless @yes. Returns an exit status. */
int cli_mark_restored(const struct cli_command *command, const char *store_url,
                      bool yes, bool json);

/* The same for a new store in the place of one that is lost. */
int cli_accept_loss(const struct cli_command *command, const char *store_url,
                    bool yes, bool json);

#endif
