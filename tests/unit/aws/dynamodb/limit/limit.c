/* A rate limit in a table, request by request: what is sent, and what each answer,
 * or the lack of one, is taken for. The answers are written down here, as the
 * service gives them. */
#include "aws/dynamodb/limit/limit_known.h"
#include "base/heap.h"
#include "heap.h"
#include "limit/limit.h"
#include "sample.h"
#include "test.h"
#include "wire.h"

#include <stdlib.h>

#define AT 1510067704370LL

/* One request: its operation, and what comes back. In the answer "$" stands for the
 * name of the request's entry in the item of a small limit. */
struct step {
    const char *operation;
    int status; /* 0: no answer; -1: it was not sent. */
    const char *answer;
};

static struct idem_host host;
static struct idem__task_env env;
static struct idem__task task;
static struct idem_now now;
static struct idem_op op;
static char entry[64];
static unsigned steps_done;
static unsigned pauses;

static void begin(uint64_t max, uint64_t cost)
{
    struct idem_limit_request *limit = &op.u.limit.limit;

    memset(&op, 0, sizeof(op));
    op.verb = IDEM_OP_LIMIT;
    *limit = (struct idem_limit_request)IDEM_LIMIT_INIT;
    limit->name = idem_str("uploads");
    limit->subject = idem_str("u1");
    limit->request = idem_str("r1");
    limit->at_ms = AT;
    limit->per_ms = IDEM_LIMIT_DAY;
    limit->max = max;
    limit->cost = cost;
    assert_ok(idem__limit_ids(limit, op.u.limit.window, op.u.limit.request));
}

static int no_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, 0, len);
    return 0;
}

static void set_up(uint64_t max, uint64_t cost)
{
    host.random = no_random;
    memset(&env, 0, sizeof(env));
    (void)strcpy(env.table.name, "orders");
    env.host = host;
    env.limits = idem__limit_known_create();
    assert_non_null(env.limits);
    memset(&task, 0, sizeof(task));
    idem__task_init(&task, &env);
    task.request.answer_cap =
        4096; /* So that the wire itself needs no memory. */
    task.request.answer = idem__alloc(task.request.answer_cap);
    assert_non_null(task.request.answer);
    now = sample_now();
    now.store_ms = AT;
    begin(max, cost);
}

static void tear_down(void)
{
    idem__task_free(&task);
    idem__limit_known_destroy(env.limits);
}

/* A limit of @max, of which a request takes @cost. */
#define TEST_LIMIT(suite, condition, max, cost)                                \
    TEST_BETWEEN(suite, condition, set_up(max, cost), tear_down())

/* The name behind "#r": in the request. */
static void note_entry(void)
{
    const char *body = task.request.body.base;
    const char *at = memmem(body, task.request.body.len, "\"#r\":\"", 6);

    if (at != NULL) {
        (void)snprintf(entry, sizeof(entry), "%.23s", at + 6);
    }
}

static void carry(const struct step *step)
{
    char text[2048];
    const char *target = strchr(task.request.target, '.') + 1;
    const char *mark = strchr(step->answer, '$');

    assert_string_equal(target, step->operation);
    note_entry();
    if (step->status <= 0) {
        wire_silence(&task.request, step->status == 0);
        return;
    }
    if (mark != NULL) {
        (void)snprintf(text, sizeof(text), "%.*s%s%s",
                       (int)(mark - step->answer), step->answer, entry,
                       mark + 1);
    } else {
        (void)snprintf(text, sizeof(text), "%s", step->answer);
    }
    wire_answer(&task.request, step->status, idem_str(text));
}

/* Runs the op over @steps, which end with a NULL operation. */
static int run(const struct step *steps)
{
    steps_done = 0;
    pauses = 0;
    memset(&op.error, 0, sizeof(op.error));
    memset(&op.u.limit.answer, 0, sizeof(op.u.limit.answer));
    idem__task_start(&task, &op, &now);
    while (task.next != IDEM__TASK_DONE) {
        if (task.next == IDEM__TASK_PAUSE) {
            pauses++;
            idem__task_resume(&task, &now);
            continue;
        }
        if (steps[steps_done].operation == NULL) {
            fail_with("one request too many: %s", task.request.target);
        }
        carry(&steps[steps_done++]);
        idem__task_answered(&task, &now);
    }
    idem__task_reset(&task);
    return op.error.code;
}

