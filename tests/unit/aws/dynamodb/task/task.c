/* One op after the other over a wire that loses, doubles and refuses what it
 * carries: what the caller is told is what is in the table. */
#include "base/heap.h"
#include "host.h"
#include "sample.h"
#include "test.h"
#include "wire.h"

#include <stdlib.h>

static struct wire wire;

#define TEST_WIRE(suite, condition)                                            \
    TEST_BETWEEN(suite, condition, wire_init(&wire, true), wire_finish(&wire))

static struct idem_op end_op(char who, uint64_t fence, struct idem_slice bytes)
{
    struct idem_op op = wire_op(IDEM_OP_END, "k", who);

    op.fence = fence;
    op.u.end.status = IDEM_STATUS_COMPLETED;
    op.u.end.result.bytes = bytes;
    return op;
}

static enum idem_verdict begin(char who, uint64_t *ret_fence)
{
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", who);
    enum idem_verdict verdict;

    wire_run(&wire, &op);
    assert_ok(op.error.code);
    verdict = op.verdict;
    if (ret_fence != NULL) {
        *ret_fence = op.record->fence;
    }
    wire_free(&op);
    return verdict;
}

static int complete(char who, uint64_t fence, struct idem_slice bytes)
{
    struct idem_op op = end_op(who, fence, bytes);

    wire_run(&wire, &op);
    wire_free(&op);
    return op.error.code;
}

static void expect_requests(const char *log)
{
    assert_string_equal(wire.log, log);
    wire.log[0] = '\0';
}

/* A new operation is two requests, a duplicate one; a takeover and a reuse are
 * two for the claim. */
TEST_WIRE(task, needsFewRequests)
{
    uint64_t fence;

    assert_int_equal(begin('a', &fence), IDEM_STARTED);
    assert_ok(complete('a', fence, idem_str("done")));
    expect_requests("PutItem PutItem ");
    assert_int_equal(begin('b', NULL), IDEM_REPLAY);
    expect_requests("PutItem ");
    wire_pass(&wire, 2 * 86400000);
    assert_int_equal(begin('c', &fence), IDEM_STARTED);
    expect_requests("PutItem PutItem ");
    wire_pass(&wire, 61000);
    assert_int_equal(begin('d', NULL), IDEM_STARTED);
    expect_requests("PutItem PutItem ");
    assert_int_equal(begin('e', NULL), IDEM_BUSY);
    expect_requests("PutItem ");
    assert_code(IDEM_ELOST, complete('c', fence, idem_str("late")));
}

/* Results of every size around the edges come back byte for byte; the parts of
 * a large one lie in items of their own. */
TEST(task, keepsResultsOfEverySize)
{
    static const size_t sizes[] = {0,
                                   1,
                                   600,
                                   700,
                                   1024,
                                   5000,
                                   IDEM__PART_LEN - 1,
                                   IDEM__PART_LEN,
                                   IDEM__PART_LEN + 1,
                                   10 * IDEM__PART_LEN,
                                   5000000};
    uint8_t *bytes = malloc(5000000);
    size_t i;
    int packs;

    assert_non_null(bytes);
    for (i = 0; i < 2 * COUNT(sizes); i++) {
        struct idem_slice result = {bytes, sizes[i / 2]};
        struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'b');
        uint64_t seed = i;
        uint64_t fence;

        packs = i % 2;
        if (packs == 1) {
            memset(bytes, 'x', result.len);
        } else {
            random_fill(&seed, bytes, result.len);
        }
        wire_init(&wire, true);
        wire.table.spare = 3;
        assert_int_equal(begin('a', &fence), IDEM_STARTED);
        assert_ok(complete('a', fence, result));
        wire_run(&wire, &op);
        assert_ok(op.error.code);
        assert_int_equal(op.verdict, IDEM_REPLAY);
        assert_slice(op.record->result.bytes, result);
        if (packs == 0 && result.len > 1024) {
            assert_int_equal(table_len(&wire.table),
                             1 + (result.len + IDEM__PART_LEN - 1) /
                                     IDEM__PART_LEN);
        }
        wire_free(&op);
        wire_finish(&wire);
    }
    free(bytes);
}

/* ---- Every fate, at every request ---- */

struct outcome {
    int begin_code;
    enum idem_verdict verdict;
    int end_code;
};

