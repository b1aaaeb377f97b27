/* A connection that creates or checks a store. Its calls block for a bounded time, because
 * a server may accept a connection and never answer. */
#ifndef IDEM_POSTGRES_ADMIN_H
#define IDEM_POSTGRES_ADMIN_H

#include "postgres/params.h"
#include "postgres/place.h"
#include "postgres/sql.h"

#include <libpq-fe.h>
#include <idem/check.h>

/* Connects, within place->connect_ms for each address of each host. Returns 0, or the code
 * of the error, and sets *@ret_conn to NULL then. */
int idem__pg_admin_open(const struct idem__pg_place *place, PGconn **ret_conn,
                        struct idem_error *ret_error);

/* False once the connection was lost or an answer did not come in time: it cannot run
 * another statement. */
bool idem__pg_admin_answers(const PGconn *conn);

/* Runs @sql, which may be several statements, with "@" for the schema. Returns the result
 * of the last one, as text. NULL: it failed, or nothing came for 15 s. *@ret_error has the
 * reason; IDEM_EUNAVAILABLE means that the server may have done it. */
PGresult *idem__pg_admin_run(PGconn *conn, const struct idem__pg_place *place,
                             const char *sql, struct idem_error *ret_error);

/* Runs @sql with @params, and empties them. The result is binary; NULL as above. */
PGresult *idem__pg_admin_run_params(PGconn *conn,
                                    const struct idem__pg_place *place,
                                    enum idem__pg_sql sql,
                                    struct idem__pg_params *params,
                                    struct idem_error *ret_error);

/* ---- A check of a database in progress ---- */

struct idem__pg_check {
    const struct idem__pg_place *place;
    PGconn *conn;
    idem_finding_fn *each;
    void *ctx;
    bool quick;
    const struct idem_check_options *options; /* May be NULL. */
    int code; /* For the next finding of IDEM_GRADE_BAD. */
};

/* Reports a finding, whose text is formatted as by printf(). */
void idem__pg_tell(struct idem__pg_check *check, enum idem_grade grade,
                   const char *about, const char *mend, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Reports whether the schema and its tables exist, and which rights the role lacks:
 * check_rights.c. False: the role cannot read the version of the schema and the
 * records. */
bool idem__pg_check_rights(struct idem__pg_check *check);

/* Reads records, and reports whether they can be trusted: check_records.c. */
void idem__pg_check_records(struct idem__pg_check *check);

#endif
