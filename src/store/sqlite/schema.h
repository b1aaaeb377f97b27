/* The tables of the file, and the version of them. */
#ifndef IDEM_STORE_SQLITE_SCHEMA_H
#define IDEM_STORE_SQLITE_SCHEMA_H

#include "store/sqlite/conn.h"

/* Whose file is it? *@ret_empty: nobody's, it has no tables. Changes nothing.
 *
 * IDEM_ECONFIG  It is another program's file, or of a newer version.
 */
int idem__schema_check(struct idem__conn *conn, bool *ret_empty,
                       struct idem_error *error);

/* Makes the tables in an empty file. The store's lock is held. */
int idem__schema_create(struct idem__conn *conn, struct idem_error *error);

/* Makes the tables in a database of somebody else's, inside the transaction that
 * is open, unless they are there.
 *
 * IDEM_ECONFIG  They are of another version.
 */
int idem__schema_create_in(struct idem__conn *conn, struct idem_error *error);

#endif
