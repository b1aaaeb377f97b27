/* guard.h: the process between the supervisor and a runner that has other children;
 * see supervisor.h. */
#ifndef IDEM_CLI_RUN_GUARD_H
#define IDEM_CLI_RUN_GUARD_H

#include "run/run.h"

/* With all signals blocked: starts the supervisor on @channel and waits for its end.
 * If it was killed, ends what it left and tells the runner. Ends the process. */
void guard(const struct run *run, int channel) __attribute__((noreturn));

#endif