static void expect_answer(const struct step *steps, bool admitted,
                          uint64_t remaining, bool repeated)
{
    const struct idem_limited *answer = &op.u.limit.answer;

    if (run(steps) != 0) {
        fail_with("%d %s, after %u requests", op.error.code, op.error.text,
                  steps_done);
    }
    assert_null(steps[steps_done].operation);
    assert_int_equal(answer->admitted, admitted);
    assert_int_equal(answer->remaining, remaining);
    assert_int_equal(answer->repeated, repeated);
    assert_int_equal(answer->start_ms, 1510012800000);
    assert_int_equal(answer->end_ms, 1510099200000);
}

#define REFUSED(item)                                                          \
    "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"                          \
    "ConditionalCheckFailedException\",\"message\":\"no\",\"Item\":" item "}"
#define CANCELLED(reasons)                                                     \
    "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"                          \
    "TransactionCanceledException\",\"Message\":\"no\","                       \
    "\"CancellationReasons\":[" reasons "]}"
#define SERVER_ERROR "{\"__type\":\"x#InternalServerError\",\"message\":\"oh\"}"
#define THROTTLED "{\"__type\":\"x#ProvisionedThroughputExceededException\"}"
#define NONE "{\"Code\":\"None\"}"
#define CHECK(item)                                                            \
    "{\"Code\":\"ConditionalCheckFailed\",\"Item\":" item ",\"Message\":\"no\"}"
#define CONFLICT "{\"Code\":\"TransactionConflict\",\"Message\":\"no\"}"
#define SHARD(n, used)                                                         \
    "{\"id\":{\"S\":\"limit#ab#" n "\"},\"lim\":{\"N\":\"" used "\"}}"
#define SHARDS(list)                                                           \
    "{\"Responses\":{\"orders\":[" list "]},\"UnprocessedKeys\":{}}"

/* ---- Small limits ---- */

static const char admitted_7[] =
    "{\"Attributes\":{\"$\":{\"N\":\"7\"},\"lim\":{\"N\":\"1\"},"
    "\"ttl\":{\"N\":\"1\"}}}";

/* One request admits; one says again what was decided, or that nothing is left. */
TEST_LIMIT(small, needsOneRequest, 8, 1)
{
    const struct step admits[] = {{"UpdateItem", 200, admitted_7},
                                  {NULL, 0, NULL}};
    const struct step again[] = {
        {"UpdateItem", 400,
         REFUSED("{\"$\":{\"N\":\"7\"},\"lim\":{\"N\":\"6\"}}")},
        {NULL, 0, NULL}};
    const struct step full[] = {
        {"UpdateItem", 400,
         REFUSED("{\"rother\":{\"N\":\"0\"},\"lim\":{\"N\":\"8\"}}")},
        {NULL, 0, NULL}};

    expect_answer(admits, true, 7, false);
    expect_answer(again, true, 7, true);
    expect_answer(full, false, 0, false);
}

/* An update that was not answered is made again, and shows whether the first one
 * was applied: the same with a 500, a cut answer, and one that was not sent. */
TEST_LIMIT(small, readsBackWhatWasNotAnswered, 8, 1)
{
    static const struct step losses[] = {
        {"UpdateItem", 0, ""},
        {"UpdateItem", 500, SERVER_ERROR},
        {"UpdateItem", 200, "{\"Attributes\":"},
        {"UpdateItem", 400, THROTTLED},
        {"UpdateItem", -1, ""},
    };
    size_t i;

    for (i = 0; i < COUNT(losses); i++) {
        const struct step applied[] = {
            losses[i],
            {"UpdateItem", 400,
             REFUSED("{\"$\":{\"N\":\"7\"},\"lim\":{\"N\":\"1\"}}")},
            {NULL, 0, NULL}};
        const struct step not_applied[] = {losses[i],
                                           {"UpdateItem", 200, admitted_7},
                                           {NULL, 0, NULL}};

        expect_answer(applied, true, 7, true);
        assert_int_equal(pauses, 1);
        expect_answer(not_applied, true, 7, false);
    }
}

