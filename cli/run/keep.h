/* keep.h: what the keeper does; see keeper.h. */
#ifndef IDEM_CLI_RUN_KEEP_H
#define IDEM_CLI_RUN_KEEP_H

#include "run/run.h"

/* In the keeper, with all signals blocked: obeys what comes from @channel. Ends
 * the process. */
void keep(const struct run *run, int channel) __attribute__((noreturn));

#endif
