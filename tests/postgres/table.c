/* The tables of tests/lib/pg_table.c beside those of a real server: the same requests, of
 * a seed, over the store's own connection and its batches, and the same answers and rows.
 * Another session holds rows, and has rows that are not committed; statements fail. */
#include "pg_table.h"
#include "rng.h"
#include "sample.h"
#include "test.h"

#include "base/host.h"
#include "core/decide.h"
#include "host.h"
#include "postgres/conn.h"

#include <idem/postgres.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    KEYS = 6,
    REQUESTS_MAX = 6,
    NEW_MANY = 64, /* As batch.c has it. */
    WINDOWS = 2,
    BODY_MAX = 300 * 1024, /* More than comes with a row. */
};

/* A request, as both are asked it, and what they answered. */
struct asked {
    struct idem__pg_request request; /* The server's. */
    struct idem__pg_request *copy;   /* The table's. */
    struct idem_record record;
    uint8_t head[IDEM_HEAD_MAX];
    uint8_t found[IDEM_HEAD_MAX];
    struct idem__pg_victim victims[2];
    struct idem__buffer said[2];
};

struct pair {
    struct rng rng;
    struct pg_table table;
    struct pg_tx txs[1 + REQUESTS_MAX]; /* Of this round. */
    size_t txs_len;

    char schema[32];
    struct idem__pg_place place;
    struct host clocks;
    struct idem__pg_conn conn;
    PGconn *db; /* The other session. */

    uint8_t ids[KEYS][IDEM_ID_LEN];
    char keys[KEYS][2];
    uint8_t *bytes; /* BODY_MAX. */
    struct asked asked[REQUESTS_MAX];
    size_t len;
    const struct pg_failure *planted; /* NULL: nothing fails. */
    enum idem__pg_sql planted_in;
    unsigned counts[IDEM__SAID_NEVER + 1];
    bool repeats;        /* A claim of this round does so. */
    unsigned new_claims; /* As its connection counts them. */
    unsigned refused, neither, corrupt, rivals, held, divided, unshown;
};

/* ---- The other session ---- */