/* Once it may have been applied, nobody says that nothing was counted. */
TEST_LIMIT(small, saysWhenItIsNotKnown, 8, 1)
{
    struct step lost[16];
    size_t i;

    for (i = 0; i < 15; i++) {
        lost[i] = (struct step){"UpdateItem", 400, THROTTLED};
    }
    lost[15].operation = NULL;
    assert_code(IDEM_EUNAVAILABLE, run(lost));
    lost[0] = (struct step){"UpdateItem", 0, ""};
    assert_code(IDEM_EUNKNOWN, run(lost));
}

/* An update whose answer nobody looks at, for the clock is away, may have counted the
 * request; one that was not sent did not. */
TEST_LIMIT(small, isNotKnownWithoutAClock, 8, 1)
{
    const struct step counted = {"UpdateItem", 200, admitted_7};
    const struct step not_sent = {"UpdateItem", -1, ""};

    idem__task_start(&task, &op, &now);
    carry(&counted);
    idem__task_no_clock(&task);
    assert_int_equal(task.next, IDEM__TASK_DONE);
    assert_code(IDEM_EUNKNOWN, op.error.code);
    idem__task_reset(&task);
    idem__task_start(&task, &op, &now);
    carry(&not_sent);
    idem__task_no_clock(&task);
    assert_code(IDEM_EUNAVAILABLE, op.error.code);
    idem__task_reset(&task);
}

/* A refusal with something left is remembered, on condition that nothing changed
 * meanwhile; if it did, it is decided anew. */
TEST_LIMIT(small, remembersARefusal, 8, 5)
{
    const struct step steps[] = {
        {"UpdateItem", 400, REFUSED("{\"lim\":{\"N\":\"5\"}}")},
        {"UpdateItem", 400, REFUSED("{\"lim\":{\"N\":\"6\"}}")},
        {"UpdateItem", 200, "{\"Attributes\":{\"$\":{\"N\":\"-2\"}}}"},
        {NULL, 0, NULL}};
    const struct step again[] = {
        {"UpdateItem", 400,
         REFUSED("{\"$\":{\"N\":\"-2\"},\"lim\":{\"N\":\"8\"},"
                 "\"refs\":{\"N\":\"1\"}}")},
        {NULL, 0, NULL}};

    expect_answer(steps, false, 2, false);
    expect_answer(again, false, 2, true);
}

/* A window that is over is looked at and not begun. */
TEST_LIMIT(small, looksWhenItIsLate, 8, 1)
{
    const struct step nothing[] = {{"GetItem", 200, "{}"}, {NULL, 0, NULL}};
    const struct step there[] = {
        {"GetItem", 200,
         "{\"Item\":{\"$\":{\"N\":\"4\"},\"lim\":{\"N\":\"7\"}}}"},
        {NULL, 0, NULL}};

    (void)run(
        (const struct step[]){{"UpdateItem", 200, admitted_7}}); /* Its name. */
    now.store_ms = AT + 3 * IDEM_LIMIT_DAY;
    assert_code(IDEM_EINVALID, run(nothing));
    expect_answer(there, true, 4, true);
}

/* What is not understood is neither an absence nor a decision. */
TEST_LIMIT(small, believesNothingStrange, 8, 1)
{
    static const char *const items[] = {
        REFUSED("{}"),
        REFUSED("{\"lim\":{\"S\":\"3\"}}"),
        REFUSED("{\"lim\":{\"N\":\"-1\"}}"),
        REFUSED("{\"lim\":{\"N\":\"1000000000001\"}}"),
        REFUSED("{\"lim\":{\"N\":\"1e3\"}}"),
        REFUSED("{\"lim\":{\"N\":\"\"}}"),
        REFUSED("{\"lim\":{\"N\":\"7\"},\"$\":{\"N\":\"1000000000000\"}}"),
        REFUSED(
            "{\"lim\":{\"N\":\"7\"},\"$\":{\"N\":\"99999999999999999999\"}}"),
    };
    static const char *const answers[] = {
        "{}",
        "{\"Attributes\":{}}",
        "{\"Attributes\":{\"lim\":{\"N\":\"1\"}}}",
        "{\"Attributes\":{\"$\":{\"N\":\"8\"},\"lim\":{\"N\":\"1\"}}}",
        "{\"Attributes\":{\"$\":{\"N\":\"-1\"},\"lim\":{\"N\":\"1\"}}}",
    };
    size_t i;

    for (i = 0; i < COUNT(items); i++) {
        const struct step steps[] = {{"UpdateItem", 400, items[i]},
                                     {NULL, 0, NULL}};

        assert_code(IDEM_ECORRUPT, run(steps));
    }
    for (i = 0; i < COUNT(answers); i++) {
        const struct step steps[] = {{"UpdateItem", 200, answers[i]},
                                     {NULL, 0, NULL}};

        assert_code(IDEM_EUNKNOWN, run(steps));
    }
}