/* Begin and complete by 'a', with these fates; then 'b' asks. */
static struct outcome run_life(const enum fate *fates, size_t fates_len,
                               bool claims, struct idem_slice result)
{
    struct outcome outcome = {.end_code = 1};
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'a');
    uint64_t fence;

    wire_init(&wire, claims);
    memcpy(wire.fates, fates, fates_len * sizeof(*fates));
    wire_run(&wire, &op);
    outcome.begin_code = op.error.code;
    outcome.verdict = op.verdict;
    fence = op.record->fence;
    wire_free(&op);
    if (outcome.begin_code == 0 && outcome.verdict == IDEM_STARTED) {
        outcome.end_code = complete('a', fence, result);
    }
    return outcome;
}

/* What 'b' may find after what 'a' was told. */
static void judge(const struct outcome *outcome, struct idem_slice result,
                  const char *what)
{
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'b');

    memset(wire.fates, 0, sizeof(wire.fates));
    wire_run(&wire, &op);
    if (op.error.code != 0) {
        fail_with("%s: then %s", what, idem_error_name(op.error.code));
    }
    switch (outcome->begin_code) {
    case 0:
        if (outcome->verdict != IDEM_STARTED) {
            fail_with("%s: %s", what, idem_verdict_name(outcome->verdict));
        }
        break;
    case IDEM_EUNAVAILABLE: /* Nothing was done. */
        if (op.verdict != IDEM_STARTED) {
            fail_with("%s: unavailable, and yet claimed", what);
        }
        break;
    case IDEM_EUNKNOWN:
        break;
    default:
        fail_with("%s: begin answered %s", what,
                  idem_error_name(outcome->begin_code));
    }
    switch (outcome->end_code) {
    case 0:
        if (op.verdict != IDEM_REPLAY) {
            fail_with("%s: completed, and then %s", what,
                      idem_verdict_name(op.verdict));
        }
        assert_slice(op.record->result.bytes, result);
        break;
    case IDEM_EUNAVAILABLE:
        if (op.verdict != IDEM_BUSY) {
            fail_with("%s: not recorded, and then %s", what,
                      idem_verdict_name(op.verdict));
        }
        break;
    case IDEM_EUNKNOWN:
    case 1:
        break;
    default:
        fail_with("%s: complete answered %s", what,
                  idem_error_name(outcome->end_code));
    }
    wire_free(&op);
}

/* ROW(10) ROW(11) ROW(13) ROW(15) ROW(16) ROW(17) ROW(28) One or two of the
 * requests of a life meet any fate: what was acknowledged is there, what was
 * refused is not, and one fault alone is always overcome. */
TEST(task, survivesEveryPairOfFates)
{
    enum {
        REQUESTS = 7
    };
    uint8_t *large = malloc(2 * IDEM__PART_LEN);
    uint64_t seed = 7;
    unsigned lives = 0;
    unsigned overcome = 0;
    unsigned variant;
    int i;
    int j;
    int a;
    int b;

    assert_non_null(large);
    random_fill(&seed, large, 2 * IDEM__PART_LEN);
    for (variant = 0; variant < 4; variant++) {
        struct idem_slice result = idem_str("done");

        if (variant >= 2) {
            result = idem_bytes(large, IDEM__PART_LEN + 1);
        }
        for (i = 0; i < REQUESTS; i++) {
            /* Two faults for a small result, one for a large one. */
            for (j = i; j < (variant >= 2 ? i + 1 : REQUESTS); j++) {
                for (a = 0; a < FATES; a++) {
                    for (b = 0; b < (i == j ? 1 : FATES); b++) {
                        enum fate fates[REQUESTS + 1] = {FATE_GOOD};
                        struct outcome outcome;
                        char what[120];

                        fates[j] = (enum fate)b;
                        fates[i] = (enum fate)a;
                        (void)snprintf(what, sizeof(what),
                                       "%u: %s at %d, %s at %d", variant,
                                       fate_names[fates[i]], i,
                                       fate_names[fates[j]], j);
                        outcome =
                            run_life(fates, REQUESTS, variant % 2 == 0, result);
                        judge(&outcome, result, what);
                        lives++;
                        overcome += outcome.end_code == 0;
                        wire_finish(&wire);
                    }
                }
            }
        }
    }
    assert_int_equal(overcome, lives);
    free(large);
}

