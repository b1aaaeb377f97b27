/* filesize.h: a limit on the size of files makes a write fail, and ends nobody. */
#ifndef IDEM_CLI_PROCESS_FILESIZE_H
#define IDEM_CLI_PROCESS_FILESIZE_H

#include <signal.h>

/* SIGXFSZ is ignored: what goes past RLIMIT_FSIZE fails with EFBIG, as on a full
 * disk. */
void cli_filesize_no_signal(void);

/* The signals that a program started by posix_spawn() must have at their default
 * again; none if the caller of idem had it ignored. */
void cli_filesize_signals(sigset_t *ret_set);

#endif
