/* Blocking calls, each bounded in time. */
#include "postgres/admin.h"

#include "core/error.h"
#include "postgres/error.h"

#include <string.h>

enum {
    TEXT_MAX = 12 * 1024
};

static void be_quiet(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

int idem__pg_admin_open(const struct idem__pg_place *place, PGconn **ret_conn,
                        struct idem_error *ret_error)
{
    const char *names[IDEM__PG_OPTIONS_MAX + 2] = {NULL};
    const char *values[IDEM__PG_OPTIONS_MAX + 2] = {NULL};
    PGconn *conn;
    size_t i;

    /* The later of two counts. */
    names[0] = "connect_timeout";
    values[0] = "10";
    for (i = 0; i < place->len; i++) {
        names[i + 1] = place->names[i];
        values[i + 1] = place->values[i];
    }
    *ret_conn = NULL;
    conn = PQconnectdbParams(names, values, /* expand_dbname= */ 0);
    if (conn != NULL && PQstatus(conn) != CONNECTION_OK &&
        strstr(PQerrorMessage(conn), ":  ") != NULL) {
        /* A server has refused: once more, for the SQLSTATE. See error.c. */
        (void)PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
        PQreset(conn);
    }
    if (conn == NULL || PQstatus(conn) != CONNECTION_OK) {
        (void)idem__pg_error_connect(conn, place, ret_error);
        PQfinish(conn);
        return ret_error->code;
    }
    (void)PQsetNoticeReceiver(conn, be_quiet, NULL);
    PQclear(PQexec(conn, "SET statement_timeout = '30s'; SET lock_timeout = "
                         "'10s'"));
    *ret_conn = conn;
    return 0;
}

PGresult *idem__pg_admin_run(PGconn *conn, const struct idem__pg_place *place,
                             const char *sql, struct idem_error *ret_error)
{
    char text[TEXT_MAX];
    PGresult *result;
    size_t len = 0;

    for (; *sql != '\0' && len + IDEM__PG_SCHEMA_MAX + 1 < sizeof(text);
         sql++) {
        if (*sql == '@') {
            (void)strcpy(text + len, place->schema);
            len += strlen(place->schema);
        } else {
            text[len++] = *sql;
        }
    }
    text[len] = '\0';
    result = PQexec(conn, text);
    if (PQresultStatus(result) == PGRES_TUPLES_OK ||
        PQresultStatus(result) == PGRES_COMMAND_OK) {
        return result;
    }
    (void)idem__pg_error_read(result, place, ret_error);
    PQclear(result);
    return NULL;
}
