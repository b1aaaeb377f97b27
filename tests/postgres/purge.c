/* A purge and the claims beside it, on a real server: what is held against the fences that
 * are gone holds for a claim that has waited, too. And what claims are shown, and which
 * are refused. */
#include "test.h"

#include <idem/operator.h>
#include <idem/postgres.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WARM = 6, /* Batches, after which statements have names. */
    TRIES = 20,
    NEW_MANY = 64, /* As batch.c has it. */
    DUE_MS = 2500, /* By then a retention of 1 ms is over on each clock. */
};

/* A store, and another session. */
struct pair {
    struct idem_store *store;
    PGconn *db;
};

static PGresult *ask(struct pair *pair, const char *sql)
{
    PGresult *result = PQexec(pair->db, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK &&
        PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail_with("%s: %s", sql, PQerrorMessage(pair->db));
    }
    return result;
}

static void must(struct pair *pair, const char *sql)
{
    PQclear(ask(pair, sql));
}

/* The first column of the first row, as a number. */
static long number(struct pair *pair, const char *sql)
{
    PGresult *result = ask(pair, sql);
    long value = strtol(PQgetvalue(result, 0, 0), NULL, 10);

    PQclear(result);
    return value;
}

/* @more: of the store's URL. */
static void set_up(struct pair *pair, const char *more)
{
    static unsigned made;
    const char *url = getenv("IDEM_TEST_POSTGRES");
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    char place[400];
    char sql[100];

    if (url == NULL) {
        fail_with("IDEM_TEST_POSTGRES names no server");
    }
    made++;
    (void)snprintf(place, sizeof(place), "%s&schema=p%ld_%u%s",
                   strchr(url, ':') + 1, (long)getpid(), made, more);
    assert_ok(idem_postgres_create(place, NULL, &why));
    options.timeout_ms = 10000;
    assert_ok(idem_postgres_open(place, &options, &pair->store, &why));
    pair->db = PQconnectdb(url);
    assert_int_equal(PQstatus(pair->db), CONNECTION_OK);
    (void)snprintf(sql, sizeof(sql),
                   "SET client_min_messages = error; SET search_path = p%ld_%u",
                   (long)getpid(), made);
    must(pair, sql);
}

static void finish(struct pair *pair)
{
    PQfinish(pair->db);
    idem_close(pair->store);
}

/* ---- Beside the other session ---- */

static uint64_t round_trips(struct idem_store *store)
{
    struct idem_postgres_info info = IDEM_POSTGRES_INFO_INIT;

    assert_ok(idem_postgres_inspect(store, &info, &why));
    return info.round_trips;
}

/* Claims @key, and meets @verdict. The fence. */
static uint64_t begin(struct idem_store *store, unsigned key,
                      enum idem_verdict verdict)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;
    struct idem_error error;
    uint64_t fence;
    char name[16];

    (void)snprintf(name, sizeof(name), "k%u", key);
    request.key = idem_str(name);
    request.on_expired_lease = IDEM_RERUN;
    assert_ok(idem_begin(store, &request, &attempt, &error));
    assert_int_equal(attempt->verdict, verdict);
    fence = attempt->fence;
    idem_attempt_destroy(attempt);
    return fence;
}

static uint64_t claim(struct idem_store *store, unsigned key)
{
    return begin(store, key, IDEM_STARTED);
}

struct claim {
    struct idem_store *store;
    unsigned key;
    uint64_t fence;
    uint64_t trips;
};

static void *claim_in_thread(void *arg)
{
    struct claim *c = arg;
    uint64_t before = round_trips(c->store);

    c->fence = claim(c->store, c->key);
    c->trips = round_trips(c->store) - before;
    return NULL;
}

static void *purge_in_thread(void *arg)
{
    uint64_t *purged = arg;
    struct idem_store *store = (struct idem_store *)(uintptr_t)*purged;
    struct idem_error error;

    assert_ok(idem_purge(store, 0, purged, &error));
    return NULL;
}

#define WAITS                                                                  \
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND"                      \
    " relation = 'idem_store'::regclass AND mode = "
#define CLAIM_WAITS WAITS "'RowShareLock'"
#define PURGE_WAITS WAITS "'ExclusiveLock'"

/* False: nobody did for long. */
static bool until(struct pair *pair, const char *sql)
{
    unsigned i;

    for (i = 0; i < 5000; i++) {
        if (number(pair, sql) > 0) {
            return true;
        }
        (void)usleep(1000);
    }
    return false;
}

/* ---- Claims ---- */

/* Another has the lock of claims alone, and raises the fences that are gone. True: a claim
 * that came meanwhile has looked at them once it had the lock, and not before. False: it
 * had to wait too long, and has tried again. */
static bool waits_and_sees(struct pair *pair, unsigned key)
{
    struct claim c = {.store = pair->store, .key = key};
    pthread_t thread;

    must(pair, "BEGIN; LOCK TABLE idem_store IN EXCLUSIVE MODE;"
               " UPDATE idem_store SET fence_floor = 9000000000000");
    assert_int_equal(pthread_create(&thread, NULL, claim_in_thread, &c), 0);
    assert_true(until(pair, CLAIM_WAITS));
    must(pair, "COMMIT");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(c.fence, 9000000000001);
    return c.trips == 3; /* Refused, and told why; then done. */
}