static void must(struct pair *pair, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void must(struct pair *pair, const char *format, ...)
{
    char sql[2000];
    PGresult *result;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(sql, sizeof(sql), format, args);
    va_end(args);
    result = PQexec(pair->db, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK &&
        PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail_with("%s: %s", sql, PQerrorMessage(pair->db));
    }
    PQclear(result);
}

static const char plant[] =
    "CREATE TABLE planted (insert text, update text);"
    "INSERT INTO planted VALUES (NULL, NULL);"
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE"
    " code text := (SELECT CASE TG_OP WHEN 'INSERT' THEN insert ELSE update END"
    " FROM planted); BEGIN IF code IS NOT NULL THEN"
    " RAISE EXCEPTION 'planted' USING ERRCODE = code; END IF; RETURN NULL;"
    " END $$;"
    "ALTER FUNCTION refuse() SET search_path = %s;"
    "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON idem_record"
    " FOR EACH STATEMENT EXECUTE FUNCTION refuse()";

static void set_up(struct pair *pair, uint64_t seed)
{
    static unsigned made;
    const char *url = getenv("IDEM_TEST_POSTGRES");
    char place[400];
    unsigned i;

    if (url == NULL) {
        fail_with("IDEM_TEST_POSTGRES names no server");
    }
    memset(pair, 0, sizeof(*pair));
    pair->rng.state = seed;
    pg_table_init(&pair->table);
    pair->table.now_ms = (int64_t)time(NULL) * 1000;
    (void)snprintf(pair->schema, sizeof(pair->schema), "t%ld_%u",
                   (long)getpid(), made++);
    (void)snprintf(place, sizeof(place), "%s&schema=%s", strchr(url, ':') + 1,
                   pair->schema);
    assert_ok(idem_postgres_create(place, NULL, &why));
    assert_ok(idem__pg_place_read(place, &pair->place, &why));
    host_init(&pair->clocks);
    {
        struct idem_open_options options = host_options(&pair->clocks, false);

        assert_ok(idem__pg_conn_init(&pair->conn, &pair->place, &options.host));
    }
    pair->db = PQconnectdb(url);
    assert_int_equal(PQstatus(pair->db), CONNECTION_OK);
    must(pair, "SET client_min_messages = error; SET search_path = %s",
         pair->schema);
    must(pair, plant, pair->schema);
    for (i = 0; i < KEYS; i++) {
        pair->keys[i][0] = (char)('a' + i);
        assert_ok(
            idem_id(idem_str("scope"), idem_str(pair->keys[i]), pair->ids[i]));
    }
    pair->bytes = malloc(BODY_MAX);
    rng_fill(&pair->rng, pair->bytes, BODY_MAX);
}

static void finish(struct pair *pair)
{
    size_t i;

    for (i = 0; i < REQUESTS_MAX; i++) {
        idem__buffer_free(&pair->asked[i].said[0]);
        idem__buffer_free(&pair->asked[i].said[1]);
    }
    PQfinish(pair->db);
    idem__pg_conn_finish(&pair->conn);
    idem__pg_place_finish(&pair->place);
    pg_table_finish(&pair->table);
    free(pair->bytes);
}

/* ---- Requests ---- */

static const struct pg_version *row_of(struct pair *pair, unsigned key)
{
    return pg_table_row(&pair->table, pair->ids[key]);
}

static struct idem_slice some_bytes(struct pair *pair)
{
    static const size_t most[] = {0, 1, 200, 9000, BODY_MAX};
    static const unsigned weights[] = {4, 2, 8, 2, 1};
    unsigned how = rng_weighted(&pair->rng, weights, 5);

    return idem_bytes(pair->bytes, most[how]);
}

/* A record of @key, in @asked. */
static void make_record(struct pair *pair, unsigned key, struct asked *asked)
{
    static const enum idem_status statuses[] = {IDEM_STATUS_IN_PROGRESS,
                                                IDEM_STATUS_COMPLETED,
                                                IDEM_STATUS_FAILED,
                                                IDEM_STATUS_RELEASED};
    enum idem_status status = statuses[rng_below(&pair->rng, 4)];
    int64_t retention_ms = rng_chance(&pair->rng, 300)
                               ? IDEM_NEVER
                               : rng_between(&pair->rng, 1, 5000);
    struct idem_record *record = &asked->record;
    size_t len;

    *record = status == IDEM_STATUS_IN_PROGRESS
                  ? sample_record()
                  : sample_ended(status, retention_ms);
    memcpy(record->id, pair->ids[key], IDEM_ID_LEN);
    record->scope = idem_str("scope");
    record->key = idem_str(pair->keys[key]);
    record->fence = 1 + rng_below(&pair->rng, 60);
    rng_fill(&pair->rng, record->nonce, sizeof(record->nonce));
    if (status == IDEM_STATUS_IN_PROGRESS) {
        sample_lease(record, rng_between(&pair->rng, 1, 9000));
    }
    if (status == IDEM_STATUS_COMPLETED || status == IDEM_STATUS_FAILED) {
        record->result.bytes = some_bytes(pair);
        record->result_len = record->result.bytes.len;
    }
    /* The lease of most runs for long, and that of the others is over for long. */
    if (rng_chance(&pair->rng, 850)) {
        record->lease_end_ms = pair->table.now_ms + IDEM_DURATION_MAX_MS / 2;
    }
    record->input =
        rng_chance(&pair->rng, 300) ? some_bytes(pair) : idem_bytes(NULL, 0);
    record->input_len = record->input.len;
    assert_ok(
        idem__record_encode(record, asked->head, sizeof(asked->head), &len));
    asked->request.write = (struct idem__pg_write){
        .record = record,
        .head = idem_bytes(asked->head, len),
        .set_result = rng_chance(&pair->rng, 500),
        .set_input = rng_chance(&pair->rng, 500),
        .old_fence = rng_chance(&pair->rng, 200),
    };
}

/* The head that is there, or nearly. */
static void make_found(struct pair *pair, unsigned key, struct asked *asked)
{
    const struct pg_version *row = row_of(pair, key);
    size_t len = row == NULL ? 100 : row->head.len;

    rng_fill(&pair->rng, asked->found, 100);
    if (row != NULL) {
        memcpy(asked->found, row->head.base, len);
    }
    if (rng_chance(&pair->rng, 200)) {
        asked->found[rng_below(&pair->rng, (unsigned)len)] ^= 1;
    }
    asked->request.found = idem_bytes(asked->found, len);
}

static void make_victims(struct pair *pair, struct asked *asked)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        unsigned key = rng_below(&pair->rng, KEYS);
        const struct pg_version *row = row_of(pair, key);

        memcpy(asked->victims[i].id, pair->ids[key], IDEM_ID_LEN);
        rng_fill(&pair->rng, asked->victims[i].tag, IDEM__PG_TAG_LEN);
        if (row != NULL && !rng_chance(&pair->rng, 200)) {
            memcpy(asked->victims[i].tag, row->tag, IDEM__PG_TAG_LEN);
        }
    }
    asked->request.victims = asked->victims;
    asked->request.victims_len = 1 + rng_below(&pair->rng, 2);
    asked->request.numbers[0] = rng_between(&pair->rng, 0, 20);
}

