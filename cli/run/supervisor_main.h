/* supervisor_main.h: what the supervisor does; see supervisor.h. */
#ifndef IDEM_CLI_RUN_SUPERVISOR_MAIN_H
#define IDEM_CLI_RUN_SUPERVISOR_MAIN_H

#include "run/run.h"

/* In the supervisor, with all signals blocked: obeys what comes from @channel. Ends
 * the process. */
void supervisor_main(const struct run *run, int channel)
    __attribute__((noreturn));

#endif
