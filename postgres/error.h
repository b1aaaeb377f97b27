/* What an error of libpq's or of the server's means. */
#ifndef IDEM_POSTGRES_ERROR_H
#define IDEM_POSTGRES_ERROR_H

#include "postgres/place.h"
#include "postgres/request.h"

/* Reads the error of @result, which ended a transaction, and so nothing of it was
 * done. UNKNOWN: it ended the connection. */
enum idem__said idem__pg_error_read(const PGresult *result,
                                    const struct idem__pg_place *place,
                                    struct idem_error *ret_error);

/* Reads why there is no connection. */
enum idem__said idem__pg_error_connect(PGconn *conn,
                                       const struct idem__pg_place *place,
                                       struct idem_error *ret_error);

#endif
