/* Moving a store: a store that is moved to another place takes no more begins at the old
 * place, and none yet at the new one: not before all of its records are there.
 *
 *     the old store:  NONE ----> LEFT
 *     the new store:  NONE ----> FILLING ----> NONE, or HERE
 *                                  (not empty) (all has come)
 *
 * In a store that is LEFT or FILLING a begin, a limit and idem_reopen() are refused
 * with IDEM_ECONFIG and a sentence that says where to go; owners still end and renew
 * their attempts. idem export --open and idem import use these calls; idem-export(1). */
#ifndef IDEM_CONTRACT_MOVE_H
#define IDEM_CONTRACT_MOVE_H

#include <idem.h>

enum idem_move_state {
    IDEM_MOVE_NONE = 0, /* It was never moved, or as if it never was. */
    IDEM_MOVE_LEFT,     /* Its records are elsewhere, or on their way. */
    IDEM_MOVE_FILLING,  /* Records come in, and not all of them are here. */
    IDEM_MOVE_HERE,     /* All of them came in. */
};

/* So long that the sentence has all of it: struct idem_decision. */
#define IDEM_MOVE_PLACE_MAX 100

struct idem_move {
    enum idem_move_state state;
    uint8_t id[16];                      /* Of the move; of NONE zero. */
    char place[IDEM_MOVE_PLACE_MAX + 1]; /* LEFT: where the records are, for the
                                            sentence; or "". Printable ASCII. */
    int64_t marked_ms; /* When the state was set, in the store's time. */

    /* Of the store. To set: HERE raises the first two to these, where they are its
     * own to raise (only a local store has a time of its own). */
    uint64_t fence_floor; /* All later fences are above it. */
    int64_t store_ms;
    int64_t settles_ms; /* Answer: after so long nobody acts any more on what
                           the state was before. */
};

/* Reads the state.
 *
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_EDENIED, IDEM_ENOMEM
 */
int idem__move_get(struct idem_store *store, struct idem_move *ret_move,
                   struct idem_error *ret_error);

/* Makes the state @move where it is still @was, as idem__move_get() gave it. Durable
 * when it answers 0, and again 0 if it is so already. A claim that was STARTED is
 * listed after @settles_ms have passed, counted from here.
 *
 * IDEM_ELOST     The state is another one than @was: look again.
 * IDEM_EINVALID  One of them cannot be.
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_EDENIED,
 * IDEM_ENOMEM
 */
int idem__move_set(struct idem_store *store, const struct idem_move *was,
                   const struct idem_move *move, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

#endif