/* ROW(27) A look that is answered in a form that is not DynamoDB's does not say that
 * there is nothing. */
TEST(task, takesNothingStrangeForAnAbsence)
{
    static const struct {
        const char *body;
        int code;
    } cases[] = {
        {"{}", IDEM_ENOTFOUND},
        {"{\"ConsumedCapacity\":{\"CapacityUnits\":1}}", IDEM_ENOTFOUND},
        {"{\"Item\":null}", IDEM_ECORRUPT},
        {"{\"Item\":{}}", IDEM_ECORRUPT},
        {"{\"Item\":[]}", IDEM_ECORRUPT},
        {"{\"Item\":\"item\"}", IDEM_ECORRUPT},
        {"{\"item\":{}}", IDEM_ECORRUPT},
        {"{\"ConsumedCapacity\":{},\"Items\":[]}", IDEM_ECORRUPT},
    };

    EACH(row, cases) {
        struct idem_op op = wire_op(IDEM_OP_GET, "k", 'a');

        wire_init(&wire, true);
        wire_start(&wire, &op);
        wire_answer(&wire.task.request, 200, idem_str(row->body));
        idem__flight_answered(&wire.task.base, &wire.now);
        assert_int_equal(wire.task.base.next, IDEM__FLIGHT_DONE);
        assert_code(row->code, op.error.code);
        idem__task_reset(&wire.task);
        wire_free(&op);
        wire_finish(&wire);
    }
}

/* Of two copies of one write the second is refused because the first was applied;
 * whoever gives up then cannot say that nothing was done. */
TEST_WIRE(task, knowsThatACopyMayHaveBeenApplied)
{
    struct idem_op op = wire_op(IDEM_OP_RENEW, "k", 'a');

    assert_int_equal(begin('a', &op.fence), IDEM_STARTED);
    op.u.renew.lease_ms = 90000;
    wire_pass(&wire, 1000);
    wire_start(&wire, &op);
    wire_carry(&wire.table, &wire.task.request, FATE_TWICE);
    wire_pass(&wire, 1000);
    idem__flight_answered(&wire.task.base, &wire.now);
    assert_int_equal(wire.task.base.next,
                     IDEM__FLIGHT_SEND); /* A longer lease. */
    wire_step(&wire, FATE_NOT_SENT);
    idem__flight_give_up(&wire.task.base);
    assert_code(IDEM_EUNKNOWN, op.error.code);
    idem__task_reset(&wire.task);
    wire_free(&op);
}

/* Once a copy of a write may have been applied, no refusal of a later request says
 * that nothing was done. */
TEST(task, deniesNothingThatMayHaveBeenDone)
{
    static const char denied[] =
        "{\"__type\":\"com.amazon.coral.service#AccessDeniedException\"}";
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'a');
    int lost;

    for (lost = 0; lost < 2; lost++) {
        wire_init(&wire, true);
        wire_start(&wire, &op);
        if (lost) {
            wire_step(&wire, FATE_ANSWER_LOST);
            assert_int_equal(wire.task.base.next, IDEM__FLIGHT_PAUSE);
            idem__flight_resume(&wire.task.base, &wire.now);
        }
        wire_answer(&wire.task.request, 400, idem_str(denied));
        idem__flight_answered(&wire.task.base, &wire.now);
        assert_int_equal(wire.task.base.next, IDEM__FLIGHT_DONE);
        assert_code(lost ? IDEM_EUNKNOWN : IDEM_EDENIED, op.error.code);
        idem__task_reset(&wire.task);
        wire_free(&op);
        wire_finish(&wire);
    }
}

/* Of two copies of one write the second is denied after the first was applied: the error
 * names the cause, and does not say that nothing was done. */
TEST_WIRE(task, deniesNothingThatACopyMayHaveDone)
{
    static const char denied[] =
        "{\"__type\":\"com.amazon.coral.service#AccessDeniedException\"}";
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'a');

    wire_start(&wire, &op);
    wire_carry(&wire.table, &wire.task.request, FATE_TWICE);
    wire_answer(&wire.task.request, 400, idem_str(denied));
    wire.task.request.sends = 2;
    idem__flight_answered(&wire.task.base, &wire.now);
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_PAUSE);
    idem__flight_resume(&wire.task.base, &wire.now);
    wire_answer(&wire.task.request, 400, idem_str(denied));
    idem__flight_answered(&wire.task.base, &wire.now);
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_DONE);
    assert_code(IDEM_EUNKNOWN, op.error.code);
    assert_non_null(strstr(op.error.text, "AccessDenied"));
    idem__task_reset(&wire.task);
    wire_free(&op);
}

