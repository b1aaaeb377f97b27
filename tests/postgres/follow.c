/* Two batches in flight over one connection: the second is sent while the server works on
 * the first, is a transaction of its own, and is answered in its turn. */
#include "sample.h"
#include "test.h"

#include "base/host.h"
#include "host.h"
#include "postgres/conn.h"

#include <idem/postgres.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEYS = 8,
    WARM = 6, /* Batches, after which statements have names. */
};

struct line {
    struct idem__pg_place place;
    struct host clocks;
    struct idem__pg_conn conn;
    PGconn *db; /* Another session. */
    struct idem__pg_request requests[KEYS];
    struct idem_record records[KEYS];
    char keys[KEYS][2];
    uint8_t heads[KEYS][IDEM_HEAD_MAX];
    size_t answered;
};

static void must(struct line *line, const char *sql)
{
    PGresult *result = PQexec(line->db, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK &&
        PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail_with("%s: %s", sql, PQerrorMessage(line->db));
    }
    PQclear(result);
}

static void set_up(struct line *line)
{
    static unsigned made;
    const char *url = getenv("IDEM_TEST_POSTGRES");
    struct idem_open_options options;
    char place[400];
    char path[64];

    if (url == NULL) {
        fail_with("IDEM_TEST_POSTGRES names no server");
    }
    memset(line, 0, sizeof(*line));
    (void)snprintf(path, sizeof(path), "f%ld_%u", (long)getpid(), made++);
    (void)snprintf(place, sizeof(place), "%s&schema=%s", strchr(url, ':') + 1,
                   path);
    assert_ok(idem_postgres_create(place, NULL, &why));
    assert_ok(idem__pg_place_read(place, &line->place, &why));
    host_init(&line->clocks);
    options = host_options(&line->clocks, false);
    assert_ok(idem__pg_conn_init(&line->conn, &line->place, &options.host));
    line->db = PQconnectdb(url);
    assert_int_equal(PQstatus(line->db), CONNECTION_OK);
    (void)snprintf(place, sizeof(place), "SET search_path = %s", path);
    must(line, place);
}

static void finish(struct line *line)
{
    PQfinish(line->db);
    idem__pg_conn_finish(&line->conn);
    idem__pg_place_finish(&line->place);
}

#define TEST_LINE(suite, condition)                                            \
    TEST_WITH(suite, condition, struct line, line, set_up, finish)

/* Hands over a look at the key @i, or a claim of it. */
static void ask(struct line *line, unsigned i, enum idem__pg_ask what)
{
    struct idem__pg_request *request = &line->requests[i];
    struct idem_record *record = &line->records[i];
    size_t len;

    memset(request, 0, sizeof(*request));
    line->keys[i][0] = (char)('a' + i);
    *record = sample_record();
    record->scope = idem_str("");
    record->key = idem_str(line->keys[i]);
    record->lease_end_ms = IDEM_NEVER; /* Or the server adds no claim. */
    assert_ok(idem_id(record->scope, record->key, record->id));
    assert_ok(idem__record_encode(record, line->heads[i], IDEM_HEAD_MAX, &len));
    request->ask = what;
    memcpy(request->id, record->id, IDEM_ID_LEN);
    request->write =
        (struct idem__pg_write){.record = record,
                                .head = idem_bytes(line->heads[i], len)};
    request->deadline_ms = idem__mono_ms() + 20000;
    idem__pg_conn_send(&line->conn, request);
}

/* Works until @n more requests are answered. */
static void reap(struct line *line, size_t n)
{
    while (n > 0) {
        idem__pg_conn_work(&line->conn);
        while (n > 0 && idem__pg_conn_reap(&line->conn) != NULL) {
            line->answered++;
            n--;
        }
        idem__pg_conn_push(&line->conn);
        if (n > 0) {
            idem__pg_conn_wait(&line->conn, idem__mono_ms() + 1000);
        }
    }
}

/* A connection whose statements have names. */
static void warm_up(struct line *line)
{
    unsigned i;

    for (i = 0; i < WARM; i++) {
        ask(line, 0, IDEM__PG_ASK_LOOK);
        reap(line, 1);
    }
}

/* Another session has inserted the key 1, and not committed: a claim of it waits. */
static void hold(struct line *line)
{
    char sql[400];
    char hex[65];
    uint8_t id[IDEM_ID_LEN];
    unsigned i;

    assert_ok(idem_id(idem_str(""), idem_str("b"), id));
    for (i = 0; i < IDEM_ID_LEN; i++) {
        (void)sprintf(hex + 2 * i, "%02x", id[i]);
    }
    must(line, "BEGIN");
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO idem_record VALUES ('\\x%s', '', 'b', '', 1, 1,"
                   " 1, '0123456789abcdef', '')",
                   hex);
    must(line, sql);
}

