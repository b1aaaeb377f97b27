/* Tests of postgres/task.c: what is made of the answers to one op, without a server. */
#include "postgres/task.h"

#include "base/bytes.h"
#include "base/heap.h"
#include "limit/limit.h"
#include "postgres/params.h"
#include "sample.h"
#include "test.h"

#include <libpq-fe.h>

static struct idem__pg_env env;
static int64_t purged_in;
static uint64_t known_floor;
static struct idem__pg_task task;
static struct idem_now now;
static struct idem_op op;

enum {
    DRAWN = 630 /* The pause, where it may be so long. */
};

static int draw(void *ctx, void *buf, size_t len)
{
    uint64_t random = DRAWN;

    (void)ctx;
    assert_int_equal(len, sizeof(random));
    memcpy(buf, &random, len);
    return 0;
}

static void set_up(void)
{
    memset(&env, 0, sizeof(env));
    env.base.host.random = draw;
    env.purged_in = &purged_in;
    env.known_floor = &known_floor;
    env.base.claims = idem__claims_create();
    env.base.scratch = idem__alloc(IDEM_HEAD_MAX);
    assert_non_null(env.base.claims);
    assert_non_null(env.base.scratch);
    memset(&task, 0, sizeof(task));
    idem__pg_task_init(&task, &env);
    now = sample_now();
}

static void tear_down(void)
{
    idem__free(op.record);
    op.record = NULL;
    op.record_room = 0;
    idem__pg_task_free(&task);
    idem__claims_destroy(env.base.claims);
    idem__free(env.base.scratch);
}

#define TEST_TASK(suite, condition)                                            \
    TEST_BETWEEN(suite, condition, set_up(), tear_down())

static void expect_asked(enum idem__pg_ask ask)
{
    assert_int_equal(task.request.ask, ask);
    assert_true(task.base.state != IDEM__STATE_PAUSE);
    assert_true(task.base.state != IDEM__STATE_DONE);
}

/* The server has done what was asked; @result, if there is one, is its answer. */
static void answer(const PGresult *result)
{
    task.request.said = IDEM__SAID_OK;
    task.request.sent = true;
    task.request.result = result;
    idem__flight_answered(&task.base, &now);
}

static void refuse(enum idem__said said, bool sent)
{
    task.request.said = said;
    task.request.sent = sent;
    task.request.error.code = IDEM_EUNAVAILABLE;
    idem__flight_answered(&task.base, &now);
}

/* ---- Trying again ---- */

static void begin_to_claim(void)
{
    static const struct idem_request request = IDEM_REQUEST_INIT;

    memset(&op, 0, sizeof(op));
    op.verb = IDEM_OP_BEGIN;
    op.u.begin = request;
    op.u.begin.on_expired_lease = IDEM_HOLD;
    op.has_nonce = true;
    op.key = idem_str("k");
    assert_ok(idem_id(op.scope, op.key, op.id));
    task.base.op = &op;
    idem__flight_start(&task.base, &now);
    expect_asked(IDEM__PG_ASK_CLAIM);
}

/* A claim that is refused, and a look that finds nothing. */
static void lose_a_round(void)
{
    if (task.base.state == IDEM__STATE_PAUSE) {
        idem__flight_resume(&task.base, &now);
    }
    if (task.request.ask == IDEM__PG_ASK_LOOK) {
        answer(NULL);
    }
    expect_asked(IDEM__PG_ASK_CLAIM);
    answer(NULL);
}

/* An op that waits for a record longer and longer has not been failed by the server: when
 * the connection is lost at last, it is tried again as often as at first. */
TEST_TASK(tries, areThoseSinceTheServerAnswered)
{
    unsigned n;

    begin_to_claim();
    for (n = 0; n < 8; n++) {
        lose_a_round();
        assert_true(task.base.state != IDEM__STATE_DONE);
    }
    assert_int_equal(task.base.pause_ms, DRAWN);
    for (n = 0; n < 3; n++) {
        idem__flight_resume(&task.base, &now);
        refuse(IDEM__SAID_NOT_APPLIED, /* sent= */ false);
        assert_int_equal(task.base.state, IDEM__STATE_PAUSE);
    }
    idem__flight_resume(&task.base, &now);
    refuse(IDEM__SAID_NOT_APPLIED, /* sent= */ false);
    assert_int_equal(task.base.state, IDEM__STATE_DONE);
    assert_code(IDEM_EUNAVAILABLE, op.error.code);
    idem__pg_task_reset(&task);
}

