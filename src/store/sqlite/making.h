/* Making a store, and knowing one that was made; see identity.c. */
#ifndef IDEM_STORE_SQLITE_MAKING_H
#define IDEM_STORE_SQLITE_MAKING_H

#include "store/sqlite/store.h"

/* May the database of @conn, which is @empty or not, be used as the store in
 * this place? Notes in the lock file that one is being made. The lock is held.
 *
 * IDEM_ECONFIG    It is not the store that was made here.
 * IDEM_ENOTFOUND  There is none, and the options allow none to be made.
 */
int idem__making_begin(struct idem__sqlite_store *store,
                       struct idem__conn *conn, bool empty,
                       struct idem_error *error);

/* The tables and the id, where they are missing, and then the note. */
int idem__making_end(struct idem__sqlite_store *store, struct idem__conn *conn,
                     bool empty, struct idem_error *error);

/* Whichever store was here before: this one is the store from now on. */
int idem__making_accept(struct idem__sqlite_store *store,
                        struct idem_error *error);

/* IDEM_ECONFIG if a store was made here whose file is not there any more. */
int idem__making_missing(const struct idem__sqlite_store *store,
                         struct idem_error *error);

/* The lock file was truncated by somebody while this store was open: what it
 * knew is written again. */
void idem__making_renew(const struct idem__sqlite_store *store);

#endif