static void make_limit(struct pair *pair, struct asked *asked)
{
    static const uint8_t requests[3][16] = {"one", "two", "three"};
    struct idem__pg_request *request = &asked->request;
    struct pg_count *count = NULL;
    size_t i;

    memset(request->id, 1 + (int)rng_below(&pair->rng, WINDOWS), IDEM_ID_LEN);
    request->request_id =
        idem_bytes(requests[rng_below(&pair->rng, 3)], sizeof(requests[0]));
    for (i = 0; i < PG_WINDOWS_MAX; i++) {
        struct pg_window *window = &pair->table.windows[i];

        if (window->used && window->now.exists &&
            memcmp(window->id, request->id, IDEM_ID_LEN) == 0) {
            count = &window->now;
        }
    }
    request->numbers[0] = rng_between(&pair->rng, -1, 9);
    request->numbers[1] = count == NULL ? -1 : count->used;
    request->numbers[2] = count == NULL ? -1 : count->refusals;
    if (rng_chance(&pair->rng, 200)) {
        request->numbers[1] = rng_between(&pair->rng, -1, 3);
    }
    request->numbers[3] = rng_between(&pair->rng, 1, 9000);
    request->numbers[4] = rng_between(&pair->rng, 0, 3);
    request->numbers[5] = rng_between(&pair->rng, 0, 3);
    request->numbers[6] = rng_between(&pair->rng, 0, 9000);
    request->numbers[7] = rng_between(&pair->rng, 1, 9);
    request->name = idem_str("name");
    request->subject = idem_str("subject");
}

static void make_list(struct pair *pair, struct idem__pg_request *request)
{
    const struct pg_version *row = row_of(pair, rng_below(&pair->rng, KEYS));

    request->limit = rng_between(&pair->rng, 1, KEYS);
    request->from_start = rng_chance(&pair->rng, 500);
    request->numbers[0] = rng_between(&pair->rng, 1, 5);
    request->numbers[1] =
        request->from_start ? -1 : NOW_MS + rng_between(&pair->rng, 0, 9000);
    request->numbers[2] = rng_chance(&pair->rng, 300)
                              ? INT64_MAX
                              : NOW_MS + rng_between(&pair->rng, 0, 9000);
    if (row != NULL) { /* At the very deadline of a row. */
        request->numbers[0] = row->status;
        request->numbers[1 + rng_below(&pair->rng, 2)] = row->deadline;
    }
}

/* @waits: WAIT, which is alone in its batch: whether the next batch is on its way by
 * then, is a matter of time. */
