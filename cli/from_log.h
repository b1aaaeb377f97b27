/* Outcomes from the log of a Lambda function, as a journal of their own. */
#ifndef IDEM_CLI_FROM_LOG_H
#define IDEM_CLI_FROM_LOG_H

struct idem_journal;

/* A journal, in a directory of its own, of the outcomes in the log @file ("-":
 * standard input). 0 or an exit status, after saying why. */
int cli_from_log_open(const char *file, struct idem_journal **ret_journal,
                      char **ret_directory);

/* Closes and deletes it; frees @directory. */
void cli_from_log_close(struct idem_journal *journal, char *directory);

#endif
