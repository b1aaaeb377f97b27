/* signal_fd.h: signals as reads of a descriptor. */
#ifndef IDEM_CLI_PROCESS_SIGNAL_FD_H
#define IDEM_CLI_PROCESS_SIGNAL_FD_H

#include <signal.h>

/* A descriptor that is readable while a signal of @set waits; it is closed on exec,
 * and reads of it do not block. Those signals have to be blocked. -1 with errno. */
int signal_fd_open(const sigset_t *set);

/* Takes the next signal that waits, and returns it; 0: none does. */
int signal_fd_next(int fd);

#endif