/* An import that finds another record of the key past its retention gets a fence
 * above that one's. Its result is named after its fence, and so is written again. */
TEST_WIRE(task, writesABodyAgainUnderAnotherName)
{
    struct idem_op op = wire_op(IDEM_OP_IMPORT, "k", 'i');
    struct idem_op get = wire_op(IDEM_OP_GET, "k", 'b');
    struct idem_record record;
    struct idem_slice result = {wire.scratch, 5000};
    uint8_t bytes[5000];
    uint64_t seed = 11;
    uint64_t fence;

    random_fill(&seed, bytes, sizeof(bytes));
    result.base = bytes;
    assert_int_equal(begin('a', &fence), IDEM_STARTED);
    assert_ok(complete('a', fence, result));
    wire_run(&wire, &get);
    record = *get.record;
    record.fence = fence - 5;
    record.expires_ms = IDEM_NEVER;
    record.retention_ms = IDEM_NEVER;
    record.result.bytes = result;
    wire_pass(&wire, 2 * 86400000);
    op.u.import.record = &record;
    wire_run(&wire, &op);
    assert_ok(op.error.code);
    assert_true(op.u.import.added);
    wire_free(&get);
    wire_run(&wire, &get);
    assert_ok(get.error.code);
    assert_true(get.record->fence == fence + 1);
    assert_slice(get.record->result.bytes, result);
    wire_free(&get);
}

/* ---- Lists ---- */

static int count_record(void *ctx, int code, const struct idem_record *record)
{
    (void)record;
    assert_ok(code);
    ++*(size_t *)ctx;
    return 0;
}

/* A batch of heads of which the service leaves some out is asked for again. */
TEST(list, leavesNothingOutThatWasNotRead)
{
    enum {
        KEYS = 40 /* Some shards have several. */
    };
    struct idem_op op = {.verb = IDEM_OP_LIST};
    size_t seen = 0;
    int i;

    wire_init(&wire, false);
    for (i = 0; i < KEYS; i++) {
        struct idem_op claim = wire_op(IDEM_OP_BEGIN, "k", 'a');
        char key[8];

        (void)snprintf(key, sizeof(key), "k%d", i);
        claim.key = idem_str(key);
        assert_ok(idem_id(claim.scope, claim.key, claim.id));
        wire_run(&wire, &claim);
        wire_free(&claim);
    }
    op.u.list.filter.size = sizeof(op.u.list.filter);
    op.u.list.filter.any_scope = true;
    op.u.list.filter.statuses = 1u << IDEM_STATUS_IN_PROGRESS;
    op.u.list.each = count_record;
    op.u.list.ctx = &seen;
    op.u.list.limit = 100;
    while (!op.u.list.done) {
        wire_start(&wire, &op);
        wire.table.spare = 1;
        while (wire.task.base.next != IDEM__FLIGHT_DONE) {
            if (wire.task.base.next == IDEM__FLIGHT_PAUSE) {
                wire.table.spare = 0;
                idem__flight_resume(&wire.task.base, &wire.now);
                continue;
            }
            wire_step(&wire, FATE_GOOD);
        }
        assert_ok(op.error.code);
        idem__task_reset(&wire.task);
    }
    assert_int_equal(seen, KEYS);
    wire_finish(&wire);
}

/* ---- Clocks ---- */

/* What the clock may be off counts: a claim is extended if it may be too short. */
TEST_WIRE(clock, thatMayBeSlowExtendsItsClaim)
{
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'a');

    wire.now.store_err_ms = 2000;
    op.asked_boot_ms = wire.now.boot_ms;
    wire_start(&wire, &op);
    wire_carry(&wire.table, &wire.task.request, FATE_GOOD);
    wire.now.store_ms += 2500; /* Or 3500: then it is short by 1500. */
    wire.now.store_err_ms = 1000;
    idem__flight_answered(&wire.task.base, &wire.now);
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_SEND);
    wire_step(&wire, FATE_GOOD);
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_DONE);
    assert_true(op.record->lease_end_ms - op.record->lease_ms >=
                wire.now.store_ms + wire.now.store_err_ms - 1000);
    idem__task_reset(&wire.task);
    wire_free(&op);
}

