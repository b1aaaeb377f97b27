/* stop.h: a signal that says "stop" as something to wait for. */
#ifndef IDEM_CLI_PROCESS_STOP_H
#define IDEM_CLI_PROCESS_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* From now on SIGTERM, SIGINT and SIGHUP do not end this process, but make a
 * descriptor readable, for good: it is returned; -1, and they do, where there is
 * none left. Threads that are started from now on leave them alone. */
int cli_stop_fd(void);

/* Waits for @ms milliseconds, IDEM_NEVER for ever. True: it is to stop. */
bool cli_stop_within(int fd, int64_t ms);

#endif
