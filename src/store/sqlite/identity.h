/* identity.h: the notes in the lock file about the store beside it: which one was made
 * here, and how new it has been. */
#ifndef IDEM_STORE_SQLITE_IDENTITY_H
#define IDEM_STORE_SQLITE_IDENTITY_H

#include "store/sqlite/conn.h"
#include "store/sqlite/lock.h"

/* ---- Which store was made here ------------------------------------------- */

#define IDEM__STORE_ID_LEN 16

/* The lock file's knowledge of the store beside it. */
enum idem__made {
    IDEM__MADE_NONE,    /* Nothing: it is new, or was emptied. */
    IDEM__MADE_PENDING, /* A store is being made; the maker may have died. */
    IDEM__MADE_DONE,    /* It was made. */
    IDEM__MADE_DAMAGED, /* That it was made is written, but torn; the id is that
                           of the pending store, if that can be read. */
};

struct idem__identity {
    enum idem__made made;
    uint8_t id[IDEM__STORE_ID_LEN];
};

/* Reads the lock file's note. */
void idem__identity_read(const struct idem__lock *lock,
                         struct idem__identity *ret_identity);

/* Writes the note, flushed. 0 or a code. */
int idem__identity_write(const struct idem__lock *lock, enum idem__made made,
                         const uint8_t id[IDEM__STORE_ID_LEN],
                         struct idem_error *error);

/* IDEM_ECONFIG, with what a person does about a store that is gone. */
int idem__identity_gone(const char *path, struct idem_error *error);

/* ---- How new the store has been ------------------------------------------ */

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
