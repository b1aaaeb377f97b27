/* A record and its caller's own writes, in one transaction, over a wire that loses,
 * doubles and refuses what it carries: all of it is in the table, or none. */
#include "aws/dynamodb/task/task.h"

#include "base/heap.h"
#include "sample.h"
#include "test.h"
#include "wire.h"

#include <idem/queue.h>

#define ROW_PUT                                                                \
    "{\"Put\":{\"TableName\":\"table\",\"Item\":{\"id\":{\"S\":\"row-%s\"}}}}"
#define NEW_ROW_PUT                                                            \
    "{\"Put\":{\"TableName\":\"table\",\"Item\":{\"id\":{\"S\":\"row-%s\"}},"  \
    "\"ConditionExpression\":\"attribute_not_exists(id)\"}}"

static struct wire wire;

#define TEST_WIRE(suite, condition)                                            \
    TEST_BETWEEN(suite, condition, wire_init(&wire, true), wire_finish(&wire))

/* An op of @verb on "k", by the claimant @who, with the writes @text. */
static struct idem_op *make(enum idem_verb verb, char who, const char *text,
                            size_t writes_len)
{
    struct idem_op *op = idem__zalloc(sizeof(*op));

    assert_non_null(op);
    *op = wire_op(verb, "k", who);
    if (verb == IDEM_OP_END) {
        op->u.end.status = IDEM_STATUS_COMPLETED;
        op->u.end.result.bytes = idem_str("done");
    }
    if (text != NULL) {
        op->commit = idem__zalloc(sizeof(*op->commit));
        assert_non_null(op->commit);
        op->commit->writes = idem_str(text);
        op->commit->writes_len = writes_len;
        op->commit->outcome.status = IDEM_STATUS_COMPLETED;
        op->commit->outcome.result.bytes = idem_str("done");
        memset(op->commit->digest, (int)strlen(text), 16);
    }
    return op;
}

static struct idem_op *run(struct idem_op *op)
{
    wire_run(&wire, op);
    return op;
}

static uint64_t begin(char who)
{
    struct idem_op *op = run(make(IDEM_OP_BEGIN, who, NULL, 0));
    uint64_t fence = op->record->fence;

    assert_ok(op->error.code);
    assert_int_equal(op->verdict, IDEM_STARTED);
    idem_op_destroy(op);
    return fence;
}

static struct idem_op *complete(char who, uint64_t fence, const char *text,
                                size_t writes_len)
{
    struct idem_op *op = make(IDEM_OP_END, who, text, writes_len);

    op->fence = fence;
    return run(op);
}

static bool has_row(const char *name)
{
    char id[40];

    (void)snprintf(id, sizeof(id), "row-%s", name);
    return table_item(&wire.table, id) != NULL;
}

static enum idem_verdict asks(char who)
{
    struct idem_op *op = run(make(IDEM_OP_BEGIN, who, NULL, 0));
    enum idem_verdict verdict = op->verdict;

    assert_ok(op->error.code);
    if (verdict == IDEM_REPLAY) {
        assert_slice(op->record->result.bytes, idem_str("done"));
    }
    idem_op_destroy(op);
    return verdict;
}

/* A write of the caller's that is refused leaves the attempt to its owner, who may
 * complete it with others. */
TEST_WIRE(commit, isAllOrNothing)
{
    char refused[256];
    char fresh[256];
    struct idem_op *op;
    uint64_t fence;

    (void)snprintf(refused, sizeof(refused), ROW_PUT "," NEW_ROW_PUT, "b", "a");
    (void)snprintf(fresh, sizeof(fresh), ROW_PUT, "b");
    (void)json_object_object_add(wire.table.items, "row-a",
                                 json_object_new_object());
    fence = begin('a');
    op = complete('a', fence, refused, 2);
    assert_ok(op->error.code);
    assert_false(op->commit->committed);
    assert_int_equal(op->commit->refused, 2);
    assert_non_null(strstr(op->commit->text, "ConditionalCheckFailed"));
    assert_false(op->changed);
    idem_op_destroy(op);
    assert_false(has_row("b"));
    assert_int_equal(asks('b'), IDEM_BUSY);
    op = complete('a', fence, fresh, 1);
    assert_ok(op->error.code);
    assert_true(op->commit->committed);
    assert_int_equal(op->record->status, IDEM_STATUS_COMPLETED);
    idem_op_destroy(op);
    assert_true(has_row("b"));
    assert_int_equal(asks('b'), IDEM_REPLAY);
}

