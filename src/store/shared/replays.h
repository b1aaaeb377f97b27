/* Completed records in memory, for replays: of one handle of a store.
 *
 * A record in memory is valid for one generation of the store's completed records. The
 * generation is a number that all processes share and that counts their changes: a
 * completed record that is reopened, corrected, replaced or deleted, or a store that is
 * moved.
 *
 *     a change                           a reader
 *     generation becomes odd             takes the generation: before
 *     commit                             reads the record
 *     generation becomes even            takes it again: after
 *     the change is answered             keeps the record if both are one, and even
 *
 * Changes come one at a time, under the lock of the store. A record in memory is that
 * of the store while the generation is the one that it was kept under:
 *
 * - Odd before the commit: from then on nothing in memory is replayed, so nobody is
 *   told what others see replaced. Nobody keeps the old record either: to a reader that
 *   has taken the generation earlier it is another one afterwards.
 * - Even after it, and before the answer: from then on the new record may be kept.
 * - Taken before the record is read: a generation that is taken after it may be that of
 *   a change which the reader did not see.
 *
 * A process that dies in between leaves it odd: nothing is replayed from memory until
 * another change ends, or somebody opens the store.
 */
#ifndef IDEM_STORE_SHARED_REPLAYS_H
#define IDEM_STORE_SHARED_REPLAYS_H

#include "contract/parts.h"

/* For the holder of the store's lock: the generation that follows @now before a change,
 * and after it. 0: no generation is known. */
static inline uint64_t idem__generation_begun(uint64_t now)
{
    return now + 1 + (now & 1);
}

static inline uint64_t idem__generation_ended(uint64_t now)
{
    return now + (now & 1);
}

/* True if no change is in flight. */
static inline bool idem__generation_is_settled(uint64_t now)
{
    return now != 0 && (now & 1) == 0;
}

struct idem__replays;

/* Room for @max bytes, or NULL: no memory. */
struct idem__replays *idem__replays_create(size_t max);
void idem__replays_destroy(struct idem__replays *replays);

/* True if there is a record of @id; it may be of an earlier generation. */
bool idem__replays_has(struct idem__replays *replays,
                       const uint8_t id[IDEM_ID_LEN]);

/* Notes that a caller asked for a record that is not in memory. True if it was asked
 * for before, and at most one other with the same place since: then it is worth
 * keeping. Keeping a record that is asked for once costs more than it saves. */
bool idem__replays_asked(struct idem__replays *replays,
                         const uint8_t id[IDEM_ID_LEN]);

/* Answers the begin @op if the record is of this generation, which is settled, and is
 * still valid @now: it checks the retention and the fingerprint anew. */
bool idem__replays_answer(struct idem__replays *replays, struct idem_op *op,
                          uint64_t generation, const struct idem_now *now);

/* Keeps the record of the begin @op, which was answered with a replay of all of it. Its
 * generation was @before when the store was read, and is @after now. */
void idem__replays_keep(struct idem__replays *replays, const struct idem_op *op,
                        uint64_t before, uint64_t after);

#endif
