/* arrive.h: idem import of a store that is moved: the store that it comes to.
 *
 * Nothing begins there before all of it has come in. */
#ifndef IDEM_CLI_UPKEEP_ARRIVE_H
#define IDEM_CLI_UPKEEP_ARRIVE_H

#include "contract/move.h"

struct cli_arrival {
    struct idem_store *store;
    struct idem_move mark; /* Of the store, as it is. */
    bool is_here;          /* All of it came in before: nothing is added. */
    bool has_end;          /* The last line was read: */
    uint64_t count;        /* what it says. */
    uint64_t records;      /* That were read. */
    uint64_t fence_floor;  /* Above all fences that were read. */
    int64_t store_ms;
    uint64_t others; /* Records of other attempts that are there, by fence. */
};

/* Marks @store as being filled by the move @id, unless it is already. 0, or an exit
 * status after saying why not: it is in use, say. */
int cli_arrive(struct cli_arrival *arrival, struct idem_store *store,
               const uint8_t id[16]);

/* @record was not added: the same is there, or another state of the same attempt,
 * which is told and stays, or another attempt, which is counted. 0, or an exit status. */
int cli_arrive_kept(struct cli_arrival *arrival,
                    const struct idem_record *record);

/* All was read, of which @refused lines could not be taken: opens the store if nothing
 * is missing. 0, or an exit status after saying what is. */
int cli_arrive_end(struct cli_arrival *arrival, uint64_t refused);

#endif