/* The same call again finds what it did; other writes were not made; and whoever
 * lost the key writes nothing. */
TEST_WIRE(commit, isDoneOnce)
{
    char first[256];
    char other[256];
    struct idem_op *op;
    uint64_t fence;
    uint64_t late;

    (void)snprintf(first, sizeof(first), NEW_ROW_PUT, "a");
    (void)snprintf(other, sizeof(other), NEW_ROW_PUT, "other");
    late = begin('a');
    wire_pass(&wire, 70000);
    fence = begin('b');
    op = complete('a', late, other, 1);
    assert_code(IDEM_ELOST, op->error.code);
    idem_op_destroy(op);
    op = complete('b', fence, first, 1);
    assert_ok(op->error.code);
    idem_op_destroy(op);
    op = complete('b', fence, first, 1);
    assert_ok(op->error.code);
    assert_true(op->commit->committed);
    idem_op_destroy(op);
    op = complete('b', fence, other, 1);
    assert_code(IDEM_EINVALID, op->error.code);
    idem_op_destroy(op);
    assert_true(has_row("a"));
    assert_false(has_row("other"));
}

/* Claim, writes and outcome in one request; a duplicate gets the result, and a
 * refused one leaves no trace. */
TEST(commit, needsNoAttemptInProgress)
{
    char text[256];
    struct idem_op *op;

    (void)snprintf(text, sizeof(text), NEW_ROW_PUT, "a");
    wire_init(&wire, true);
    op = run(make(IDEM_OP_BEGIN, 'a', text, 1));
    assert_ok(op->error.code);
    assert_int_equal(op->verdict, IDEM_STARTED);
    assert_true(op->commit->committed);
    assert_int_equal(op->record->status, IDEM_STATUS_COMPLETED);
    idem_op_destroy(op);
    assert_string_equal(wire.log, "TransactWriteItems ");
    op = run(make(IDEM_OP_BEGIN, 'b', text, 1));
    assert_ok(op->error.code);
    assert_int_equal(op->verdict, IDEM_REPLAY);
    assert_false(op->commit->committed);
    assert_int_equal(op->commit->refused, 0);
    assert_slice(op->record->result.bytes, idem_str("done"));
    idem_op_destroy(op);
    assert_int_equal(table_len(&wire.table), 2);
    wire_finish(&wire);

    wire_init(&wire, true);
    (void)json_object_object_add(wire.table.items, "row-a",
                                 json_object_new_object());
    op = run(make(IDEM_OP_BEGIN, 'a', text, 1));
    assert_ok(op->error.code);
    assert_int_equal(op->verdict, IDEM_RELEASED);
    assert_int_equal(op->commit->refused, 1);
    idem_op_destroy(op);
    assert_int_equal(table_len(&wire.table), 1);
    wire_finish(&wire);
}

/* ROW(11) ROW(13) ROW(15) ROW(16) ROW(17) Any two of the requests meet any fate: in
 * the end, record and row are both there, and the caller knows. The row is one that
 * cannot be written twice: a copy of the transaction is refused for the record and
 * for the row. */