/* ---- Writes that are not answered ---- */

/* The server shows @record, which has the head in @head. */
static void answer_row(const struct idem_record *record, uint8_t *head)
{
    struct idem__pg_row *row = &task.request.row;
    size_t len;

    assert_ok(idem__record_encode(record, head, IDEM_HEAD_MAX, &len));
    memset(row, 0, sizeof(*row));
    row->record = *record;
    row->head = idem_bytes(head, len);
    task.request.row_code = 1;
    answer(NULL);
}

/* A takeover that was not answered may be done yet, for as long as what it changes is
 * there. By a clock that was set back the lease of that is not over: nobody is told that
 * somebody works there. */
TEST_TASK(takeover, thatWasNotAnsweredIsNotSettledByAClock)
{
    static uint8_t head[IDEM_HEAD_MAX];
    struct idem_record record = sample_record();
    unsigned n;

    record.on_expired_lease = IDEM_RERUN;
    record.scope = idem_bytes(NULL, 0);
    record.key = idem_str("k");
    assert_ok(idem_id(record.scope, record.key, record.id));
    sample_lease(&record, 60000);
    now.store_ms += 120000;
    now.boot_ms += 120000;
    begin_to_claim();
    answer_row(&record, head);
    expect_asked(IDEM__PG_ASK_UPDATE);
    refuse(IDEM__SAID_UNKNOWN, /* sent= */ true);
    now.store_ms -= 100000;
    now.boot_ms -= 100000; /* As if the claim were from another boot. */
    for (n = 0; n < 3; n++) {
        assert_int_equal(task.base.state, IDEM__STATE_PAUSE);
        idem__flight_resume(&task.base, &now);
        expect_asked(IDEM__PG_ASK_LOOK);
        answer_row(&record, head);
    }
    assert_int_equal(task.base.state, IDEM__STATE_PAUSE);
    idem__flight_give_up(&task.base);
    assert_code(IDEM_EUNKNOWN, op.error.code);
    idem__pg_task_reset(&task);
}

/* ---- Clocks ---- */

/* A claim whose lease would be over by the server's clock is not written: the answer tells
 * the time, and the claim that follows at once is right. */
TEST_TASK(clock, thatIsSlowClaimsAgain)
{
    int64_t slow_ms = 3600000;

    begin_to_claim();
    now.store_ms += slow_ms;
    answer(NULL);
    expect_asked(IDEM__PG_ASK_CLAIM);
    assert_true(task.next.lease_end_ms >= now.store_ms + task.next.lease_ms);
    task.request.applied = true;
    answer(NULL);
    assert_int_equal(task.base.state, IDEM__STATE_DONE);
    assert_ok(op.error.code);
    assert_int_equal(op.verdict, IDEM_STARTED);
    idem__pg_task_reset(&task);
}

/* ---- Limits ---- */

/* An op that has looked at its window, which is not there, and counts. */
static void begin_to_count(void)
{
    PGresult *nothing = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    struct idem_limit_request *limit = &op.u.limit.limit;

    memset(&op, 0, sizeof(op));
    op.verb = IDEM_OP_LIMIT;
    *limit = (struct idem_limit_request)IDEM_LIMIT_INIT;
    limit->name = idem_str("uploads");
    limit->subject = idem_str("u1");
    limit->request = idem_str("r1");
    limit->at_ms = now.store_ms;
    limit->per_ms = IDEM_LIMIT_DAY;
    limit->max = 8;
    assert_ok(idem__limit_ids(limit, op.u.limit.window, op.u.limit.request));
    task.base.op = &op;
    idem__flight_start(&task.base, &now);
    expect_asked(IDEM__PG_ASK_LIMIT_LOOK);
    answer(nothing);
    expect_asked(IDEM__PG_ASK_LIMIT_COUNT);
    PQclear(nothing);
}

/* A count whose answer nobody looks at, for the clock is away, may have been made; one
 * that the server refused was not, nor is anything by a look. */