static void make(struct pair *pair, struct asked *asked, bool waits)
{
    static const unsigned weights[] = {0, 4, 8, 10, 3, 2, 3, 2, 0, 2, 1, 2, 4};
    unsigned key = rng_below(&pair->rng, KEYS);
    struct idem__pg_request *request = &asked->request;

    memset(request, 0, sizeof(*request));
    request->ask =
        waits ? IDEM__PG_ASK_WAIT
              : (enum idem__pg_ask)rng_weighted(&pair->rng, weights, 13);
    memcpy(request->id, pair->ids[key], IDEM_ID_LEN);
    switch (request->ask) {
    case IDEM__PG_ASK_UPDATE:
        make_found(pair, key, asked);
        make_record(pair, key, asked);
        break;
    case IDEM__PG_ASK_CLAIM:
        make_record(pair, key, asked);
        if (row_of(pair, key) != NULL && !pair->repeats &&
            rng_chance(&pair->rng, 200)) {
            pair->repeats = true;         /* By one: tags are different. */
            make_found(pair, key, asked); /* The same claim once more. */
            request->write.head = request->found;
        }
        break;
    case IDEM__PG_ASK_RAISE:
        request->numbers[0] = rng_between(&pair->rng, 0, 20);
        break;
    case IDEM__PG_ASK_PURGE:
        make_victims(pair, asked);
        break;
    case IDEM__PG_ASK_PURGE_LIMITS:
        request->numbers[0] = rng_between(&pair->rng, 1, 9000);
        request->limit = 10;
        break;
    case IDEM__PG_ASK_LIMIT_LOOK:
    case IDEM__PG_ASK_LIMIT_COUNT:
        make_limit(pair, asked);
        break;
    case IDEM__PG_ASK_LIST:
    case IDEM__PG_ASK_LIST_STATUS:
        make_list(pair, request);
        break;
    case IDEM__PG_ASK_LOOK:
    case IDEM__PG_ASK_LOAD:
    case IDEM__PG_ASK_WAIT:
    case IDEM__PG_ASK_MARK: /* The model's stores are never moved. */
    case IDEM__PG_ASK_MARK_WAIT:
    case IDEM__PG_ASK_MARK_READ:
        break;
    }
    request->deadline_ms = idem__mono_ms() + 60000;
    request->user = asked;
    asked->copy = pg_request_copy(request);
}

/* ---- Answers, as bytes ---- */

static void add_number(struct idem__buffer *to, int64_t number)
{
    idem__buffer_add(to, &number, sizeof(number));
}

static void add_slice(struct idem__buffer *to, struct idem_slice slice)
{
    add_number(to, (int64_t)slice.len);
    idem__buffer_add(to, slice.base, slice.len);
}

/* Times are of two clocks, and numbers of transactions of two servers. */
static bool differs(const struct idem__pg_request *request,
                    const PGresult *result, int column)
{
    return PQftype(result, column) == IDEM__PG_TIMESTAMPTZ ||
           (request->ask == IDEM__PG_ASK_PURGE && column == 1) ||
           request->ask == IDEM__PG_ASK_RAISE;
}

static void add_result(struct idem__buffer *to,
                       const struct idem__pg_request *request,
                       const PGresult *result)
{
    int row;
    int column;

    add_number(to, result == NULL ? -1 : PQntuples(result));
    for (row = 0; result != NULL && row < PQntuples(result); row++) {
        for (column = 0; column < PQnfields(result); column++) {
            add_number(to, PQftype(result, column));
            add_number(to, PQfformat(result, column));
            if (differs(request, result, column)) {
                continue;
            }
            add_number(to, PQgetisnull(result, row, column));
            add_slice(to, idem_bytes(PQgetvalue(result, row, column),
                                     (size_t)PQgetlength(result, row, column)));
        }
    }
}

static void note(const struct idem__pg_request *request,
                 struct idem__buffer *to)
{
    const struct idem__pg_row *row = &request->row;

    to->len = 0;
    add_number(to, request->said);
    add_number(to, request->error.code);
    add_number(to, request->sent);
    if (request->said != IDEM__SAID_OK) {
        return;
    }
    add_number(to, request->applied);
    add_number(to, request->row_code);
    if (request->row_code == 1) {
        add_slice(to, row->head);
        add_slice(to, idem_bytes(row->tag, sizeof(row->tag)));
        add_slice(to, row->record.scope);
        add_slice(to, row->record.key);
        add_number(to, row->has_bodies);
        add_slice(to, row->result);
        add_slice(to, row->input);
    }
    add_result(to, request, request->result);
    add_result(to, request, request->after);
}

/* ---- Asking the server ---- */

