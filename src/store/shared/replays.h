/* Keeps completed records in memory, so that a replay need not read the store. Each
 * handle of a store has its own.
 *
 * A record in memory is valid for one generation of the store's completed records, and
 * until its time is over. The generation is a number that changes whenever a completed
 * record is reopened, corrected, replaced or deleted, and when the store is moved.
 *
 * All processes share the generation of a SQLite store, where the time never ends. The
 * handle of a remote store counts only its own changes, and so keeps a record no longer
 * than "cache=" in the URL says (store/remote/flights.c). What follows is about a SQLite
 * store.
 *
 *     a change                           a reader
 *     makes the generation odd           reads the generation: before
 *     commits                            reads the record
 *     makes the generation even          reads the generation again: after
 *     answers its callers                keeps the record if both are equal, and even
 *
 * The store's lock lets only one change run at a time. A record in memory equals the
 * record in the store as long as the generation is the one under which it was kept:
 *
 * - The generation becomes odd before the commit. From then on no process replays from
 *   memory, so no caller gets a result that others already see replaced. No process keeps
 *   the old record either: a reader that took the generation earlier finds another one
 *   after it has read the record.
 * - The generation becomes even after the commit and before the answer: from then on a
 *   reader may keep the new record.
 * - A reader takes the generation before it reads the record. A generation taken
 *   afterwards could belong to a change that the reader did not see.
 *
 * A process that dies during a change leaves the generation odd: no process replays from
 * memory until another change ends or a process opens the store. */
#ifndef IDEM_STORE_SHARED_REPLAYS_H
#define IDEM_STORE_SHARED_REPLAYS_H

#include "contract/parts.h"

/* For the holder of the store's lock: the generation before the commit of a change, and
 * after it, if @now is the current one. 0 means that the generation is unknown. */
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

/* Creates a cache of at most @max bytes. NULL: memory ran out. */
struct idem__replays *idem__replays_create(size_t max);
void idem__replays_destroy(struct idem__replays *replays);

/* True if the cache has a record of @id, which may be of an earlier generation. */
bool idem__replays_has(struct idem__replays *replays,
                       const uint8_t id[IDEM_ID_LEN]);

/* Notes that a caller requested a record that is not in memory. True if the record is
 * worth keeping: it was requested before, and at most one other record of its bucket
 * since. To keep a record that is requested only once costs more than it saves. */
bool idem__replays_asked(struct idem__replays *replays,
                         const uint8_t id[IDEM_ID_LEN]);

/* Answers the begin @op from memory if the record is of @generation, which must be
 * settled, and is still valid @now: the time for which it was kept, the retention and
 * the fingerprint are checked anew. */
bool idem__replays_answer(struct idem__replays *replays, struct idem_op *op,
                          uint64_t generation, const struct idem_now *now);

/* Keeps the record of the begin @op until @until_boot_ms if a whole replay answered it.
 * @before is the generation taken before the store was read, @after the current one. */
void idem__replays_keep(struct idem__replays *replays, const struct idem_op *op,
                        uint64_t before, uint64_t after, int64_t until_boot_ms);

/* Drops the record of @id, of which the handle was told something else. */
void idem__replays_forget(struct idem__replays *replays,
                          const uint8_t id[IDEM_ID_LEN]);

/* A number that idem__replays_forget() of @id raises, and of some other ids. A record whose
 * reading began under another number must not be kept. */
uint32_t idem__replays_told(struct idem__replays *replays,
                            const uint8_t id[IDEM_ID_LEN]);

#endif
