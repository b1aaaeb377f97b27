/* leave.h: idem export --open: the store that is left for another one. */
#ifndef IDEM_CLI_UPKEEP_LEAVE_H
#define IDEM_CLI_UPKEEP_LEAVE_H

#include "contract/move.h"

/* Marks @store as moved to @place (NULL: unsaid). It may be marked so already: then it
 * is the same move. 0, or an exit status after saying why not. */
int cli_leave(struct idem_store *store, const char *place,
              struct idem_move *ret_move);

/* Waits until nobody begins anything there, who may not have heard of it. */
void cli_leave_settle(const struct idem_move *move);

/* Reads the mark, fences and time of @store. 0, or an exit status. */
int cli_leave_read(struct idem_store *store, struct idem_move *ret_move);

/* Waits until it has to be looked again at what is in progress: longer each time, and
 * until @until_ms of cli_mono_ms() at most. False: that is over. */
bool cli_leave_wait(int64_t until_ms, unsigned nth, uint64_t open);

/* @found as it comes to the other store: with another nonce, so that a token that is good
 * here is good for nothing there; and unknown if it is in progress, for nobody there
 * will hear how it ends. *@ret_record points into @found, and is valid until the next
 * call. 0, or an exit status. */
int cli_leave_cut(struct idem_store *store, const struct idem_record *found,
                  struct idem_record *ret_record);

#endif
