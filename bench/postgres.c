/* PostgreSQL under load, as people use it for idempotency keys: an INSERT that
 * does nothing on conflict claims, an UPDATE for the owner records the result; or both
 * in one transaction, which holds the row by FOR UPDATE. */
#include "load.h"

#include <err.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct target target;

/* WHERE is the socket's folder. */
struct shared {
    char info[512];
    PGconn *conn;
};

struct caller {
    PGconn *conn;
    unsigned long n;
};

static const char table[] = "CREATE TABLE IF NOT EXISTS operation ("
                            " key text PRIMARY KEY,"
                            " owner text NOT NULL,"
                            " status smallint NOT NULL,"
                            " deadline timestamptz NOT NULL,"
                            " result bytea)";

static PGconn *dial(const struct shared *shared)
{
    PGconn *conn = PQconnectdb(shared->info);

    if (PQstatus(conn) != CONNECTION_OK) {
        errx(1, "postgres: %s", PQerrorMessage(conn));
    }
    return conn;
}

static PGresult *checked(PGconn *conn, PGresult *answer)
{
    switch (PQresultStatus(answer)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_COPY_IN:
        return answer;
    default:
        errx(1, "postgres: %s", PQerrorMessage(conn));
    }
}

static void run_sql(PGconn *conn, const char *sql)
{
    PQclear(checked(conn, PQexec(conn, sql)));
}

static void *open_shared(const char *where)
{
    struct shared *shared = calloc(1, sizeof(*shared));

    if (shared == NULL) {
        err(1, "postgres");
    }
    (void)snprintf(shared->info, sizeof(shared->info),
                   "host=%s dbname=postgres user=bench", where);
    shared->conn = dial(shared);
    run_sql(shared->conn, "SET client_min_messages = warning");
    run_sql(shared->conn, table);
    return shared;
}

static void close_shared(void *arg)
{
    struct shared *shared = arg;

    PQfinish(shared->conn);
    free(shared);
}

static void clear(void *arg)
{
    struct shared *shared = arg;

    run_sql(shared->conn, "TRUNCATE operation");
}

static void prepare(PGconn *conn, const char *name, const char *sql)
{
    PQclear(checked(conn, PQprepare(conn, name, sql, 0, NULL)));
}

static void *connect_caller(void *shared)
{
    struct caller *caller = calloc(1, sizeof(*caller));

    if (caller == NULL) {
        err(1, "postgres");
    }
    caller->conn = dial(shared);
    prepare(caller->conn, "begin",
            "INSERT INTO operation (key, owner, status, deadline) "
            "VALUES ($1, $2, 1, now() + interval '1 minute') "
            "ON CONFLICT DO NOTHING RETURNING 1");
    prepare(caller->conn, "complete",
            "UPDATE operation SET status = 2, result = $3, "
            "deadline = now() + interval '1 day' "
            "WHERE key = $1 AND owner = $2 AND status = 1");
    prepare(caller->conn, "claim",
            "INSERT INTO operation (key, owner, status, deadline) "
            "VALUES ($1, $2, 1, now() + interval '1 minute') "
            "ON CONFLICT DO NOTHING");
    prepare(caller->conn, "lock",
            "SELECT status, result FROM operation WHERE key = $1 FOR UPDATE");
    prepare(caller->conn, "replay",
            "SELECT result FROM operation WHERE key = $1 AND status = 2");
    return caller;
}

static void disconnect(void *arg)
{
    struct caller *caller = arg;

    PQfinish(caller->conn);
    free(caller);
}

/* The values of a new operation: key, owner and result. */
struct values {
    char owner[32];
    const char *base[3];
    int lengths[3];
};

static void take_values(struct caller *caller, const char *key,
                        struct values *values)
{
    values->base[0] = key;
    values->lengths[0] = KEY_LEN;
    values->base[1] = values->owner;
    values->lengths[1] =
        snprintf(values->owner, sizeof(values->owner), "%d-%lx",
                 PQbackendPID(caller->conn), caller->n++);
    values->base[2] = result;
    values->lengths[2] = RESULT_LEN;
}

/* Runs a prepared statement with the first @n of @values, and sees that @rows rows
 * came back, or were changed. */
static void run_prepared(struct caller *caller, const char *name,
                         const struct values *values, int n, const char *rows)
{
    const int formats[3] = {0, 0, 1};
    PGresult *answer =
        checked(caller->conn,
                PQexecPrepared(caller->conn, name, n, values->base,
                               values->lengths, formats, 1));

    if (strcmp(PQcmdTuples(answer), rows) != 0) {
        errx(1, "postgres: %s: %s: not one row", values->base[0], name);
    }
    PQclear(answer);
}

static void run_new(void *arg, const char *key)
{
    struct values values;

    take_values(arg, key, &values);
    run_prepared(arg, "begin", &values, 2, "1");
    run_prepared(arg, "complete", &values, 3, "1");
}

/* As applications do it that hold the row while they work: a claim that a crash undoes. */
static void run_held(void *arg, const char *key)
{
    struct caller *caller = arg;
    struct values values;

    take_values(caller, key, &values);
    run_sql(caller->conn, "BEGIN");
    run_prepared(caller, "claim", &values, 2, "1");
    run_prepared(caller, "lock", &values, 1, "1");
    run_prepared(caller, "complete", &values, 3, "1");
    run_sql(caller->conn, "COMMIT");
}

static void run_replay(void *arg, const char *key)
{
    struct caller *caller = arg;
    const char *values[1] = {key};
    PGresult *answer =
        checked(caller->conn, PQexecPrepared(caller->conn, "replay", 1, values,
                                             NULL, NULL, 1));

    if (PQntuples(answer) != 1 || PQgetlength(answer, 0, 0) != RESULT_LEN ||
        memcmp(PQgetvalue(answer, 0, 0), result, 64) != 0) {
        errx(1, "postgres: %s: another result", key);
    }
    PQclear(answer);
}

static void fill(void *arg, uint64_t from, uint64_t count, size_t len)
{
    struct shared *shared = arg;
    PGconn *conn = shared->conn;
    char key[KEY_LEN + 1];
    char hex[2 * RESULT_LEN + 1];
    char row[sizeof(key) + sizeof(hex) + 64];
    uint64_t i;

    for (i = 0; i < len; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)result[i]);
    }
    PQclear(checked(conn, PQexec(conn, "COPY operation FROM STDIN")));
    for (i = 0; i < count; i++) {
        int row_len;

        key_of(0, from + i, key);
        row_len = snprintf(row, sizeof(row),
                           "%s\tbench\t2\ttomorrow\t\\\\x%s\n", key, hex);
        if (PQputCopyData(conn, row, row_len) != 1) {
            errx(1, "postgres: %s", PQerrorMessage(conn));
        }
    }
    if (PQputCopyEnd(conn, NULL) != 1) {
        errx(1, "postgres: %s", PQerrorMessage(conn));
    }
    PQclear(checked(conn, PQgetResult(conn)));
    PQclear(PQgetResult(conn));
    run_sql(conn, "VACUUM ANALYZE operation");
    run_sql(conn, "CHECKPOINT");
}

const struct target target = {
    .name = "postgres",
    .open = open_shared,
    .close = close_shared,
    .clear = clear,
    .connect = connect_caller,
    .disconnect = disconnect,
    .run_new = run_new,
    .run_held = run_held,
    .run_replay = run_replay,
    .fill = fill,
};