static void meets_every_fate(bool one_shot)
{
    enum {
        REQUESTS = 6
    };
    char text[256];
    unsigned lives = 0;
    int i;
    int j;
    int a;
    int b;

    (void)snprintf(text, sizeof(text), NEW_ROW_PUT, "a");
    for (i = 0; i < REQUESTS; i++) {
        for (j = i; j < REQUESTS; j++) {
            for (a = 0; a < FATES; a++) {
                for (b = 0; b < (i == j ? 1 : FATES); b++) {
                    struct idem_op *op;

                    wire_init(&wire, lives % 2 == 0);
                    if (one_shot) {
                        op = make(IDEM_OP_BEGIN, 'a', text, 1);
                    } else {
                        op = make(IDEM_OP_END, 'a', text, 1);
                        op->fence = begin('a');
                        wire.requests = 0;
                    }
                    wire.fates[j] = (enum fate)b;
                    wire.fates[i] = (enum fate)a;
                    (void)run(op);
                    if (op->error.code != 0 || !op->commit->committed ||
                        !has_row("a")) {
                        fail_with("%s at %d, %s at %d: %s, %d, %s",
                                  fate_names[wire.fates[i]], i,
                                  fate_names[wire.fates[j]], j,
                                  idem_error_name(op->error.code),
                                  (int)op->commit->committed, op->error.text);
                    }
                    assert_int_equal(op->record->status, IDEM_STATUS_COMPLETED);
                    if (one_shot) {
                        assert_text(op->record->result.bytes, "done");
                    }
                    assert_int_equal(table_len(&wire.table), 2);
                    idem_op_destroy(op);
                    wire_finish(&wire);
                    lives++;
                }
            }
        }
    }
}

TEST(commit, survivesEveryPairOfFates)
{
    meets_every_fate(/* one_shot= */ false);
    meets_every_fate(/* one_shot= */ true);
}

/* A caller's condition is believed only when the record was looked at, if an
 * earlier copy may have been applied: it may be that copy that stands in the way. */
TEST_WIRE(commit, looksBeforeItBelievesARefusal)
{
    char text[256];
    struct idem_op *op;

    (void)snprintf(text, sizeof(text), NEW_ROW_PUT, "a");
    (void)json_object_object_add(wire.table.items, "row-a",
                                 json_object_new_object());
    wire.fates[0] = FATE_LOST;
    op = run(make(IDEM_OP_BEGIN, 'a', text, 1));
    assert_ok(op->error.code);
    assert_int_equal(op->commit->refused, 1);
    assert_string_equal(wire.log, "TransactWriteItems GetItem "
                                  "TransactWriteItems GetItem ");
    idem_op_destroy(op);
}

/* What is no list of entries is refused before anything is sent. */
TEST(commit, isCheckedFirst)
{
    static const struct {
        const char *text;
        size_t len;
        bool good;
    } cases[] = {
        {"{\"Put\":{}}", 1, true},
        {"{\"Put\":{}},{\"Delete\":{}},{\"ConditionCheck\":{}},"
         "{\"Update\":{}}",
         4, true},
        {"{\"Put\":{}},{\"Put\":{}}", 1, false},
        {"{\"Put\":{}}", 2, false},
        {"{\"Put\":{}}],[{\"Put\":{}}", 1, false},
        {"{\"Put\":{}}],\"ClientRequestToken\":[{\"Put\":{}}", 1, false},
        {"{\"Put\":{},\"Delete\":{}}", 1, false},
        {"{\"put\":{}}", 1, false},
        {"{\"Put\":1}", 1, false},
        {"{\"Put\":{}", 1, false},
        {"[]", 1, false},
        {"", 1, false},
        {"{\"Put\":{\"a\":\"\xff\"}}", 1, false},
    };

    EACH(row, cases) {
        struct idem_op *op = make(IDEM_OP_BEGIN, 'a', row->text, row->len);
        int rc = idem__commit_check(op->commit, &op->error);

        if ((rc == 0) != row->good) {
            fail_with("%s: %s", row->text, idem_error_name(rc));
        }
        if (!row->good) {
            wire_init(&wire, true);
            (void)run(op);
            assert_code(IDEM_EINVALID, op->error.code);
            assert_int_equal(wire.requests, 0);
            wire_finish(&wire);
        }
        idem_op_destroy(op);
    }
}

/* ---- What a cancellation says ---- */

#define REASONS(list)                                                          \
    "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"                          \
    "TransactionCanceledException\",\"CancellationReasons\":" list "}"