static void ask_server(struct pair *pair)
{
    size_t left = pair->len;
    size_t i;

    for (i = 0; i < pair->len; i++) {
        idem__pg_conn_send(&pair->conn, &pair->asked[i].request);
    }
    while (left > 0) {
        struct idem__pg_request *request;

        idem__pg_conn_work(&pair->conn);
        while ((request = idem__pg_conn_reap(&pair->conn)) != NULL) {
            struct asked *asked = request->user;

            note(request, &asked->said[0]);
            left--;
        }
        if (left > 0) {
            idem__pg_conn_push(&pair->conn);
            idem__pg_conn_wait(&pair->conn, idem__mono_ms() + 1000);
        }
    }
}

/* ---- Asking the table ---- */

static bool takes(void *ctx, const struct idem__pg_request *later)
{
    struct pair *pair = ctx;
    size_t i;

    for (i = 0; i < pair->len; i++) {
        if (pair->asked[i].copy == later) {
            pair->rivals++;
            return pair->asked[i].request.applied;
        }
    }
    return false;
}

static void fail_all(struct idem__pg_request **requests, size_t n,
                     const struct pg_failure *failure)
{
    size_t i;

    for (i = 0; i < n; i++) {
        requests[i]->said = failure->said;
        requests[i]->sent = true;
        requests[i]->error.code = failure->code;
    }
}

/* The failure of the batch, or NULL. */
static const struct pg_failure *run(struct pair *pair, struct pg_tx *tx)
{
    for (;;) {
        if (pair->planted != NULL && pg_next(tx) == pair->planted_in) {
            return pair->planted;
        }
        switch (pg_step(tx)) {
        case PG_RAN:
            break;
        case PG_BLOCKED: /* Nobody ends meanwhile. */
            return pg_failure("55P03");
        case PG_COMMITTED:
            pg_answer(tx);
            return NULL;
        }
    }
}

/* As the connection does, which sends no THERE after NEW_MANY of them (batch.c). */
static void count_claims(struct pair *pair, struct idem__pg_request **requests,
                         size_t n, bool shows)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const struct idem__pg_request *request = requests[i];

        if (request->ask == IDEM__PG_ASK_CLAIM) {
            pair->unshown += !request->applied && !shows;
            pair->new_claims = request->applied ? pair->new_claims + 1 : 0;
        }
    }
}

static void ask_table(struct pair *pair, struct idem__pg_request **requests,
                      size_t n)
{
    struct pg_tx *tx = &pair->txs[pair->txs_len++];
    bool shows = pair->new_claims < NEW_MANY;
    const struct pg_failure *failure;
    size_t i;

    pg_begin(tx, &pair->table, requests, n, /* settled= */ false, shows);
    failure = run(pair, tx);
    if (failure == NULL) {
        count_claims(pair, requests, n, shows);
        return;
    }
    if (failure->said == IDEM__SAID_UNKNOWN) {
        pair->new_claims = 0; /* Another connection. */
    }
    pg_roll_back(tx);
    if (n == 1 || failure->said == IDEM__SAID_UNKNOWN) {
        fail_all(requests, n, failure);
        return;
    }
    pair->divided++;
    for (i = 0; i < n; i++) {
        ask_table(pair, requests + i, 1);
    }
}

/* ---- The other session's transaction ---- */

enum other {
    OTHER_NONE,
    OTHER_LOCKS,
    OTHER_INSERTS,
    OTHER_DELETES,
    OTHER_CLAIMS,
    OTHER_WAITS,
};

struct held {
    enum other what;
    struct pg_tx tx;
    struct asked asked;
    struct idem__pg_request *requests[1];
};

static const char *hex(const void *base, size_t len, char *buf)
{
    const uint8_t *p = base;
    size_t i;

    for (i = 0; i < len; i++) {
        (void)sprintf(buf + 2 * i, "%02x", p[i]);
    }
    buf[2 * len] = '\0';
    return buf;
}