/* ---- Large limits ---- */

static const struct step read_full[] = {
    {"BatchGetItem", 200, SHARDS("")},
};

/* The shards are read once a second; then one transaction admits. */
TEST_LIMIT(large, needsOneTransaction, 400, 1)
{
    const struct step first[] = {read_full[0],
                                 {"TransactWriteItems", 200, "{}"},
                                 {NULL, 0, NULL}};
    const struct step next[] = {{"TransactWriteItems", 200, "{}"},
                                {NULL, 0, NULL}};
    const struct step later[] = {
        {"BatchGetItem", 200, SHARDS(SHARD("1", "90") "," SHARD("3", "100"))},
        {"TransactWriteItems", 200, "{}"},
        {NULL, 0, NULL}};
    const struct step again[] = {{"TransactWriteItems", 400,
                                  CANCELLED(CHECK(
                                      "{\"lim\":{\"N\":\"399\"}}") "," NONE)},
                                 {NULL, 0, NULL}};

    expect_answer(first, true, 399, false);
    expect_answer(next, true, 398, false);
    now.boot_ms += 1000;
    expect_answer(later, true, 100 + 10 + 100 - 1, false);
    expect_answer(again, true, 399, true);
}

static uint64_t left_of(const struct idem__limit_bounds *bounds)
{
    uint64_t shares[IDEM__LIMIT_SHARDS_MAX];

    idem__limit_bounds_shares(bounds, &op.u.limit.limit, shares);
    return idem__limit_bounds_left(bounds, shares);
}

/* A read that overlaps a transaction of the same handle may see its effect already:
 * what was taken is not taken off once more. */
TEST_LIMIT(large, takesOffOnceWhatIsAlsoRead, 400, 1)
{
    const struct step transact = {"TransactWriteItems", 200, "{}"};
    struct idem__limit_bounds *bounds;
    unsigned i;

    idem__task_start(&task, &op, &now);
    carry(&read_full[0]);
    idem__task_answered(&task, &now);
    assert_int_equal(task.next, IDEM__TASK_SEND); /* The transaction. */
    bounds = idem__limit_known_of(env.limits, &op);
    for (i = 0; i < 4; i++) {
        idem__limit_bounds_raise(bounds, i, 1); /* Another task's read. */
    }
    carry(&transact);
    idem__task_answered(&task, &now);
    assert_int_equal(task.next, IDEM__TASK_DONE);
    assert_true(op.u.limit.answer.admitted);
    assert_int_equal(left_of(bounds), 4 * 99);
    idem__task_reset(&task);
}

/* The number after the first @name in the request. */
static int64_t number_after(const char *name)
{
    struct idem_slice body = task.request.body;
    const char *at = memmem(body.base, body.len, name, strlen(name));

    assert_non_null(at);
    return strtoll(at + strlen(name), NULL, 10);
}

/* State goes by its ttl, in seconds, after the end of its window and not much
 * later; be the limit small or large. */
