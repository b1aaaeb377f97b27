/* statuses.h: the statuses that a list is about. */
#ifndef IDEM_CLI_OPTIONS_RECORD_STATUSES_H
#define IDEM_CLI_OPTIONS_RECORD_STATUSES_H

struct cli_command;

/* The statuses of "failed,unknown" as in idem_filter; all (0) of NULL. 0 or a
 * usage error. */
int cli_statuses(const struct cli_command *command, const char *text,
                 unsigned *ret_statuses);

#endif