#define NONE "{\"Code\":\"None\"}"
#define CONDITION                                                              \
    "{\"Code\":\"ConditionalCheckFailed\",\"Message\":\"did not hold\"}"
#define CONFLICT "{\"Code\":\"TransactionConflict\"}"
#define THROTTLED "{\"Code\":\"ThrottlingError\"}"
#define EXCEEDED "{\"Code\":\"ProvisionedThroughputExceeded\"}"
#define INVALID                                                                \
    "{\"Code\":\"ValidationError\",\"Message\":\"the type is wrong\"}"
#define TOO_LARGE "{\"Code\":\"ItemCollectionSizeLimitExceeded\"}"

/* ROW(17) Ours refused, caller_write refused, busy, never: told apart; and only in the
 * answer of a transaction. */
TEST(cancellation, isToldApart)
{
    static const struct {
        const char *body;
        enum idem__said said;
        int code;
        size_t caller_write;
    } rows[] = {
        {REASONS("[" CONDITION "," NONE "]"), IDEM__SAID_REFUSED, 0, 0},
        {REASONS("[" CONDITION "," CONDITION "]"), IDEM__SAID_REFUSED, 0, 0},
        {REASONS("[" CONDITION "," INVALID "]"), IDEM__SAID_REFUSED, 0, 0},
        {REASONS("[" NONE "," CONDITION "]"), IDEM__SAID_CALLER_WRITE,
         IDEM_EINVALID, 1},
        {REASONS("[" NONE "," NONE "," CONDITION "," CONFLICT "]"),
         IDEM__SAID_CALLER_WRITE, IDEM_EINVALID, 2},
        {REASONS("[" CONFLICT "," CONDITION "]"), IDEM__SAID_NOT_APPLIED,
         IDEM_EUNAVAILABLE, 0},
        {REASONS("[" NONE "," CONFLICT "]"), IDEM__SAID_NOT_APPLIED,
         IDEM_EUNAVAILABLE, 1},
        {REASONS("[" THROTTLED "," NONE "]"), IDEM__SAID_NOT_APPLIED,
         IDEM_EUNAVAILABLE, 0},
        {REASONS("[" NONE "," EXCEEDED "]"), IDEM__SAID_NOT_APPLIED,
         IDEM_EUNAVAILABLE, 1},
        {REASONS("[" NONE "," INVALID "]"), IDEM__SAID_NEVER, IDEM_ECONFIG, 1},
        {REASONS("[" INVALID "," NONE "]"), IDEM__SAID_NEVER, IDEM_ECONFIG, 0},
        {REASONS("[" NONE "," CONFLICT "," TOO_LARGE "]"), IDEM__SAID_NEVER,
         IDEM_ECONFIG, 2},
        {REASONS("[" NONE "," NONE "]"), IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, 0},
        {REASONS("[]"), IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, 0},
        {REASONS("{}"), IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, 0},
        {REASONS("[" NONE ",{},null]"), IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, 0},
        {REASONS("[null," CONDITION "]"), IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, 0},
        {"{\"__type\":\"x#TransactionCanceledException\"}", IDEM__SAID_UNKNOWN,
         IDEM_EUNKNOWN, 0},
        {"{\"__type\":\"x#TransactionInProgressException\"}",
         IDEM__SAID_UNKNOWN, IDEM_EUNKNOWN, 0},
    };

    EACH(row, rows) {
        struct idem__aws_request request = {.target = "x.TransactWriteItems"};
        struct idem__answer answer;

        wire_answer(&request, 400, idem_str(row->body));
        idem__answer_read(&request, "orders", &answer);
        if (answer.said != row->said || answer.error.code != row->code ||
            answer.caller_write != row->caller_write) {
            fail_with("%s: said %d, %s, %zu", row->body, (int)answer.said,
                      idem_error_name(answer.error.code), answer.caller_write);
        }
        idem__answer_finish(&answer);
        request.target = "x.PutItem";
        idem__answer_read(&request, "orders", &answer);
        assert_int_equal(answer.said, IDEM__SAID_UNKNOWN);
        idem__answer_finish(&answer);
        idem__aws_request_finish(&request);
    }
}