static void insert(struct pair *pair, const struct asked *asked)
{
    static char head[2 * IDEM_HEAD_MAX + 1];
    static char sql[2 * IDEM_HEAD_MAX + 1000];
    const struct idem__pg_request *request = &asked->request;
    const struct idem_record *record = &asked->record;
    char id[65];
    char nonce[33];
    char tag[33];
    PGresult *result;

    (void)hex(request->write.head.base, request->write.head.len, head);
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO idem_record VALUES ('\\x%s', 'scope', '%s',"
                   " '\\x%s', %lld, %d, %lld, '\\x%s', '\\x%s')",
                   hex(record->id, IDEM_ID_LEN, id),
                   (const char *)record->key.base,
                   hex(record->nonce, 16, nonce), (long long)record->fence,
                   (int)record->status, (long long)idem__deadline(record),
                   hex(asked->head + request->write.head.len - 16, 16, tag),
                   head);
    result = PQexec(pair->db, sql);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
}

static void hold(struct pair *pair, struct held *held)
{
    static const unsigned weights[] = {80, 14, 1, 5, 2, 1};
    unsigned key = rng_below(&pair->rng, KEYS);
    const struct pg_version *row = row_of(pair, key);
    struct idem__pg_request *request = &held->asked.request;
    char id[65];

    held->what = (enum other)rng_weighted(&pair->rng, weights, 6);
    if (held->what == OTHER_NONE || pair->planted != NULL ||
        (held->what < OTHER_CLAIMS &&
         (held->what == OTHER_INSERTS) != (row == NULL))) {
        held->what = OTHER_NONE;
        return;
    }
    pair->held++;
    must(pair, "BEGIN");
    (void)hex(pair->ids[key], IDEM_ID_LEN, id);
    memset(request, 0, sizeof(*request));
    held->requests[0] = request;
    memcpy(request->id, pair->ids[key], IDEM_ID_LEN);
    pg_begin(&held->tx, &pair->table, held->requests, held->what != OTHER_LOCKS,
             /* settled= */ false, /* shows= */ false);
    switch (held->what) {
    case OTHER_LOCKS:
        must(pair, "SELECT FROM idem_record WHERE id = '\\x%s' FOR UPDATE", id);
        assert_true(pg_lock(&held->tx, pair->ids[key]));
        break;
    case OTHER_INSERTS:
        request->ask = IDEM__PG_ASK_CLAIM;
        make_record(pair, key, &held->asked);
        request->write.old_fence = true;
        request->write.set_result = false;
        request->write.set_input = false;
        assert_int_equal(pg_step(&held->tx), PG_RAN);
        must(pair, "SELECT FROM idem_store WHERE NOT one FOR KEY SHARE");
        insert(pair, &held->asked);
        break;
    case OTHER_DELETES:
        request->ask = IDEM__PG_ASK_PURGE;
        memcpy(held->asked.victims[0].id, pair->ids[key], IDEM_ID_LEN);
        memcpy(held->asked.victims[0].tag, row->tag, IDEM__PG_TAG_LEN);
        request->victims = held->asked.victims;
        request->victims_len = 1;
        assert_int_equal(pg_step(&held->tx), PG_RAN);
        must(pair, "DELETE FROM idem_record WHERE id = '\\x%s'", id);
        break;
    case OTHER_CLAIMS:
        request->ask = IDEM__PG_ASK_RAISE; /* Of nothing, with the same lock. */
        assert_int_equal(pg_step(&held->tx), PG_RAN);
        must(pair, "SELECT FROM idem_store WHERE NOT one FOR KEY SHARE");
        break;
    case OTHER_WAITS:
        request->ask = IDEM__PG_ASK_WAIT;
        assert_int_equal(pg_step(&held->tx), PG_RAN);
        must(pair, "LOCK TABLE idem_store IN EXCLUSIVE MODE");
        break;
    case OTHER_NONE:
        break;
    }
}

static void let_go(struct pair *pair, struct held *held)
{
    bool commits = rng_chance(&pair->rng, 500);

    if (held->what == OTHER_NONE) {
        return;
    }
    must(pair, commits ? "COMMIT" : "ROLLBACK");
    while (commits && pg_step(&held->tx) != PG_COMMITTED) {
    }
    pg_end(&held->tx);
}

/* ---- What there is ---- */

static struct idem_slice column(const PGresult *result, int row, int column)
{
    return idem_bytes(PQgetvalue(result, row, column),
                      (size_t)PQgetlength(result, row, column));
}

