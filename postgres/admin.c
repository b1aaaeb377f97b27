/* Blocking calls, each bounded in time, and the creation of a store's tables, which uses
 * them. */
#include "postgres/admin.h"

#include "base/host.h"
#include "core/error.h"
#include "postgres/task_request.h"
#include "postgres/sql.h"

#include <idem/postgres.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_MAX = 12 * 1024,
    /* How long a call waits for a silent server. The server itself ends a statement after
     * 30 s (statement_timeout), and its wait for a lock after 10 s (lock_timeout). */
    ANSWER_MS = 15 * 1000,
};

static void be_quiet(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

bool idem__pg_admin_answers(const PGconn *conn)
{
    return PQstatus(conn) == CONNECTION_OK &&
           PQtransactionStatus(conn) != PQTRANS_ACTIVE;
}

/* ---- Waiting ---- */

/* Waits until the socket is ready for libpq. False: it was not within ANSWER_MS. */
static bool await_socket(PGconn *conn, bool writes)
{
    struct pollfd fd = {
        .fd = PQsocket(conn),
        .events = writes ? POLLIN | POLLOUT : POLLIN,
    };
    int64_t until_ms = idem__time_add(idem__mono_ms(), ANSWER_MS);
    int64_t left_ms;
    int rc;

    do {
        left_ms = until_ms - idem__mono_ms();
        rc = left_ms > 0 ? poll(&fd, 1, (int)left_ms) : 0;
    } while (rc < 0);
    return rc > 0;
}

/* Sends the rest of the query, and receives until a result is complete. False: the server
 * was silent for ANSWER_MS. A large answer may take longer, as long as more of it comes. */
static bool exchange(PGconn *conn)
{
    int left = PQflush(conn);

    while (left > 0 || (left == 0 && PQisBusy(conn))) {
        if (!await_socket(conn, left > 0)) {
            return false;
        }
        if (PQconsumeInput(conn) != 1) {
            return true; /* PQgetResult() has the error. */
        }
        left = PQflush(conn);
    }
    return true;
}

/* Returns the last result, or the first one that is an error. NULL: nothing came in time,
 * and the connection cannot be used any more. */
static PGresult *await(PGconn *conn, const struct idem__pg_place *place,
                       struct idem_error *error)
{
    PGresult *last = NULL;

    for (;;) {
        PGresult *result;

        if (!exchange(conn)) {
            PQclear(last);
            (void)idem__error(
                error, IDEM_EUNAVAILABLE,
                "timed out after %d s waiting for PostgreSQL "
                "(%.100s); check whether the server hangs, then run this again",
                ANSWER_MS / 1000, place->endpoint);
            return NULL;
        }
        result = PQgetResult(conn);
        if (result == NULL) {
            return last;
        }
        if (last != NULL && PQresultStatus(last) == PGRES_FATAL_ERROR) {
            PQclear(result);
        } else {
            PQclear(last);
            last = result;
        }
    }
}

/* Returns @result if it is a success, else NULL and its error. */
static PGresult *take_good(PGresult *result, const struct idem__pg_place *place,
                           struct idem_error *error)
{
    if (PQresultStatus(result) == PGRES_TUPLES_OK ||
        PQresultStatus(result) == PGRES_COMMAND_OK) {
        return result;
    }
    (void)idem__pg_error_read(result, place, error);
    PQclear(result);
    return NULL;
}

/* Waits for the answer to a query. @sent: whether libpq took the query (1). */
static PGresult *answer(PGconn *conn, const struct idem__pg_place *place,
                        int sent, struct idem_error *error)
{
    PGresult *result;

    if (sent != 1) {
        (void)idem__error(error, IDEM_EUNAVAILABLE,
                          "PostgreSQL (%.100s): the connection was lost",
                          place->endpoint);
        return NULL;
    }
    result = await(conn, place, error);
    return result == NULL ? NULL : take_good(result, place, error);
}

/* ---- Connecting ---- */

int idem__pg_admin_open(const struct idem__pg_place *place, PGconn **ret_conn,
                        struct idem_error *ret_error)
{
    const char *names[IDEM__PG_OPTIONS_MAX + 2] = {NULL};
    const char *values[IDEM__PG_OPTIONS_MAX + 2] = {NULL};
    locale_t before = idem__pg_place_plain(place);
    char seconds[24];
    PGconn *conn;

    memcpy(names, place->names, place->len * sizeof(names[0]));
    memcpy(values, place->values, place->len * sizeof(values[0]));
    /* libpq takes the later one of two: a 0 in the URL would mean to wait for ever. */
    names[place->len] = "connect_timeout";
    values[place->len] = seconds;
    (void)snprintf(seconds, sizeof(seconds), "%lld",
                   (long long)place->connect_ms / 1000);
    *ret_conn = NULL;
    conn = PQconnectdbParams(names, values, /* expand_dbname= */ 0);
    if (conn != NULL && PQstatus(conn) != CONNECTION_OK &&
        strstr(PQerrorMessage(conn), ":  ") != NULL) {
        /* A server has refused. libpq writes the SQLSTATE into its message only when it is
         * verbose, so connect once more: see error.c. */
        (void)PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
        PQreset(conn);
    }
    (void)uselocale(before);
    if (conn == NULL || PQstatus(conn) != CONNECTION_OK) {
        (void)idem__pg_error_connect(conn, place, ret_error);
        PQfinish(conn);
        return ret_error->code;
    }
    (void)PQsetNoticeReceiver(conn, be_quiet, NULL);
    (void)PQsetnonblocking(conn, 1);
    PQclear(idem__pg_admin_run(conn, place,
                               "SET statement_timeout = '30s';"
                               " SET lock_timeout = '10s'",
                               ret_error));
    if (!idem__pg_admin_answers(conn)) {
        PQfinish(conn);
        return ret_error->code;
    }
    *ret_conn = conn;
    return 0;
}

/* ---- Statements ---- */

PGresult *idem__pg_admin_run(PGconn *conn, const struct idem__pg_place *place,
                             const char *sql, struct idem_error *ret_error)
{
    char text[TEXT_MAX];
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
    return answer(conn, place, PQsendQuery(conn, text), ret_error);
}

PGresult *idem__pg_admin_run_params(PGconn *conn,
                                    const struct idem__pg_place *place,
                                    enum idem__pg_sql sql,
                                    struct idem__pg_params *params,
                                    struct idem_error *ret_error)
{
    const char *values[IDEM__PG_PARAMS_MAX];
    int lengths[IDEM__PG_PARAMS_MAX];
    int formats[IDEM__PG_PARAMS_MAX];
    char text[IDEM__PG_SQL_MAX];
    PGresult *result = NULL;

    idem__pg_sql_text(sql, place->schema, text);
    if (!idem__pg_params_finish(params, values, lengths, formats)) {
        (void)idem__error_plain(ret_error, IDEM_ENOMEM);
    } else {
        result =
            answer(conn, place,
                   PQsendQueryParams(conn, text, (int)params->len,
                                     params->types, values, lengths, formats,
                                     /* resultFormat= */ 1),
                   ret_error);
    }
    idem__pg_params_reset(params);
    return result;
}

/* ---- Creating the tables ---- */

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

/* Asks a question of SQL. Returns 1 for yes, 0 for no, or a negative code. */
static int ask(PGconn *conn, const struct idem__pg_place *place,
               const char *sql, struct idem_error *error)
{
    PGresult *result = idem__pg_admin_run(conn, place, sql, error);
    int rc;

    if (result == NULL) {
        return error->code;
    }
    rc = PQntuples(result) > 0 && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return rc;
}

/* Returns 0, or the code of the error. */
static int run(PGconn *conn, const struct idem__pg_place *place,
               const char *sql, struct idem_error *error)
{
    PGresult *result = idem__pg_admin_run(conn, place, sql, error);

    PQclear(result);
    return result == NULL ? error->code : 0;
}

/* Commits. The server may have made a commit that it did not answer: IDEM_EUNKNOWN. */
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

/* Creates the tables in one transaction. The advisory lock lets in one process at a time:
 * without it, two that create the same table at once would both find none, and one of them
 * would fail. */
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
    /* If an administrator has created the schema, leave out CREATE SCHEMA, the first line:
     * the role may lack the right to create one. */
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
