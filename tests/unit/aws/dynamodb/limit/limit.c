/* A rate limit in a table, request by request: what is sent, and what each answer,
 * or the lack of one, is taken for. The answers are written down here, as the
 * service gives them. */
#include "base/heap.h"
#include "heap.h"
#include "limit/limit.h"
#include "sample.h"
#include "test.h"
#include "wire.h"

#include <stdlib.h>

/* One request: its operation, and what comes back. In the answer "$" stands for the
 * name of the request's entry in the item of its window. */
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
    *limit = sample_limit();
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
    env.base.host = host;
    memset(&task, 0, sizeof(task));
    idem__task_init(&task, &env);
    task.request.answer_cap =
        4096; /* So that the wire itself needs no memory. */
    task.request.answer = idem__alloc(task.request.answer_cap);
    assert_non_null(task.request.answer);
    now = sample_now();
    now.store_ms = LIMIT_AT_MS;
    begin(max, cost);
}

static void tear_down(void)
{
    idem__task_free(&task);
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
    char text[4096];
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
    task.base.op = &op;
    idem__flight_start(&task.base, &now);
    while (task.base.next != IDEM__FLIGHT_DONE) {
        if (task.base.next == IDEM__FLIGHT_PAUSE) {
            pauses++;
            idem__flight_resume(&task.base, &now);
            continue;
        }
        if (steps[steps_done].operation == NULL) {
            fail_with("one request too many: %s", task.request.target);
        }
        carry(&steps[steps_done++]);
        idem__flight_answered(&task.base, &now);
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
#define SERVER_ERROR "{\"__type\":\"x#InternalServerError\",\"message\":\"oh\"}"
#define THROTTLED "{\"__type\":\"x#ProvisionedThroughputExceededException\"}"
#define ITEM(attributes) "{\"Item\":{" attributes "}}"
#define ATTRIBUTES(attributes) "{\"Attributes\":{" attributes "}}"

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

    EACH(loss, losses) {
        const struct step applied[] = {
            *loss,
            {"UpdateItem", 400,
             REFUSED("{\"$\":{\"N\":\"7\"},\"lim\":{\"N\":\"1\"}}")},
            {NULL, 0, NULL}};
        const struct step not_applied[] = {*loss,
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

/* A refusal with something left is remembered, on condition that nothing changed
 * meanwhile; if it did, it is decided anew. */
TEST_LIMIT(small, remembersARefusal, 8, 5)
{
    const struct step steps[] = {
        {"UpdateItem", 400, REFUSED("{\"lim\":{\"N\":\"5\"}}")},
        {"UpdateItem", 400, REFUSED("{\"lim\":{\"N\":\"6\"}}")},
        {"UpdateItem", 200,
         "{\"Attributes\":{\"$\":{\"N\":\"-2\"},\"lim\":{\"N\":\"6\"},"
         "\"refs\":{\"N\":\"1\"}}}"},
        {NULL, 0, NULL}};
    const struct step again[] = {
        {"UpdateItem", 400,
         REFUSED("{\"$\":{\"N\":\"-2\"},\"lim\":{\"N\":\"8\"},"
                 "\"refs\":{\"N\":\"1\"}}")},
        {NULL, 0, NULL}};

    expect_answer(steps, false, 2, false);
    expect_answer(again, false, 2, true);
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
        REFUSED("{\"lim\":{\"N\":\"7\"},\"gen\":{\"N\":\"-1\"}}"),
        REFUSED("{\"lim\":{\"N\":\"7\"},\"refs\":{\"N\":\"x\"}}"),
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

    EACH(item, items) {
        const struct step steps[] = {{"UpdateItem", 400, *item},
                                     {NULL, 0, NULL}};

        assert_code(IDEM_ECORRUPT, run(steps));
    }
    EACH(answer, answers) {
        const struct step steps[] = {{"UpdateItem", 200, *answer},
                                     {NULL, 0, NULL}};

        assert_code(IDEM_EUNKNOWN, run(steps));
    }
}

/* ---- Large limits ---- */

static const char first_of_400[] =
    ATTRIBUTES("\"$\":{\"N\":\"399\"},\"lim\":{\"N\":\"1\"}");

/* An update that was not answered is made again, and shows whether the first one was
 * applied, even where its entry was moved meanwhile. */
TEST_LIMIT(large, readsBackWhatWasNotAnswered, 400, 1)
{
    static const struct step losses[] = {
        {"UpdateItem", 0, ""},        {"UpdateItem", 500, SERVER_ERROR},
        {"UpdateItem", 200, "{\"At"}, {"UpdateItem", 400, THROTTLED},
        {"UpdateItem", -1, ""},
    };

    EACH(loss, losses) {
        const struct step applied[] = {
            {"GetItem", 200, "{}"},
            *loss,
            {"UpdateItem", 400,
             REFUSED("{\"$\":{\"N\":\"399\"},\"lim\":{\"N\":\"1\"}}")},
            {NULL, 0, NULL}};
        const struct step moved[] = {
            {"GetItem", 200, "{}"},
            *loss,
            {"UpdateItem", 400,
             REFUSED("{\"lim\":{\"N\":\"25\"},\"gen\":{\"N\":\"1\"}}")},
            {"GetItem", 200, ITEM("\"lim\":{\"N\":\"399\"}")},
            {NULL, 0, NULL}};
        const struct step not_applied[] = {{"GetItem", 200, "{}"},
                                           *loss,
                                           {"UpdateItem", 200, first_of_400},
                                           {NULL, 0, NULL}};

        expect_answer(applied, true, 399, true);
        assert_int_equal(pauses, 1);
        expect_answer(moved, true, 399, true);
        expect_answer(not_applied, true, 399, false);
    }
}

/* ---- Entries that were moved ---- */

static struct step
    sent; /* The body of the last request, from its first use on. */

static bool asks_for(const char *text)
{
    struct idem_slice body = task.request.body;

    return memmem(body.base, body.len, text, strlen(text)) != NULL;
}

/* Answers one request after a look at it. */
static void carry_with(const char *text, const char *operation, int status,
                       const char *answer)
{
    sent = (struct step){operation, status, answer};
    if (!asks_for(text)) {
        fail_with("no %s in %.*s", text, (int)task.request.body.len,
                  (const char *)task.request.body.base);
    }
    carry(&sent);
    idem__flight_answered(&task.base, &now);
}

static void expect_end(bool admitted, uint64_t remaining)
{
    assert_int_equal(task.base.next, IDEM__FLIGHT_DONE);
    assert_ok(op.error.code);
    assert_int_equal(op.u.limit.answer.admitted, admitted);
    assert_int_equal(op.u.limit.answer.remaining, remaining);
    idem__task_reset(&task);
}

/* Once entries were moved, the request's own item is read, and the update holds only
 * while none was moved since; else it is read again. A window that is full by then is
 * not: its count only grows. */
TEST_LIMIT(moved, areLookedForBeforeAnUpdate, 400, 1)
{
    const struct step again[] = {
        {"GetItem", 200, ITEM("\"lim\":{\"N\":\"90\"},\"gen\":{\"N\":\"3\"}")},
        {"GetItem", 200, ITEM("\"lim\":{\"N\":\"377\"}")},
        {NULL, 0, NULL}};
    const struct step full[] = {
        {"GetItem", 200, ITEM("\"lim\":{\"N\":\"400\"},\"gen\":{\"N\":\"9\"}")},
        {"GetItem", 200, "{}"},
        {NULL, 0, NULL}};
    const struct step strange[] = {
        {"GetItem", 200, ITEM("\"lim\":{\"N\":\"400\"},\"gen\":{\"N\":\"9\"}")},
        {"GetItem", 200, ITEM("\"lim\":{\"S\":\"1\"}")},
        {NULL, 0, NULL}};

    task.base.op = &op;

    idem__flight_start(&task.base, &now);
    carry_with("limit#", "GetItem", 200,
               ITEM("\"lim\":{\"N\":\"90\"},\"gen\":{\"N\":\"3\"}"));
    carry_with("limit#r", "GetItem", 200, "{}");
    carry_with("gen = :g", "UpdateItem", 400,
               REFUSED("{\"lim\":{\"N\":\"99\"},\"gen\":{\"N\":\"4\"}}"));
    carry_with("limit#r", "GetItem", 200, "{}");
    carry_with("\":g\":{\"N\":\"4\"}", "UpdateItem", 400,
               REFUSED("{\"lim\":{\"N\":\"400\"},\"gen\":{\"N\":\"4\"}}"));
    expect_end(false, 0);
    expect_answer(again, true, 377, true);
    expect_answer(full, false, 0, false);
    assert_code(IDEM_ECORRUPT, run(strange));
}

/* Attributes of a window with @n entries, the op's own among them. */
static const char *window_of(unsigned n, const char *gen)
{
    static char text[4096];
    size_t len;
    unsigned i;

    len = (size_t)snprintf(text, sizeof(text),
                           "{\"Attributes\":{\"lim\":{\"N\":\"%u\"},%s"
                           "\"rother\":{\"N\":\"1\"},\"$\":{\"N\":\"7\"}",
                           n, gen);
    for (i = 1; i < n; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                ",\"r%022u\":{\"N\":\"%u\"}", i, 100 + i);
    }
    (void)snprintf(text + len, sizeof(text) - len, "}}");
    return text;
}

static unsigned times_asked(const char *text)
{
    struct idem_slice body = task.request.body;
    const char *at = body.base;
    const char *end = at + body.len;
    unsigned n = 0;

    while ((at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL) {
        at += strlen(text);
        n++;
    }
    return n;
}

/* The update that adds the 25th entry moves them: they are written, and only then taken
 * out; what came meanwhile is moved next. */
TEST_LIMIT(moves, writeBeforeTheyTakeOut, 400, 1)
{
    task.base.op = &op;
    idem__flight_start(&task.base, &now);
    carry_with("limit#", "GetItem", 200, "{}");
    carry_with("ALL_NEW", "UpdateItem", 200, window_of(25, ""));
    assert_int_equal(times_asked("PutRequest"), 25);
    assert_int_equal(times_asked("\"ttl\":{\"N\":\""), 25);
    assert_false(asks_for("rother"));
    carry_with("{\"id\":{\"S\":\"limit#r0000000000000000000007\"},"
               "\"lim\":{\"N\":\"107\"}",
               "BatchWriteItem", 200, "{\"UnprocessedItems\":{}}");
    assert_true(asks_for("attribute_not_exists(gen)"));
    assert_true(asks_for("\":h\":{\"N\":\"1\"}"));
    assert_false(asks_for("rother"));
    carry_with("\"#24\":\"r", "UpdateItem", 200,
               window_of(30, "\"gen\":{\"N\":\"1\"},"));
    carry_with("PutRequest", "BatchWriteItem", 200, "{}");
    assert_true(asks_for("\":h\":{\"N\":\"2\"}"));
    carry_with("gen = :g", "UpdateItem", 200,
               window_of(5, "\"gen\":{\"N\":\"2\"},"));
    expect_end(true, 7);
}

/* The request is counted whatever comes of it; nothing is taken out that was not
 * written. */
TEST_LIMIT(moves, mayFail, 400, 1)
{
    static const struct step writes[] = {
        {"BatchWriteItem", 0, ""},
        {"BatchWriteItem", 500, SERVER_ERROR},
        {"BatchWriteItem", 400, THROTTLED},
        {"BatchWriteItem", 400, "{\"__type\":\"x#AccessDeniedException\"}"},
        {"BatchWriteItem", 200,
         "{\"UnprocessedItems\":{\"orders\":[{\"PutRequest\":{}}]}}"},
    };
    static const struct step trims[] = {
        {"UpdateItem", 0, ""},
        {"UpdateItem", 400, THROTTLED},
        {"UpdateItem", 400, REFUSED("{\"lim\":{\"N\":\"30\"}}")},
        {"UpdateItem", 200, "{}"},
    };
    size_t i;

    for (i = 0; i < COUNT(writes) + COUNT(trims); i++) {
        task.base.op = &op;
        idem__flight_start(&task.base, &now);
        carry_with("limit#", "GetItem", 200, "{}");
        carry_with("ALL_NEW", "UpdateItem", 200, window_of(25, ""));
        if (i < COUNT(writes)) {
            carry(&writes[i]);
        } else {
            carry_with("PutRequest", "BatchWriteItem", 200, "{}");
            carry(&trims[i - COUNT(writes)]);
        }
        idem__flight_answered(&task.base, &now);
        expect_end(true, 7);
    }
}

/* ---- Any limit ---- */

/* The number after the first @name in the request. */
static int64_t number_after(const char *name)
{
    struct idem_slice body = task.request.body;
    const char *at = memmem(body.base, body.len, name, strlen(name));

    assert_non_null(at);
    return strtoll(at + strlen(name), NULL, 10);
}

/* State goes by its ttl, in seconds, after the end of its window and not much
 * later; the item of a window and those of entries. */
TEST_LIMIT(ttl, isInSecondsAndSoonAfterTheWindow, 400, 1)
{
    int64_t ttl_ms[2];

    task.base.op = &op;

    idem__flight_start(&task.base, &now);
    carry_with("limit#", "GetItem", 200, "{}");
    ttl_ms[0] = number_after("\":t\":{\"N\":\"") * 1000;
    carry_with("ALL_NEW", "UpdateItem", 200, window_of(25, ""));
    ttl_ms[1] = number_after("\"ttl\":{\"N\":\"") * 1000;
    EACH(ttl, ttl_ms) {
        assert_true(*ttl > LIMIT_AT_MS + IDEM_LIMIT_DAY / 2);
        assert_true(*ttl < LIMIT_AT_MS + 5 * (int64_t)IDEM_LIMIT_DAY);
    }
    idem__flight_give_up(&task.base);
    idem__task_reset(&task);
}

/* ---- Memory ---- */

/* Without memory an op says so, or that it is not known, and leaks nothing. */
TEST(memory, isMissedAnywhere)
{
    const struct step small[] = {{"UpdateItem", 200, admitted_7},
                                 {NULL, 0, NULL}};
    const struct step large[] = {{"GetItem", 200, "{}"},
                                 {"UpdateItem", 200, window_of(25, "")},
                                 {"BatchWriteItem", 200, "{}"},
                                 {"UpdateItem", 200, "{}"},
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
