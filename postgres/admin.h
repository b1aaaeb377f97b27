/* A blocking connection, for those who make or check a store. */
#ifndef IDEM_POSTGRES_ADMIN_H
#define IDEM_POSTGRES_ADMIN_H

#include "postgres/place.h"

#include <libpq-fe.h>

/* 0, or the code of the error. *@ret_conn is NULL then. */
int idem__pg_admin_open(const struct idem__pg_place *place, PGconn **ret_conn,
                        struct idem_error *ret_error);

/* Runs @sql, which may be several statements and contain "@" for the schema; the result
 * of the last, as text. NULL: it failed, and *@ret_error says why. */
PGresult *idem__pg_admin_run(PGconn *conn, const struct idem__pg_place *place,
                             const char *sql, struct idem_error *ret_error);

#endif
