/* idem store mark-restored. */
#ifndef IDEM_CLI_RESTORED_H
#define IDEM_CLI_RESTORED_H

#include <stdbool.h>

struct cli_command;

/* Marks the file of --store (may be NULL) as put back from a copy, after a
 * question at the terminal unless @yes. Returns an exit status. */
int cli_mark_restored(const struct cli_command *command, const char *store_url,
                      bool yes, bool json);

#endif