static void assert_claims_see(const char *more, unsigned warm)
{
    struct pair pair;
    unsigned seen = 0;
    unsigned i;

    for (i = 0; i < TRIES && seen == 0; i++) {
        unsigned key;

        set_up(&pair, more);
        for (key = 0; key < warm; key++) {
            (void)claim(pair.store, key);
        }
        seen += waits_and_sees(&pair, key);
        finish(&pair);
    }
    assert_int_equal(seen, 1);
}

/* The first statement of a connection, and one that has a name and a plan: PostgreSQL
 * takes the lock before the snapshot. */
TEST(purge, isSeenByAClaimThatWaited)
{
    assert_claims_see("", 1);
    assert_claims_see("", WARM);
}

/* Over a pooler's connection the statement is the one for many. */
TEST(purge, isSeenByClaimsOfABatchThatWaited)
{
    assert_claims_see("&prepare=no", 1);
}

/* After many new ones in a row nothing is shown to those that are refused: one takes two
 * round trips then, and the next one is shown what is there again. */
TEST(claim, isShownNothingAfterManyNewOnes)
{
    struct pair pair;
    uint64_t before;
    unsigned key;

    set_up(&pair, "");
    for (key = 0; key < NEW_MANY; key++) {
        (void)claim(pair.store, key);
    }
    before = round_trips(pair.store);
    (void)begin(pair.store, 0, IDEM_BUSY);
    assert_int_equal(round_trips(pair.store) - before, 2);
    (void)begin(pair.store, 0, IDEM_BUSY);
    assert_int_equal(round_trips(pair.store) - before, 3);
    finish(&pair);
}

static void assert_refused(struct idem_store *store, const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;

    request.key = idem_str(key);
    request.on_expired_lease = IDEM_RERUN;
    assert_code(IDEM_ECONFIG, idem_begin(store, &request, &attempt, &why));
    assert_why("mark of a move is damaged");
}

/* A handle that has read the mark of an open store, and then one that is too long to be
 * valid, begins nothing until it reads a valid one again. */
TEST(claim, isRefusedOnceADamagedMarkIsRead)
{
    struct idem_answer *answer;
    struct pair pair;

    set_up(&pair, "");
    (void)claim(pair.store, 0);
    must(&pair, "UPDATE idem_store SET mark = repeat('x', 300)");
    assert_ok(
        idem_get(pair.store, idem_str(""), idem_str("k0"), &answer, &why));
    idem_answer_destroy(answer);
    assert_refused(pair.store, "k0");
    assert_refused(pair.store, "k1");
    must(&pair, "UPDATE idem_store SET mark = ''");
    (void)claim(pair.store, 1);
    finish(&pair);
}

/* ---- Purges ---- */

static void add_expired(struct pair *pair)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_result result = {.bytes = idem_str("done")};
    struct idem_attempt *attempt;

    request.key = idem_str("old");
    request.on_expired_lease = IDEM_HOLD;
    request.lease_ms = IDEM_NEVER;
    request.retention_ms = 1;
    assert_ok(idem_begin(pair->store, &request, &attempt, &why));
    assert_ok(idem_complete(attempt, &result, &why));
    idem_attempt_destroy(attempt);
    (void)usleep(DUE_MS * 1000);
}

#define IS_COVERED                                                             \
    "SELECT (fence_floor >= fence)::int FROM idem_store, idem_record"

/* A claim is under way, which may not know what is gone: a purge tells the claims that come
 * after it, waits, and deletes nothing before it has ended. */
TEST(purge, waitsForClaimsThatBeganBefore)
{
    struct pair pair;
    uint64_t purged;
    pthread_t thread;

    set_up(&pair, "");
    add_expired(&pair);
    assert_int_equal(number(&pair, IS_COVERED), 0);
    must(&pair, "BEGIN; SELECT FROM idem_store WHERE NOT one FOR KEY SHARE");
    purged = (uintptr_t)pair.store;
    assert_int_equal(pthread_create(&thread, NULL, purge_in_thread, &purged),
                     0);
    assert_true(until(&pair, PURGE_WAITS));
    assert_int_equal(number(&pair, IS_COVERED), 1);
    assert_int_equal(number(&pair, "SELECT count(*) FROM idem_record"), 1);
    must(&pair, "COMMIT");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(purged, 1);
    assert_int_equal(number(&pair, "SELECT count(*) FROM idem_record"), 0);
    finish(&pair);
}

/* A purge does not wait for readers, say pg_dump. */
TEST(purge, waitsForNoReader)
{
    struct pair pair;
    uint64_t purged;

    set_up(&pair, "");
    add_expired(&pair);
    must(&pair, "BEGIN ISOLATION LEVEL REPEATABLE READ;"
                " LOCK TABLE idem_store, idem_record IN ACCESS SHARE MODE;"
                " SELECT FROM idem_store");
    assert_ok(idem_purge(pair.store, 0, &purged, &why));
    assert_int_equal(purged, 1);
    must(&pair, "COMMIT");
    finish(&pair);
}