static PGresult *read_all(struct pair *pair, const char *sql)
{
    PGresult *result = PQexecParams(pair->db, sql, 0, NULL, NULL, NULL, NULL,
                                    /* resultFormat= */ 1);

    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail_with("%s: %s", sql, PQerrorMessage(pair->db));
    }
    return result;
}

static void assert_column(const PGresult *result, int row, int number,
                          const struct pg_bytes *bytes)
{
    assert_int_equal(PQgetisnull(result, row, number), bytes->is_null);
    if (!bytes->is_null) {
        assert_slice(column(result, row, number),
                     idem_bytes(bytes->base, bytes->len));
    }
}

static void assert_number(const PGresult *result, int row, int number,
                          int64_t want)
{
    int64_t got = 0;

    assert_true(idem__pg_number(result, row, number, &got));
    assert_int_equal(got, want);
}

static void assert_rows(struct pair *pair)
{
    PGresult *result = read_all(
        pair,
        "SELECT id, scope, key, nonce, fence, status, deadline, tag, head,"
        " result, input FROM idem_record ORDER BY id");
    int rows = 0;
    int row;
    size_t i;

    for (i = 0; i < PG_ROWS_MAX; i++) {
        rows += pair->table.rows[i].used && pair->table.rows[i].now.exists;
    }
    assert_int_equal(PQntuples(result), rows);
    for (row = 0; row < rows; row++) {
        const struct pg_version *version =
            pg_table_row(&pair->table,
                         (const uint8_t *)PQgetvalue(result, row, 0));

        assert_non_null(version);
        assert_column(result, row, 1, &version->scope);
        assert_column(result, row, 2, &version->key);
        assert_slice(column(result, row, 3),
                     idem_bytes(version->nonce, sizeof(version->nonce)));
        assert_number(result, row, 4, version->fence);
        assert_number(result, row, 5, version->status);
        assert_number(result, row, 6, version->deadline);
        assert_slice(column(result, row, 7),
                     idem_bytes(version->tag, sizeof(version->tag)));
        assert_column(result, row, 8, &version->head);
        assert_column(result, row, 9, &version->result);
        assert_column(result, row, 10, &version->input);
    }
    PQclear(result);
    result = read_all(pair, "SELECT fence_floor FROM idem_store");
    assert_number(result, 0, 0, pair->table.fence_floor);
    PQclear(result);
}

static void assert_windows(struct pair *pair)
{
    PGresult *result = read_all(
        pair,
        "SELECT w.id, w.expires, w.used, w.refusals, (SELECT count(*) FROM"
        " idem_limit_request q WHERE q.window_id = w.id)"
        " FROM idem_limit_window w");
    int windows = 0;
    int row;
    size_t i;

    for (i = 0; i < PG_WINDOWS_MAX; i++) {
        const struct pg_window *window = &pair->table.windows[i];

        if (!window->used || !window->now.exists) {
            continue;
        }
        windows++;
        for (row = 0;
             memcmp(PQgetvalue(result, row, 0), window->id, IDEM_ID_LEN) != 0;
             row++) {
            assert_true(row + 1 < PQntuples(result));
        }
        assert_number(result, row, 1, window->now.expires);
        assert_number(result, row, 2, window->now.used);
        assert_number(result, row, 3, window->now.refusals);
        assert_number(result, row, 4, (int64_t)window->now.requests_len);
    }
    assert_int_equal(PQntuples(result), windows);
    PQclear(result);
}

/* ---- Rounds ---- */

/* A bit of a head turns over, in both. */
static void damage(struct pair *pair)
{
    unsigned key = rng_below(&pair->rng, KEYS);
    struct pg_version *row = pg_table_row(&pair->table, pair->ids[key]);
    char id[65];
    unsigned at;

    if (row == NULL) {
        return;
    }
    at = rng_below(&pair->rng, (unsigned)row->head.len);
    row->head.base[at] ^= 1;
    must(pair,
         "UPDATE idem_record SET head = set_byte(head, %u, get_byte(head, %u)"
         " # 1) WHERE id = '\\x%s'",
         at, at, hex(pair->ids[key], IDEM_ID_LEN, id));
}