TEST(ttl, isInSecondsAndSoonAfterTheWindow)
{
    static const struct {
        uint64_t max;
        const char *name;
    } cases[] = {
        {8, "\":t\":{\"N\":\""},
        {400, "\"ttl\":{\"N\":\""},
    };
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        int64_t ttl_ms;

        set_up(cases[i].max, 1);
        idem__task_start(&task, &op, &now);
        if (cases[i].max > 8) {
            carry(&read_full[0]);
            idem__task_answered(&task, &now);
        }
        ttl_ms = number_after(cases[i].name) * 1000;
        assert_true(ttl_ms > AT + IDEM_LIMIT_DAY / 2);
        assert_true(ttl_ms < AT + 5 * (int64_t)IDEM_LIMIT_DAY);
        idem__task_give_up(&task);
        idem__task_reset(&task);
        tear_down();
    }
}

/* Shards that are empty are learnt of, and passed over; when all are, the request is
 * looked for, and refused. Nothing more is asked of a window that is full. */
TEST_LIMIT(large, endsWithTheLastShard, 400, 1)
{
    const struct step steps[] = {
        read_full[0],
        {"TransactWriteItems", 400,
         CANCELLED(NONE "," CHECK("{\"lim\":{\"N\":\"100\"}}"))},
        {"TransactWriteItems", 400,
         CANCELLED(NONE "," CHECK("{\"lim\":{\"N\":\"100\"}}"))},
        {"TransactWriteItems", 400,
         CANCELLED(NONE ",{\"Code\":"
                        "\"ConditionalCheckFailed\"}")},
        {"TransactWriteItems", 400,
         CANCELLED(NONE "," CHECK("{\"lim\":{\"N\":\"100\"}}"))},
        {"GetItem", 200, "{}"},
        {NULL, 0, NULL}};
    const struct step full[] = {{"GetItem", 200, "{}"}, {NULL, 0, NULL}};
    const struct step there[] = {{"GetItem", 200,
                                  "{\"Item\":{\"lim\":{\"N\":\"17\"}}}"},
                                 {NULL, 0, NULL}};

    expect_answer(steps, false, 0, false);
    expect_answer(full, false, 0, false);
    expect_answer(there, true, 17, true);
}

/* What no shard has alone is taken from several; what all of them have not is
 * refused, and that is remembered. */
TEST_LIMIT(large, takesFromSeveral, 400, 20)
{
    const struct step admits[] = {
        {"BatchGetItem", 200,
         SHARDS(SHARD("0", "95") "," SHARD("1", "94") "," SHARD(
             "2", "93") "," SHARD("3", "92"))},
        {"TransactWriteItems", 200, "{}"},
        {NULL, 0, NULL}};
    const struct step refuses[] = {{"GetItem", 200, "{}"},
                                   {"TransactWriteItems", 200, "{}"},
                                   {NULL, 0, NULL}};
    const struct step too_many[] = {{"GetItem", 200, "{}"},
                                    {"TransactWriteItems", 400,
                                     CANCELLED(NONE "," CHECK("{}"))},
                                    {"GetItem", 200, "{}"},
                                    {NULL, 0, NULL}};

    expect_answer(admits, true, 6, false);
    begin(400, 7);
    expect_answer(refuses, false, 6, false);
    expect_answer(too_many, false, 6, false);
}

/* A transaction that met another, was not answered, or was answered by a 500 is made
 * again; whether the first was applied shows. */
TEST(large, readsBackWhatWasNotAnswered)
{
    static const struct step losses[] = {
        {"TransactWriteItems", 0, ""},
        {"TransactWriteItems", 500, SERVER_ERROR},
        {"TransactWriteItems", 400, CANCELLED(NONE "," CONFLICT)},
        {"TransactWriteItems", 400, CANCELLED(CONFLICT "," NONE)},
        {"TransactWriteItems", 400,
         "{\"__type\":\"x#TransactionInProgressException\"}"},
        {"TransactWriteItems", 400, THROTTLED},
        {"TransactWriteItems", -1, ""},
    };
    size_t i;

    for (i = 0; i < COUNT(losses); i++) {
        const struct step applied[] = {
            read_full[0],
            losses[i],
            {"TransactWriteItems", 400,
             CANCELLED(CHECK("{\"lim\":{\"N\":\"399\"}}") "," NONE)},
            {NULL, 0, NULL}};
        const struct step not_applied[] = {losses[i],
                                           {"TransactWriteItems", 200, "{}"},
                                           {NULL, 0, NULL}};

        set_up(400, 1);
        expect_answer(applied, true, 399, true);
        assert_int_equal(pauses, 1);
        expect_answer(not_applied, true, 399, false);
        tear_down();
    }
}

