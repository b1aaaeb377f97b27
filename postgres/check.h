/* A check of a database on its way. */
#ifndef IDEM_POSTGRES_CHECK_H
#define IDEM_POSTGRES_CHECK_H

#include "postgres/admin.h"

#include <idem/check.h>

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
