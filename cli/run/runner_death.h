/* runner_death.h: what the supervisor tells the store after the death of the runner. */
#ifndef IDEM_CLI_RUN_RUNNER_DEATH_H
#define IDEM_CLI_RUN_RUNNER_DEATH_H

#include "run/supervisor.h"

/* The runner died after it asked for the key and before it ordered anything. If
 * it got the key, that is released: nothing was run. After a takeover its lease
 * ends instead, so that the next one takes over too. */
void runner_death_of_claim(const struct run *run);

/* The runner died after the order @start to run the command, which ended as @end
 * says (NULL: it was not run). Nobody knows what that has done: the lease is over
 * now, and @note says so to people; or it is to be run again, where that is the
 * rule for how it ended. Without an end, the key is released; or its lease ends,
 * if another attempt may have had effects. */
void runner_death_of_work(const struct run *run,
                          const struct supervisor_order *start,
                          const struct child_end *end, const char *note);

#endif
