/* The tables of the file, and the version of them. */
#ifndef IDEM_STORE_SQLITE_SCHEMA_H
#define IDEM_STORE_SQLITE_SCHEMA_H

#include "store/sqlite/identity.h"

enum idem__holder {
    IDEM__HOLDER_NONE, /* The file has no tables. */
    IDEM__HOLDER_STORE,
    IDEM__HOLDER_APPLICATION, /* It keeps its records in it: in.c. */
};

/* Whose file is it? Changes nothing.
 *
 * IDEM_ECONFIG  It is another program's file, or of a newer version.
 */
int idem__schema_check(struct idem__conn *conn, enum idem__holder *ret_holder,
                       struct idem_error *error);

/* IDEM_ECONFIG  Tables of @version are not ours. */
int idem__schema_check_version(int version, struct idem_error *error);

/* Makes the tables in an empty file, which is the store @id. The store's lock is
 * held. */
int idem__schema_create(struct idem__conn *conn,
                        const uint8_t id[IDEM__STORE_ID_LEN],
                        struct idem_error *error);

/* Makes the tables in a database of somebody else's, inside the transaction that
 * is open, unless they are there.
 *
 * IDEM_ECONFIG  They are of another version.
 */
int idem__schema_create_in(struct idem__conn *conn, struct idem_error *error);

/* Adds what purges keep, within the caller's transaction. SQLITE_OK or a result code. */
int idem__schema_add_purge(struct idem__conn *conn);

/* The id that the database has; false in *@ret_has: none. 0 or a code. */
int idem__schema_load_id(struct idem__conn *conn, bool *ret_has,
                         uint8_t ret_id[IDEM__STORE_ID_LEN],
                         struct idem_error *error);

/* Gives a database its id, in a transaction of its own or the one that is open.
 * An SQLite result. */
int idem__schema_save_id(struct idem__conn *conn,
                         const uint8_t id[IDEM__STORE_ID_LEN]);

#endif