/* Carries the next request of @op, which has this fate, after the pauses before it. */
static void carry(enum fate fate)
{
    while (wire.task.base.next == IDEM__FLIGHT_PAUSE) {
        idem__flight_resume(&wire.task.base, &wire.now);
    }
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_SEND);
    wire_step(&wire, fate);
}

/* A takeover that was not answered may be done yet, for as long as what it changes is
 * there. By a clock that was set back the lease of that is not over: nobody is told that
 * somebody works there, also not who asks once more. Once another has taken over, the
 * first takeover can no longer be done. */
TEST_WIRE(clock, thatIsSetBackSettlesNoTakeover)
{
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'a');
    unsigned i;

    assert_int_equal(begin('z', NULL), IDEM_STARTED);
    wire_pass(&wire, 120000);
    op.asked_boot_ms = wire.now.boot_ms;
    wire_start(&wire, &op);
    carry(FATE_GOOD); /* Refused: z has it. */
    carry(FATE_LOST);
    wire_pass(&wire, -100000);
    for (i = 0; i < 3; i++) {
        carry(FATE_GOOD);
        assert_int_equal(wire.task.base.next, IDEM__FLIGHT_PAUSE);
    }
    idem__flight_give_up(&wire.task.base);
    assert_code(IDEM_EUNKNOWN, op.error.code);
    idem__task_reset(&wire.task);

    memset(&op.error, 0, sizeof(op.error));
    wire_start(&wire, &op);
    carry(FATE_GOOD);
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_PAUSE);
    idem__flight_give_up(&wire.task.base);
    assert_code(IDEM_EUNAVAILABLE, op.error.code); /* This copy did nothing. */
    idem__task_reset(&wire.task);

    wire_pass(&wire, 100000);
    assert_int_equal(begin('b', NULL), IDEM_STARTED);
    memset(&op.error, 0, sizeof(op.error));
    wire_run(&wire, &op);
    assert_ok(op.error.code);
    assert_int_equal(op.verdict, IDEM_BUSY);
    wire_free(&op);
}

/* The claim of "a", by a clock that is @slow_ms slow, is on record, and its answer is here; the
 * op has not looked at it. */
static void claim_by_slow_clock(struct idem_op *op, int64_t slow_ms)
{
    wire.now.store_err_ms = 2000;
    op->asked_boot_ms = wire.now.boot_ms;
    wire_start(&wire, op);
    wire_carry(&wire.table, &wire.task.request, FATE_GOOD);
    wire.now.store_ms += slow_ms;
    wire.now.store_err_ms = 600;
}

/* Has @other begin "k" by @op, up to the pause before the write that ends what is there. */
static void come_to_the_end_of(struct idem__task *other, struct idem_op *op)
{
    static struct idem_store store = {.options = {.timeout_ms = 10000}};

    op->store = &store;
    op->u.begin.on_expired_lease = IDEM_HOLD;
    other->base.op = op;
    idem__flight_start(&other->base, &wire.now);
    wire_carry(&wire.table, &other->request, FATE_GOOD);
    idem__flight_answered(&other->base, &wire.now);
    assert_int_equal(other->base.next, IDEM__FLIGHT_PAUSE);
    assert_true(other->base.pause_ms > 0 && other->base.pause_ms <= 200);
}

/* Another finds a claim whose lease is over by hours, and waits for a moment before it ends
 * it. When the owner has mended the claim by then, it is BUSY, and nobody is called. */
