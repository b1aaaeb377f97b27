/* first.h: the first process of a container. */
#ifndef IDEM_CLI_PROCESS_FIRST_H
#define IDEM_CLI_PROCESS_FIRST_H

/* To the first process of a PID namespace the kernel delivers no signal that has its
 * default action: SIGTERM would not end it, and a container would be killed when its
 * time to stop is over. If this process is that one, SIGHUP, SIGINT, SIGQUIT and
 * SIGTERM end it from now on with the exit status 128+N, as they end any other
 * process; a command that handles them itself goes on to do so. */
void cli_first_process(void);

#endif
