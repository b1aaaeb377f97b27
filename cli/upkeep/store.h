/* store.h: the commands of idem store. */
#ifndef IDEM_CLI_UPKEEP_STORE_H
#define IDEM_CLI_UPKEEP_STORE_H

#include "upkeep/copying.h"

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

/* ---- Idem store copy: the records of one store into another ------------- */

/* The names of enum cli_copy_open, in their order; ends with NULL. */
extern const char *const cli_copy_opens[];

struct cli_command;

/* Copies what is in one store and not in the other. Returns an exit status. */
int cli_copy(const struct cli_command *command, const char *from_url,
             const char *to_url, const struct cli_copy_options *options,
             bool json);

/* Says what that would be, and what it would cost. Changes nothing. */
int cli_copy_dry(const struct cli_command *command, const char *from_url,
                 const char *to_url, const struct cli_copy_options *options,
                 bool json);

#endif