/* Whatever the bounds are, a plan takes just the cost, and from no shard more than
 * it has. */
TEST_LIMIT(known, plansWhatIsThere, 100000, 1)
{
    uint64_t seed = 88172645463325252ULL;
    size_t round;

    for (round = 0; round < 2000; round++) {
        struct idem__limit_bounds *bounds =
            idem__limit_known_of(env.limits, &op);
        uint64_t shares[IDEM__LIMIT_SHARDS_MAX];
        uint64_t takes[IDEM__LIMIT_SHARDS_MAX];
        uint64_t sum = 0;
        uint64_t left;
        uint64_t cost;
        unsigned i;

        for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bounds->used[i] = 6250 - (seed >> 20) % (1 + round % 9);
        }
        idem__limit_bounds_shares(bounds, &op.u.limit.limit, shares);
        left = idem__limit_bounds_left(bounds, shares);
        if (left == 0) {
            continue;
        }
        cost = 1 + (seed >> 8) % left;
        idem__limit_bounds_plan(bounds, shares, 16, (unsigned)(seed >> 50),
                                cost, takes);
        for (i = 0; i < IDEM__LIMIT_SHARDS_MAX; i++) {
            assert_true(takes[i] <= 6250 - bounds->used[i]);
            sum += takes[i];
        }
        assert_int_equal(sum, cost);
    }
}

/* The shares of a limit are all of it, less what a larger one has taken beyond
 * them; and what is taken within them changes none. */
TEST_LIMIT(known, sharesAllOfIt, 257, 1)
{
    static const uint64_t limits[] = {257,  1000,  4096,          4097,
                                      5000, 50000, IDEM_LIMIT_MAX};
    uint64_t seed = 88172645463325252ULL;
    size_t i;
    size_t round;

    for (i = 0; i < COUNT(limits); i++) {
        begin(limits[i], 1);
        assert_int_equal(left_of(idem__limit_known_of(env.limits, &op)),
                         limits[i]);
    }
    begin(256, 1);
    assert_int_equal(idem__limit_shards(&op.u.limit.limit), 0);
    for (round = 0; round < 2000; round++) {
        struct idem__limit_bounds bounds = {.is_used = true};
        uint64_t shares[IDEM__LIMIT_SHARDS_MAX];
        uint64_t after[IDEM__LIMIT_SHARDS_MAX];
        uint64_t sum = 0;
        unsigned shard;

        for (shard = 0; shard < IDEM__LIMIT_SHARDS_MAX; shard++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bounds.used[shard] = (seed >> 20) % (1 + 80 * (round % 9));
            sum += bounds.used[shard];
        }
        begin(round % 2 == 0 ? 5000 : 1003, 1);
        assert_int_equal(left_of(&bounds), sum < op.u.limit.limit.max
                                               ? op.u.limit.limit.max - sum
                                               : 0);
        idem__limit_bounds_shares(&bounds, &op.u.limit.limit, shares);
        for (shard = 0; shard < IDEM__LIMIT_SHARDS_MAX; shard++) {
            if (shares[shard] > bounds.used[shard]) {
                bounds.used[shard] +=
                    (seed >> shard) % (shares[shard] - bounds.used[shard] + 1);
            }
        }
        idem__limit_bounds_shares(&bounds, &op.u.limit.limit, after);
        assert_memory_equal(shares, after, sizeof(shares));
    }
}

/* ---- Small and large limits of one window ---- */

static const char both_shards[] = SHARDS(SHARD("0", "90") "," SHARD("9", "5"));

/* A small limit is refused by the mark of a larger one, takes off what that counted,
 * and writes its request where that one looks; from then on without the first try.
 * What was left out of a reading, or changed meanwhile, is read again. */
