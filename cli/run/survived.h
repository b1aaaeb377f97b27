/* survived.h: a process of the command is alive, or may be. */
#ifndef IDEM_CLI_RUN_SURVIVED_H
#define IDEM_CLI_RUN_SURVIVED_H

#include "run/ending.h"
#include "run/run.h"
#include "run/watch.h"

/* Says who is alive and what happens next, and records nothing: a record that
 * the work ended, or that its lease did, would let another start beside it. The
 * exit status. */
int survived_say(struct run *run, const struct watch *watch,
                 const struct ending *ending);

#endif