TEST_WIRE(clock, thatIsSlowIsWaitedFor)
{
    struct idem__task other = {.env = NULL};
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'a');
    struct idem_op late = wire_op(IDEM_OP_BEGIN, "k", 'b');

    idem__task_init(&other, &wire.env);
    claim_by_slow_clock(&op, 3600000);
    wire.now.boot_id[0]++; /* The other is on another host. */
    come_to_the_end_of(&other, &late);
    wire.now.boot_id[0]--;
    idem__flight_answered(&wire.task.base, &wire.now);
    wire_step(&wire, FATE_GOOD);
    assert_int_equal(op.verdict, IDEM_STARTED);
    wire.now.boot_id[0]++;
    idem__flight_resume(&other.base, &wire.now);
    wire_carry(&wire.table, &other.request, FATE_GOOD);
    idem__flight_answered(&other.base, &wire.now);
    assert_int_equal(other.base.next, IDEM__FLIGHT_DONE);
    assert_int_equal(late.verdict, IDEM_BUSY);
    assert_false(late.changed);
    wire_free(&op);
    wire_free(&late);
    idem__task_free(&other);
}

/* An owner that is slower than that finds its claim ended as unknown, and takes it back, in
 * as many requests as mending it takes when it is refused. */
TEST_WIRE(clock, thatIsSlowTakesItsClaimBack)
{
    struct idem__task other = {.env = NULL};
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'a');
    struct idem_op late = wire_op(IDEM_OP_BEGIN, "k", 'b');
    uint64_t fence;

    idem__task_init(&other, &wire.env);
    claim_by_slow_clock(&op, 3600000);
    wire.now.boot_id[0]++;
    come_to_the_end_of(&other, &late);
    idem__flight_resume(&other.base, &wire.now);
    wire_carry(&wire.table, &other.request, FATE_GOOD);
    idem__flight_answered(&other.base, &wire.now);
    assert_int_equal(other.base.next, IDEM__FLIGHT_DONE);
    assert_int_equal(late.verdict, IDEM_UNKNOWN);
    fence = late.record->fence;
    wire.now.boot_id[0]--;
    idem__flight_answered(&wire.task.base, &wire.now);
    wire_step(&wire, FATE_GOOD); /* Refused. */
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_SEND);
    wire_step(&wire, FATE_GOOD);
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_DONE);
    assert_ok(op.error.code);
    assert_int_equal(op.verdict, IDEM_STARTED);
    assert_int_equal(op.record->fence, fence);
    assert_int_equal(op.record->attempts, 1);
    assert_true(op.record->lease_end_ms >=
                wire.now.store_ms + op.record->lease_ms);
    idem__task_reset(&wire.task);
    assert_ok(complete('a', op.record->fence, idem_str("x")));
    wire_free(&op);
    wire_free(&late);
    idem__task_free(&other);
}

/* Nobody looks at the answer of a write, and it may have been applied; a task that
 * is used again knows nothing of it. */
TEST_WIRE(clock, thatIsAwayLeavesAWriteUnknown)
{
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", 'a');

    wire_start(&wire, &op);
    wire_carry(&wire.table, &wire.task.request, FATE_GOOD);
    idem__flight_no_clock(&wire.task.base);
    assert_int_equal(wire.task.base.next, IDEM__FLIGHT_DONE);
    assert_code(IDEM_EUNKNOWN, op.error.code);
    idem__task_reset(&wire.task);

    wire.task.base.op = &op;
    idem__flight_no_clock(&wire.task.base);
    assert_code(IDEM_EUNAVAILABLE, op.error.code);
    idem__task_reset(&wire.task);

    wire_start(&wire, &op);
    wire_carry(&wire.table, &wire.task.request, FATE_NOT_SENT);
    idem__flight_no_clock(&wire.task.base);
    assert_code(IDEM_EUNAVAILABLE, op.error.code);
    idem__task_reset(&wire.task);
    wire_free(&op);
}

/* ROW(30) A record that its ttl has not deleted yet is past its retention all the
 * same, and its fence is not undercut; ROW(29) one that was deleted between two
 * looks is new. */
TEST_WIRE(ttl, mayBeLateOrSoon)
{
    uint64_t fence;
    uint64_t again;

    assert_int_equal(begin('a', &fence), IDEM_STARTED);
    assert_ok(complete('a', fence, idem_str("x")));
    wire_pass(&wire, 86400000 + 172800000);
    assert_int_equal(begin('b', &again), IDEM_STARTED);
    assert_true(again > fence);
    json_object_object_foreach(wire.table.items, id, item)
    {
        (void)item;
        json_object_object_del(wire.table.items, id);
        break;
    }
    wire.now.store_ms += 1;
    assert_int_equal(begin('c', &fence), IDEM_STARTED);
    assert_true(fence > again);
}
