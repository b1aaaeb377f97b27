/* Which store was made here: its random id, in the lock file and in the
 * database. */
#ifndef IDEM_STORE_SQLITE_IDENTITY_H
#define IDEM_STORE_SQLITE_IDENTITY_H

#include "store/sqlite/conn.h"
#include "store/sqlite/lock.h"

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

/* The id that the database has; false in *@ret_has: none. 0 or a code. */
int idem__identity_load(struct idem__conn *conn, bool *ret_has,
                        uint8_t ret_id[IDEM__STORE_ID_LEN],
                        struct idem_error *error);

/* Gives a database its id, in a transaction of its own or the one that is open.
 * An SQLite result. */
int idem__identity_save(struct idem__conn *conn,
                        const uint8_t id[IDEM__STORE_ID_LEN]);

/* IDEM_ECONFIG, with what a person does about a store that is gone. */
int idem__identity_gone(const char *path, struct idem_error *error);

#endif
