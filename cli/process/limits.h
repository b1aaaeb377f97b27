/* limits.h: the limits of the process that it sets for itself. */
#ifndef IDEM_CLI_PROCESS_LIMITS_H
#define IDEM_CLI_PROCESS_LIMITS_H

#include <signal.h>

/* ---- No crash of ours writes keys, results and tokens into a file ----------- */

/* This process, and what it forks, leave no core file. */
void cli_cores_off(void);

/* Between fork and exec: the command that is started may, if we were allowed to. */
void cli_cores_back(void);

/* ---- A limit on the size of files makes a write fail, and ends nobody ------- */

/* SIGXFSZ is ignored: what goes past RLIMIT_FSIZE fails with EFBIG, as on a full
 * disk. */
void cli_filesize_no_signal(void);

/* The signals that a program started by posix_spawn() must have at their default
 * again; none if the caller of idem had it ignored. */
void cli_filesize_signals(sigset_t *ret_set);

#endif