/* Sends a claim that waits, and then a look. */
static void ask_both(struct line *line)
{
    ask(line, 1, IDEM__PG_ASK_CLAIM);
    idem__pg_conn_push(&line->conn);
    ask(line, 2, IDEM__PG_ASK_LOOK);
    idem__pg_conn_push(&line->conn);
}

/* Not before statements have names: those of a batch that fails are not there for the
 * next. */
TEST_LINE(follow, waitsForNames)
{
    hold(line);
    ask(line, 0, IDEM__PG_ASK_LOOK);
    reap(line, 1);
    ask_both(line);
    assert_int_equal(line->conn.in_flight, 1);
    must(line, "ROLLBACK");
    reap(line, 2);
}

/* The second batch is on its way while the first one waits, which fails: the second is
 * done nevertheless, and after it. The claim can be made then. */
TEST_LINE(follow, isDoneWhereTheFirstFails)
{
    warm_up(line);
    hold(line);
    ask_both(line);
    assert_int_equal(line->conn.in_flight, 2);
    reap(line, 1);
    assert_int_equal(line->requests[1].said, IDEM__SAID_NOT_APPLIED);
    reap(line, 1);
    assert_int_equal(line->requests[2].said, IDEM__SAID_OK);
    assert_int_equal(line->conn.in_flight, 0);
    must(line, "ROLLBACK");
    ask(line, 1, IDEM__PG_ASK_CLAIM);
    reap(line, 1);
    assert_int_equal(line->requests[1].said, IDEM__SAID_OK);
    assert_true(line->requests[1].applied);
}

/* No more than two; others wait, and go as one batch when the first is answered and those
 * are back whom it answered. */
TEST_LINE(follow, isWaitedForByTheRest)
{
    warm_up(line);
    hold(line);
    ask_both(line);
    ask(line, 3, IDEM__PG_ASK_LOOK);
    idem__pg_conn_push(&line->conn);
    assert_int_equal(line->conn.in_flight, 2);
    assert_int_equal(line->conn.waiting_len, 1);
    assert_true(idem__pg_conn_wanted(&line->conn) == SIZE_MAX);
    must(line, "COMMIT");
    while (line->conn.in_flight == 2) {
        idem__pg_conn_wait(&line->conn, idem__mono_ms() + 1000);
        idem__pg_conn_work(&line->conn);
    }
    reap(line, 3);
    assert_int_equal(line->requests[1].said, IDEM__SAID_OK);
    assert_false(line->requests[1].applied);
    assert_int_equal(line->requests[2].said, IDEM__SAID_OK);
    assert_int_equal(line->requests[3].said, IDEM__SAID_OK);
}

/* A schema that needs a newer idem, over a connection that was open before: nothing is
 * written, by statements for one row or for many, and a look says why. */
TEST_LINE(follow, writesNothingOnceTheSchemaIsNewer)
{
    warm_up(line);
    must(line, "UPDATE idem_store SET version = 2, least = 2");
    ask(line, 1, IDEM__PG_ASK_CLAIM);
    reap(line, 1);
    assert_false(line->requests[1].applied);
    ask(line, 1, IDEM__PG_ASK_CLAIM);
    ask(line, 2, IDEM__PG_ASK_CLAIM);
    reap(line, 2);
    assert_false(line->requests[1].applied);
    assert_false(line->requests[2].applied);
    ask(line, 3, IDEM__PG_ASK_LOOK);
    reap(line, 1);
    assert_int_equal(line->requests[3].said, IDEM__SAID_NEVER);
    assert_code(IDEM_ECONFIG, line->requests[3].error.code);
}

/* Of neither it is known whether it was done, if the connection ends. */
TEST_LINE(follow, isNotKnownWithoutTheConnection)
{
    warm_up(line);
    hold(line);
    ask_both(line);
    must(line, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
               " WHERE pid <> pg_backend_pid() AND backend_type ="
               " 'client backend'");
    reap(line, 2);
    assert_int_equal(line->requests[1].said, IDEM__SAID_UNKNOWN);
    assert_int_equal(line->requests[2].said, IDEM__SAID_UNKNOWN);
    must(line, "ROLLBACK");
    ask(line, 1, IDEM__PG_ASK_CLAIM);
    reap(line, 1);
    assert_true(line->requests[1].applied);
}
