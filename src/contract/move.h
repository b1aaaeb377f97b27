/* Moves a store to another place: the old store takes no more begins, and the new one
 * takes none before it has all records.
 *
 *     the old store:  NONE ----> LEFT
 *     the new store:  NONE ----> FILLING ----> NONE, or HERE
 *                                  (not empty) (all has come)
 *
 * In a store that is LEFT or FILLING a begin, a limit and idem_reopen() fail with
 * IDEM_ECONFIG and a sentence that names the other place; owners still end and renew
 * their attempts. idem export --open and idem import use these calls; see
 * idem-export(1).
 */
#ifndef IDEM_CONTRACT_MOVE_H
#define IDEM_CONTRACT_MOVE_H

#include <idem.h>

enum idem_move_state {
    IDEM_MOVE_NONE = 0, /* Never moved, or the move was undone. */
    IDEM_MOVE_LEFT,     /* Its records are, or soon will be, elsewhere. */
    IDEM_MOVE_FILLING,  /* It receives records, and does not have all yet. */
    IDEM_MOVE_HERE,     /* It has received all records. */
};

/* The sentence in struct idem_decision has room for so much. */
#define IDEM_MOVE_PLACE_MAX 100

struct idem_move {
    enum idem_move_state state;
    uint8_t id[16];                      /* Of the move; zeros for NONE. */
    char place[IDEM_MOVE_PLACE_MAX + 1]; /* LEFT: where the records are, for the
                                            sentence; or "". Printable ASCII. */
    int64_t marked_ms; /* When the state was set, in the store's time. */

    /* Of the store. HERE raises its fence floor and its time to these, if they are its
     * own to raise (only a local store has a time of its own). */
    uint64_t fence_floor; /* Later fences are above it. */
    int64_t store_ms;
    int64_t settles_ms; /* Answer: after so long no caller acts on the former
                           state any more. */
};

/* Reads the state of a move.
 *
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_EDENIED, IDEM_ENOMEM
 */
int idem__move_get(struct idem_store *store, struct idem_move *ret_move,
                   struct idem_error *ret_error);

/* Sets the state to @move if it is still @was, as idem__move_get() read it. It is
 * durable when this returns 0; setting the state that the store already has returns 0
 * again. A list that begins @settles_ms after this call shows every claim that was
 * STARTED.
 *
 * IDEM_ELOST     The state is not @was: read it again.
 * IDEM_EINVALID  @was or @move is not a valid state.
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_EDENIED,
 * IDEM_ENOMEM
 */
int idem__move_set(struct idem_store *store, const struct idem_move *was,
                   const struct idem_move *move, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

#endif
