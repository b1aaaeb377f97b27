/* A table that is moved: no claim is answered that a list after the move may not show. */
#include "aws/dynamodb/task/task.h"

#include "base/heap.h"
#include "sample.h"
#include "test.h"
#include "wire.h"

#include <idem/queue.h>

static struct wire wire;
static struct idem__gate gate;

static void set_up(void)
{
    wire_init(&wire, /* claims= */ true);
    memset(&gate, 0, sizeof(gate));
    wire.env.gate = &gate;
}

static struct idem_op *claim(const char *key)
{
    struct idem_op *op = idem__zalloc(sizeof(*op));

    assert_non_null(op);
    *op = wire_op(IDEM_OP_BEGIN, key, 'n');
    op->asked_boot_ms = wire.now.boot_ms;
    return op;
}

/* Another host marks the table. */
static void mark(const char *text)
{
    struct idem__buffer answer = {0};
    char body[512];

    (void)snprintf(body, sizeof(body),
                   "{\"TableName\":\"table\",\"Item\":{\"id\":{\"S\":\"%s\"},"
                   "\"lim\":{\"N\":\"0\"},\"idem_mark\":{\"S\":\"%s\"},"
                   "\"idem_floor\":{\"N\":\"0\"}},\"ConditionExpression\":"
                   "\"attribute_not_exists(id)\"}",
                   IDEM__MOVE_NAME, text);
    assert_int_equal(table_apply(&wire.table, "DynamoDB_20120810.PutItem",
                                 idem_str(body), &answer),
                     200);
    idem__buffer_free(&answer);
}

#define LEFT "left 00112233445566778899aabbccddeeff 1000 sqlite:new.db"

/* Lets the next request go through. */
static void carry(void)
{
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_SEND);
    wire_carry(&wire.table, &wire.task.request, FATE_GOOD);
}

static void answered(void)
{
    idem__flight_answered(&wire.task.base, &wire.now);
}

static void expect_target(const char *target)
{
    assert_string_equal(wire.task.request.target, target);
}

/* A claim that took long may have to be made to last, before it is answered. */
static void let_last(void)
{
    if (strcmp(wire.task.request.target, "DynamoDB_20120810.PutItem") == 0) {
        carry();
        answered();
    }
}

/* The mark is read before the first claim, and then not again for half a minute. */
TEST(gate, isReadBeforeTheFirstClaim)
{
    static const struct {
        const char *key;
        const char *log;
        int64_t pass_ms; /* Then. */
    } rows[] = {
        {"a", "GetItem PutItem ", IDEM__GATE_MS - 1},
        {"b", "GetItem PutItem PutItem ", 1},
        {"c", "GetItem PutItem PutItem GetItem PutItem ", 0},
    };

    set_up();
    EACH(row, rows) {
        struct idem_op *op = claim(row->key);

        wire_run(&wire, op);
        assert_int_equal(op->verdict, IDEM_STARTED);
        assert_string_equal(wire.log, row->log);
        idem_op_destroy(op);
        wire_pass(&wire, row->pass_ms);
    }
    wire_finish(&wire);
}

/* A process that is stopped between its claim and the answer, for longer than what it
 * read holds, reads the mark again before it says that it has started. */
TEST(gate, isReadAgainAfterAClaimThatTookLong)
{
    struct idem_op *op;

    set_up();
    op = claim("a");
    wire_start(&wire, op);
    carry();
    answered();
    expect_target("DynamoDB_20120810.PutItem");
    carry();
    mark(LEFT);
    wire_pass(&wire, IDEM__GATE_MS);
    answered();
    let_last();
    expect_target("DynamoDB_20120810.GetItem");
    carry();
    answered();
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_DONE);
    /* The claim is in the table: "nothing was done" is not ours to say. */
    assert_int_equal(op->error.code, IDEM_EUNKNOWN);
    assert_non_null(strstr(op->error.text, "sqlite:new.db"));
    idem__task_reset(&wire.task);
    idem_op_destroy(op);

    /* Control: nobody has marked the table. */
    wire_finish(&wire);
    set_up();
    op = claim("a");
    wire_start(&wire, op);
    carry();
    answered();
    carry();
    wire_pass(&wire, IDEM__GATE_MS);
    answered();
    let_last();
    expect_target("DynamoDB_20120810.GetItem");
    carry();
    answered();
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_DONE);
    assert_int_equal(op->error.code, 0);
    assert_int_equal(op->verdict, IDEM_STARTED);
    idem__task_reset(&wire.task);
    idem_op_destroy(op);
    wire_finish(&wire);
}

/* The half minute counts from before the mark is asked for, however long its answer
 * takes. */
TEST(gate, holdsFromBeforeItWasAskedFor)
{
    struct idem_op *op;

    set_up();
    op = claim("a");
    wire_start(&wire, op);
    carry();
    mark(LEFT);
    wire_pass(&wire, IDEM__GATE_MS);
    answered();
    expect_target("DynamoDB_20120810.PutItem");
    carry();
    answered();
    expect_target("DynamoDB_20120810.GetItem");
    carry();
    answered();
    assert_int_equal(op->error.code, IDEM_EUNKNOWN);
    idem__task_reset(&wire.task);
    idem_op_destroy(op);
    wire_finish(&wire);
}