static void choose_failure(struct pair *pair)
{
    bool inserts = rng_chance(&pair->rng, 500);

    pair->planted = NULL;
    if (rng_chance(&pair->rng, 120)) {
        pair->planted =
            &pg_failures[rng_below(&pair->rng, (unsigned)pg_failures_len)];
        pair->planted_in = inserts ? IDEM__PG_CLAIM : IDEM__PG_UPDATE;
        must(pair, "UPDATE planted SET %s = '%s'",
             inserts ? "insert" : "update", pair->planted->state);
    }
}

static void count(struct pair *pair, const struct idem__pg_request *request)
{
    pair->counts[request->said]++;
    if (request->said == IDEM__SAID_OK && request->ask == IDEM__PG_ASK_CLAIM &&
        !request->applied) {
        pair->refused++;
        pair->neither += request->row_code == 0;
    }
    pair->corrupt += request->row_code == IDEM_ECORRUPT;
}

static void compare(const struct asked *asked, unsigned round)
{
    const struct idem__buffer *server = &asked->said[0];
    const struct idem__buffer *table = &asked->said[1];

    if (server->len != table->len ||
        memcmp(server->base, table->base, server->len) != 0) {
        const struct idem__pg_request *a = &asked->request;
        const struct idem__pg_request *b = asked->copy;

        fail_with("round %u, ask %d: the server says %d (%s), applied %d, row "
                  "%d, and the table %d (%d), applied %d, row %d",
                  round, (int)a->ask, (int)a->said, a->error.text, a->applied,
                  a->row_code, (int)b->said, b->error.code, b->applied,
                  b->row_code);
    }
}

static void play(struct pair *pair, unsigned round)
{
    struct idem__pg_request *requests[REQUESTS_MAX];
    bool waits = rng_chance(&pair->rng, 40);
    struct held held;
    size_t i;

    if (rng_chance(&pair->rng, 300)) {
        pair->conn.new_claims = rng_chance(&pair->rng, 500) ? NEW_MANY : 0;
    }
    pair->new_claims = pair->conn.new_claims;
    if (rng_chance(&pair->rng, 20)) {
        damage(pair);
    }
    choose_failure(pair);
    pair->len = waits ? 1 : 1 + rng_below(&pair->rng, REQUESTS_MAX);
    pair->txs_len = 0;
    pair->repeats = false;
    for (i = 0; i < pair->len; i++) {
        make(pair, &pair->asked[i], waits);
        requests[i] = pair->asked[i].copy;
    }
    hold(pair, &held);
    pair->table.takes = takes;
    pair->table.ctx = pair;
    ask_server(pair);
    ask_table(pair, requests, pair->len);
    for (i = 0; i < pair->len; i++) {
        note(requests[i], &pair->asked[i].said[1]);
        compare(&pair->asked[i], round);
        count(pair, &pair->asked[i].request);
    }
    let_go(pair, &held);
    for (i = 0; i < pair->txs_len; i++) {
        pg_end(&pair->txs[i]);
    }
    for (i = 0; i < pair->len; i++) {
        free(requests[i]);
    }
    if (pair->planted != NULL) {
        must(pair, "UPDATE planted SET insert = NULL, update = NULL");
    }
    if (round % 4 == 0) {
        assert_rows(pair);
        assert_windows(pair);
    }
}

/* Requests of a seed, a few in each transaction, while another session is in the way of
 * some and statements fail: server and table give the same answers, and have the same
 * rows. Everything that is compared was met. */
TEST(table, answersAsAServerDoes)
{
    const char *longer = getenv("IDEM_TEST_LONG");
    unsigned rounds = longer != NULL && strcmp(longer, "1") == 0 ? 60000 : 1500;
    static struct pair pair;
    unsigned round;

    set_up(&pair, 1);
    for (round = 0; round < rounds; round++) {
        play(&pair, round);
    }
    assert_true(pair.counts[IDEM__SAID_NOT_APPLIED] > 0 &&
                pair.counts[IDEM__SAID_UNKNOWN] > 0 &&
                pair.counts[IDEM__SAID_NEVER] > 0);
    assert_true(pair.refused > 0 && pair.neither > 0 && pair.corrupt > 0 &&
                pair.rivals > 0 && pair.held > 0 && pair.divided > 0 &&
                pair.unshown > 0);
    finish(&pair);
}