TEST_LIMIT(border, smallTakesOffTheShards, 100, 1)
{
    static const struct step marked = {
        "UpdateItem", 400,
        REFUSED("{\"lim\":{\"N\":\"0\"},\"big\":{\"N\":\"1\"}}")};
    static const struct step part = {
        "BatchGetItem", 200,
        "{\"Responses\":{\"orders\":[]},\"UnprocessedKeys\":"
        "{\"orders\":{\"Keys\":[]}}}"};
    const struct step all = {"BatchGetItem", 200, both_shards};
    const struct step first[] = {
        marked, part, all, {"TransactWriteItems", 200, "{}"}, {NULL, 0, NULL}};
    const struct step next[] = {
        all,
        {"TransactWriteItems", 400,
         CANCELLED(NONE ",{\"Code\":\"ConditionalCheckFailed\"}")},
        all,
        {"TransactWriteItems", 0, ""},
        all,
        {"TransactWriteItems", 400,
         CANCELLED(CHECK("{\"lim\":{\"N\":\"4\"}}") "," NONE)},
        {NULL, 0, NULL}};
    const struct step full[] = {{"BatchGetItem", 200,
                                 SHARDS(SHARD("0", "90") "," SHARD("9", "10"))},
                                {NULL, 0, NULL}};

    expect_answer(first, true, 4, false);
    assert_int_equal(pauses, 1);
    expect_answer(next, true, 4, true);
    expect_answer(full, false, 0, false);
}

/* What a small limit counted is taken off a larger one, and each request is looked
 * for among those. The mark stands in the way of one that was counted since. */
TEST(border, largeTakesOffWhatTheSmallCounted)
{
    char window[IDEM__LIMIT_ID_MAX];
    char counted[512];
    const struct step again[] = {
        {"BatchGetItem", 200, SHARDS("")},
        {"TransactWriteItems", 400,
         CANCELLED(NONE "," NONE ",{\"Code\":\"ConditionalCheckFailed\"}")},
        {"GetItem", 200,
         "{\"Item\":{\"$\":{\"N\":\"7\"},\"lim\":{\"N\":\"1\"}}}"},
        {NULL, 0, NULL}};
    const struct step first[] = {{"BatchGetItem", 200, counted},
                                 {"GetItem", 200,
                                  "{\"Item\":{\"lim\":{\"N\":\"201\"}}}"},
                                 {"TransactWriteItems", 200, "{}"},
                                 {NULL, 0, NULL}};
    const struct step next[] = {{"GetItem", 200,
                                 "{\"Item\":{\"$\":{\"N\":\"55\"},"
                                 "\"lim\":{\"N\":\"201\"}}}"},
                                {NULL, 0, NULL}};

    set_up(400, 1);
    expect_answer(again, true, 7, true);
    tear_down();

    set_up(400, 1);
    idem__limit_item_id(op.u.limit.window, -1, window);
    (void)snprintf(counted, sizeof(counted),
                   SHARDS("{\"id\":{\"S\":\"%s\"},\"lim\":{\"N\":\"200\"},"
                          "\"big\":{\"N\":\"1\"}}"),
                   window);
    expect_answer(first, true, 198, false);
    expect_answer(next, true, 55, true);
    tear_down();
}

/* ---- Memory ---- */

/* Without memory an op says so, or that it is not known, and leaks nothing. */
TEST(memory, isMissedAnywhere)
{
    const struct step small[] = {{"UpdateItem", 200, admitted_7},
                                 {NULL, 0, NULL}};
    const struct step large[] = {read_full[0],
                                 {"TransactWriteItems", 200, "{}"},
                                 {NULL, 0, NULL}};
    int round;

    for (round = 0; round < 4; round++) {
        bool failed = true;
        long n;

        for (n = 0; failed && n < 1000; n++) {
            int rc;

            set_up(round % 2 == 0 ? 8 : 400, 1);
            heap_fail(n, round >= 2);
            rc = run(round % 2 == 0 ? small : large);
            failed = heap_fail_never();
            if (failed && rc != 0) {
                assert_true(rc == IDEM_ENOMEM || rc == IDEM_EUNKNOWN ||
                            rc == IDEM_EUNAVAILABLE);
            } else {
                assert_ok(rc);
            }
            tear_down();
        }
        assert_true(n > 1 && n < 1000);
    }
}
