/* How new the store in this place has been, noted beside it. */
#ifndef IDEM_STORE_SQLITE_SEEN_H
#define IDEM_STORE_SQLITE_SEEN_H

#include "store/sqlite/lock.h"

/* A time that is durable in the store; the lock is held. */
void idem__seen_note(const struct idem__lock *lock, int64_t ms);

/* The same, whatever the note was before; it is flushed with the identity, which
 * is written after it: 0, or -1. */
int idem__seen_set(const struct idem__lock *lock, int64_t ms);

/* A new store is made here: what was noted was of another one. */
void idem__seen_forget(const struct idem__lock *lock);

/* The time in the note; 0: nothing that can be read. */
int64_t idem__seen_ms(const struct idem__lock *lock);

#endif
