/* verdict.h: verdicts for people. */
#ifndef IDEM_CLI_RECORD_VERDICT_H
#define IDEM_CLI_RECORD_VERDICT_H

#include <idem.h>

/* The exit status of a verdict: 0 STARTED, 10 REPLAY, 65, 75, 76, 79. */
int cli_exit_of_verdict(enum idem_verdict verdict);

/* Says on stderr why the work is not started: for MISMATCH, FAILED, UNKNOWN,
 * BUSY and RELEASED, with the command that mends it. Returns the exit status.
 * @store_url: --store, if it was given. */
int cli_refuse(const struct idem_attempt *attempt, const char *store_url);

#endif
