/* A connection for those who make or check a store. Its calls block, for a time that is
 * bounded: a server may accept a connection and never answer. */
#ifndef IDEM_POSTGRES_ADMIN_H
#define IDEM_POSTGRES_ADMIN_H

#include "postgres/params.h"
#include "postgres/place.h"
#include "postgres/sql.h"

#include <libpq-fe.h>
#include <idem/check.h>

/* How long a server may be silent. It ends a statement after 30 s, and the wait for a
 * lock after 10 s. */
enum {
    IDEM__PG_ANSWER_MS = 15 * 1000,
    IDEM__PG_SCAN_MS = 35 * 1000, /* Of what reads a whole table. */
};

/* Connects, in place->connect_ms for each address of each host. 0, or the code of the
 * error; *@ret_conn is NULL then. */
int idem__pg_admin_open(const struct idem__pg_place *place, PGconn **ret_conn,
                        struct idem_error *ret_error);

/* True unless the connection was lost, or an answer did not come in time: no other
 * statement can be run then. */
bool idem__pg_admin_answers(const PGconn *conn);

/* Runs @sql, which may be several statements and contain "@" for the schema; the result
 * of the last, as text. NULL: it failed, or nothing came for @ms, and *@ret_error says why:
 * IDEM_EUNAVAILABLE, where nobody knows whether it was done, or another code. */
PGresult *idem__pg_admin_run(PGconn *conn, const struct idem__pg_place *place,
                             const char *sql, int64_t ms,
                             struct idem_error *ret_error);

/* Runs @sql with @params, which it empties; the result is binary. NULL as above. */
PGresult *idem__pg_admin_run_params(PGconn *conn,
                                    const struct idem__pg_place *place,
                                    enum idem__pg_sql sql,
                                    struct idem__pg_params *params,
                                    struct idem_error *ret_error);

/* ---- A check of a database on its way ---- */

struct idem__pg_check {
    const struct idem__pg_place *place;
    PGconn *conn;
    idem_finding_fn *each;
    void *ctx;
    bool quick;
    const struct idem_check_options *options; /* May be NULL. */
    int code; /* Of the next finding that is bad. */
};

/* Tells a finding, whose text is made as printf does. */
void idem__pg_tell(struct idem__pg_check *check, enum idem_grade grade,
                   const char *about, const char *mend, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Tells whether the schema and its tables are there, and which rights the role lacks:
 * check_rights.c. False: the version of the schema and the records cannot be read. */
bool idem__pg_check_rights(struct idem__pg_check *check);

/* Reads records, and tells whether they can be trusted: check_records.c. */
void idem__pg_check_records(struct idem__pg_check *check);

#endif
