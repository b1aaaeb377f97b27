/* obituary.h: what the keeper tells the store after the death of the runner. */
#ifndef IDEM_CLI_RUN_OBITUARY_H
#define IDEM_CLI_RUN_OBITUARY_H

#include "run/keeper.h"

/* The runner died after it asked for the key and before it ordered anything. If
 * it got the key, that is released: nothing was run. */
void obituary_of_claim(const struct run *run);

/* The runner died after the order @start to run the command. With @ran nobody
 * knows what that has done: the lease is over now, and @note says so to people.
 * Without, the key is released. */
void obituary_of_work(const struct run *run, const struct keeper_order *start,
                      bool ran, const char *note);

#endif
