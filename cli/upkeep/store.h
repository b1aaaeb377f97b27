/* store.h: the commands of idem store. */
#ifndef IDEM_CLI_UPKEEP_STORE_H
#define IDEM_CLI_UPKEEP_STORE_H

#include <stdbool.h>

/* Idem store create: making what a store needs before it can be used. */

/* Makes the store @store_url (NULL: the default) names. Returns an exit status. */
int cli_create(const char *store_url, bool json);

/* What makes the store that @store_url (NULL: $IDEM_STORE) names, for free(), where its
 * kind says that; else *@ret_text is NULL. Returns an exit status. */
int cli_schema(const char *store_url, char **ret_text);

/* ---- Idem store mark-restored, and store create --accept-loss ----------- */

struct cli_command;

/* Marks the file of --store (may be NULL) as put back from a copy, after a
 * question at the terminal unless @yes. Returns an exit status. */
int cli_mark_restored(const struct cli_command *command, const char *store_url,
                      bool yes, bool json);

/* The same for a new store in the place of one that is lost. */
int cli_accept_loss(const struct cli_command *command, const char *store_url,
                    bool yes, bool json);

#endif