TEST_TASK(limit, isNotKnownWithoutAClock)
{
    begin_to_count();
    task.request.said = IDEM__SAID_OK;
    idem__flight_no_clock(&task.base);
    assert_int_equal(task.base.state, IDEM__STATE_DONE);
    assert_code(IDEM_EUNKNOWN, op.error.code);
    idem__pg_task_reset(&task);

    begin_to_count();
    task.request.said = IDEM__SAID_NOT_APPLIED;
    idem__flight_no_clock(&task.base);
    assert_code(IDEM_EUNAVAILABLE, op.error.code);
    idem__pg_task_reset(&task);

    task.base.op = &op;

    idem__flight_start(&task.base, &now);
    task.request.said = IDEM__SAID_OK;
    idem__flight_no_clock(&task.base);
    assert_code(IDEM_EUNAVAILABLE, op.error.code);
    idem__pg_task_reset(&task);
}

/* ---- Purges ---- */

/* What PURGE gives back: one record is gone; in the transaction @number, or in none for 0;
 * and the number of fences that are. */
static PGresult *one_purged(int64_t number, int64_t floor)
{
    static char name[] = "c";
    const int64_t values[3] = {1, number, floor};
    PGresAttDesc columns[3];
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    uint8_t bytes[8];
    int i;

    for (i = 0; i < 3; i++) {
        columns[i] = (PGresAttDesc){.name = name,
                                    .format = 1,
                                    .typlen = 8,
                                    .typid = IDEM__PG_INT8};
    }
    assert_true(PQsetResultAttrs(result, 3, columns));
    for (i = 0; i < 3; i++) {
        bool is_null = i == 1 && number == 0;

        idem__put_u64(bytes, (uint64_t)values[i]);
        assert_true(PQsetvalue(result, 0, i, (char *)bytes, is_null ? -1 : 8));
    }
    return result;
}

static void start_purge(void)
{
    memset(&op, 0, sizeof(op));
    op.verb = IDEM_OP_PURGE;
    op.u.purge.max = 100;
    task.base.op = &op;
    idem__flight_start(&task.base, &now);
    expect_asked(IDEM__PG_ASK_LIST_STATUS);
}

/* A slice that has taken @took_ms, and was done in the transaction @number; 0: it has
 * written nothing. How long it rests. */
static int64_t slice(int64_t took_ms, int64_t number)
{
    PGresult *result = one_purged(number, 0);

    start_purge();
    now.boot_ms += took_ms;
    task.victims_len = 1;
    task.request.said = IDEM__SAID_OK;
    task.request.result = result;
    task.base.now = &now;
    (void)idem__pg_purge_go_answered(&task);
    PQclear(result);
    idem__pg_task_reset(&task);
    return op.u.purge.rest_ms;
}

/* Between slices it rests where others have written meanwhile, and goes on at once where
 * nobody has. */
TEST_TASK(purge, restsForOthers)
{
    assert_int_equal(slice(2, 1000), 0); /* Nobody knows. */
    assert_int_equal(slice(2, 1001), 0);
    assert_int_equal(slice(2, 1003), 6);
    assert_int_equal(slice(2, 0), 0);
    assert_int_equal(slice(2, 1004), 0);
    assert_int_equal(slice(900, 1010), 400);
}

/* Nothing is deleted before the claims know that its fence is gone: those that began
 * before that are waited for. Where the server does not know it, another has taken its
 * place, and it is told once more. */
TEST_TASK(purge, waitsForClaims)
{
    PGresult *result = one_purged(1000, 6);

    start_purge();
    task.victims_len = 1;
    task.fence = 7;
    task.base.after_pause = IDEM__STATE_PURGE_RAISE;
    idem__flight_resume(&task.base, &now);
    expect_asked(IDEM__PG_ASK_RAISE);
    assert_int_equal(task.request.numbers[0], now.store_ms - 60000);
    answer(NULL);
    expect_asked(IDEM__PG_ASK_WAIT);
    refuse(IDEM__SAID_NOT_APPLIED, /* sent= */ true);
    assert_int_equal(task.base.state, IDEM__STATE_PAUSE);
    assert_int_equal(known_floor, 0);
    idem__flight_resume(&task.base, &now);
    expect_asked(IDEM__PG_ASK_WAIT);
    answer(NULL);
    expect_asked(IDEM__PG_ASK_PURGE);
    assert_int_equal(known_floor, now.store_ms - 60000);
    answer(result);
    assert_int_equal(task.base.state, IDEM__STATE_PAUSE);
    assert_int_equal(task.base.after_pause, IDEM__STATE_PURGE_RAISE);
    assert_int_equal(known_floor, 0);
    assert_int_equal(op.u.purge.purged, 0);
    PQclear(result);
}
