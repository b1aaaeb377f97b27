/* PostgreSQL under load, as people use it for idempotency keys: an INSERT that
 * does nothing on conflict claims, an UPDATE for the owner records the result. */
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

static void run_new(void *arg, const char *key)
{
    struct caller *caller = arg;
    char owner[32];
    const char *values[3] = {key, owner, result};
    const int lengths[3] = {KEY_LEN,
                            snprintf(owner, sizeof(owner), "%d-%lx",
                                     PQbackendPID(caller->conn), caller->n++),
                            RESULT_LEN};
    const int formats[3] = {0, 0, 1};
    PGresult *answer =
        checked(caller->conn, PQexecPrepared(caller->conn, "begin", 2, values,
                                             lengths, formats, 1));

    if (PQntuples(answer) != 1) {
        errx(1, "postgres: %s: not claimed", key);
    }
    PQclear(answer);
    answer = checked(caller->conn, PQexecPrepared(caller->conn, "complete", 3,
                                                  values, lengths, formats, 1));
    if (strcmp(PQcmdTuples(answer), "1") != 0) {
        errx(1, "postgres: %s: not recorded", key);
    }
    PQclear(answer);
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
    .run_replay = run_replay,
    .fill = fill,
};
