/* record.h: what a record says to somebody who looks at it now. */
#ifndef IDEM_CLI_RECORD_H
#define IDEM_CLI_RECORD_H

#include <idem.h>

/* Reads one record. 0 or an exit status, after saying why. */
int cli_get(struct idem_store *store, struct idem_slice scope,
            struct idem_slice key, struct idem_answer **ret_answer);

/* In progress, and past what was expected or past the end of the lease. */
bool cli_is_overdue(const struct idem_record *record);

/* The status on stdout, in @width columns; in colour on a terminal. */
void cli_print_status(const struct idem_record *record, int width);

/* "released", "taken_over" or "resolved". */
const char *cli_past_end_name(enum idem_past_end end);

/* Whether @result holds the output frames of a command. */
bool cli_is_output(const struct idem_result *result);

/* Writes a result as it was given: frames go to stdout and stderr, all else to
 * stdout. 0, or CLI_CORRUPT after saying why; cli_finish_output() sees what
 * could not be written. */
int cli_write_result(const struct idem_result *result);

#endif
