/* idem store copy: the records of one store into another. */
#ifndef IDEM_CLI_UPKEEP_COPY_H
#define IDEM_CLI_UPKEEP_COPY_H

#include "upkeep/copying.h"

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
