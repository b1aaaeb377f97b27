/* Makes the tables of a store. */
#include "core/error.h"
#include "postgres/admin.h"
#include "postgres/sql.h"

#include <idem/postgres.h>
#include <string.h>

_Static_assert(IDEM_POSTGRES_SQL_MAX >= IDEM__PG_SCHEMA_TEXT_MAX,
               "the header has room for the text");

int idem_postgres_template(const char *place, char *buf, size_t cap,
                           struct idem_error *ret_error)
{
    struct idem__pg_place read;
    int rc;

    if (cap < IDEM_POSTGRES_SQL_MAX) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the template needs %d bytes",
                           IDEM_POSTGRES_SQL_MAX);
    }
    rc = idem__pg_place_read(place, &read, ret_error);
    if (rc == 0) {
        idem__pg_schema_text(read.schema, buf);
        idem__pg_place_finish(&read);
    }
    return rc;
}

/* 1 yes, 0 no, or a negative code. */
static int ask(PGconn *conn, const struct idem__pg_place *place,
               const char *sql, struct idem_error *error)
{
    PGresult *result =
        idem__pg_admin_run(conn, place, sql, IDEM__PG_ANSWER_MS, error);
    int rc;

    if (result == NULL) {
        return error->code;
    }
    rc = PQntuples(result) > 0 && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return rc;
}

/* 0, or the code of the error. */
static int run(PGconn *conn, const struct idem__pg_place *place,
               const char *sql, struct idem_error *error)
{
    PGresult *result =
        idem__pg_admin_run(conn, place, sql, IDEM__PG_ANSWER_MS, error);

    PQclear(result);
    return result == NULL ? error->code : 0;
}

/* A commit without an answer may have been made. */
static int commit(PGconn *conn, const struct idem__pg_place *place,
                  struct idem_error *error)
{
    struct idem_error why;

    if (run(conn, place, "COMMIT", &why) == 0) {
        return 0;
    }
    return why.code == IDEM_EUNAVAILABLE
               ? idem__error(error, IDEM_EUNKNOWN,
                             "%.300s; the tables may have been made", why.text)
               : idem__error(error, why.code, "%s", why.text);
}

/* In one transaction, one maker at a time. */
static int make(PGconn *conn, const struct idem__pg_place *place,
                bool *ret_created, struct idem_error *error)
{
    char text[IDEM__PG_SCHEMA_TEXT_MAX];
    const char *from = text;
    int rc;

    rc = run(conn, place,
             "BEGIN; SELECT pg_advisory_xact_lock(1768187245::int8)", error);
    if (rc != 0) {
        return rc;
    }
    rc = ask(conn, place, "SELECT to_regclass('@.idem_store') IS NOT NULL",
             error);
    if (rc != 0) {
        *ret_created = false;
        return rc < 0 ? rc : 0;
    }
    rc = ask(conn, place, "SELECT to_regnamespace('@') IS NOT NULL", error);
    if (rc < 0) {
        return rc;
    }
    idem__pg_schema_text(place->schema, text);
    /* Where an administrator has made the schema, we need not be able to. */
    from = rc == 1 ? strchr(text, '\n') + 1 : text;
    rc = run(conn, place, from, error);
    rc = rc != 0 ? rc : commit(conn, place, error);
    *ret_created = rc == 0;
    return rc;
}

int idem_postgres_create(const char *place, bool *ret_created,
                         struct idem_error *ret_error)
{
    struct idem__pg_place read;
    struct idem_error error = {0};
    PGconn *conn = NULL;
    bool created = false;
    int rc = idem__pg_place_read(place, &read, &error);

    if (rc == 0) {
        rc = idem__pg_admin_open(&read, &conn, &error);
        rc = rc != 0 ? rc : make(conn, &read, &created, &error);
        PQfinish(conn);
        idem__pg_place_finish(&read);
    }
    if (rc != 0) {
        return idem__error(ret_error, rc, "%s", error.text);
    }
    if (ret_created != NULL) {
        *ret_created = created;
    }
    return 0;
}
