/* The parts of bodies stay as long as a head names them, and go soon after it:
 * by their ttl, by the next life of the key, or by a purge. TTL is acted out here
 * by deleting what it would delete. */
#include "base/heap.h"
#include "host.h"
#include "sample.h"
#include "test.h"
#include "wire.h"

#include <stdlib.h>

#define HOUR_MS ((int64_t)3600 * 1000)
#define DAY_MS (24 * HOUR_MS)

static struct wire wire;
static uint8_t bytes[30 * IDEM__PART_LEN];

static void set_up(bool claims)
{
    static bool filled;
    uint64_t seed = 3;

    wire_init(&wire, claims);
    if (!filled) { /* They stay the same, and are 11 MB. */
        random_fill(&seed, bytes, sizeof(bytes));
        filled = true;
    }
}

#define TEST_WIRE(suite, condition)                                            \
    TEST_BETWEEN(suite, condition, set_up(true), wire_finish(&wire))

/* ---- Ops ---- */

static int run(struct idem_op *op)
{
    wire_run(&wire, op);
    if (op->has_record) {
        op->fence = op->record->fence;
    }
    wire_free(op);
    return op->error.code;
}

static struct idem_op begin_op(char who, enum idem_on_expired_lease policy,
                               size_t len)
{
    struct idem_op op = wire_op(IDEM_OP_BEGIN, "k", who);

    op.u.begin.on_expired_lease = policy;
    op.u.begin.input = idem_bytes(bytes, len);
    return op;
}

static uint64_t begin(char who, enum idem_on_expired_lease policy, size_t len)
{
    struct idem_op op = begin_op(who, policy, len);

    assert_ok(run(&op));
    assert_int_equal(op.verdict, IDEM_STARTED);
    return op.fence;
}

static int end(char who, uint64_t fence, enum idem_status status, size_t len)
{
    struct idem_op op = wire_op(IDEM_OP_END, "k", who);

    op.fence = fence;
    op.u.end.status = status;
    op.u.end.result.bytes = idem_bytes(bytes, len);
    return run(&op);
}

static void resolve_released(uint64_t fence)
{
    struct idem_op op = wire_op(IDEM_OP_RESOLVE, "k", 'p');

    op.fence = fence;
    op.u.resolve.who = idem_str("ann");
    op.u.resolve.outcome.status = IDEM_STATUS_RELEASED;
    assert_ok(run(&op));
}

static uint64_t purge(void)
{
    struct idem_op op = wire_op(IDEM_OP_PURGE, "none", 'p');

    op.u.purge.max = 100;
    while (!op.u.purge.done) {
        assert_ok(run(&op));
    }
    return op.u.purge.purged;
}

/* ---- The table ---- */

static int64_t ttl_of(json_object *item)
{
    struct idem_slice text;

    return idem__json_attribute(item, "ttl", "N", &text) == 1
               ? strtoll(text.base, NULL, 10) * 1000
               : IDEM_NEVER;
}

/* What TTL would have deleted by now. */
static void act_out_ttl(void)
{
    json_object *items = wire.table.items;
    bool again = true;

    while (again) {
        again = false;
        json_object_object_foreach(items, id, item)
        {
            if (ttl_of(item) < wire.now.store_ms) {
                json_object_object_del(items, id);
                again = true;
                break;
            }
        }
    }
}

static size_t parts(char kind)
{
    char mark[] = {'#', kind, '#', '\0'};
    size_t n = 0;

    json_object_object_foreach(wire.table.items, id, item)
    {
        (void)item;
        n += strstr(id, mark) != NULL;
    }
    return n;
}

static void check_body(const struct idem__item *item, char kind,
                       const struct idem__body *body, int64_t head_ttl_ms)
{
    char name[IDEM__PART_NAME_MAX];
    uint32_t i;

    for (i = 0; body->place == IDEM__PLACE_APART && i < body->parts; i++) {
        int64_t ttl_ms;

        idem__part_name(item->record.id, kind, body->tag, i, name);
        assert_non_null(table_item(&wire.table, name));
        ttl_ms = ttl_of(table_item(&wire.table, name));
        if (head_ttl_ms == IDEM_NEVER ? ttl_ms != IDEM_NEVER
                                      : ttl_ms < head_ttl_ms + DAY_MS) {
            fail_with("%c part: %lld after its head", kind,
                      (long long)(ttl_ms - head_ttl_ms));
        }
    }
}

/* Each part that a head names is there, and for a day longer than the head. */
static void check_heads(void)
{
    json_object_object_foreach(wire.table.items, id, object)
    {
        struct idem__buffer memory = {.len = 0};
        struct idem_error error;
        struct idem__item item;

        if (strchr(id, '#') == NULL) {
            assert_ok(idem__item_read(object, NULL, &memory, &item, &error));
            check_body(&item, 'r', &item.result, ttl_of(object));
            check_body(&item, 'i', &item.input, ttl_of(object));
        }
        idem__buffer_free(&memory);
    }
}

/* ---- Inputs ---- */

/* Under rerun everything is gone once TTL has had its time, whether the attempt was
 * ended or just stopped. */
TEST(input, goesWithItsHead)
{
    int ended;

    for (ended = 0; ended < 2; ended++) {
        uint64_t fence;

        set_up(true);
        fence = begin('a', IDEM_RERUN, 5000);
        assert_int_equal(parts('i'), 1);
        if (ended) {
            assert_ok(end('a', fence, IDEM_STATUS_COMPLETED, 10));
        }
        check_heads();
        wire_pass(&wire, 5 * DAY_MS);
        act_out_ttl();
        assert_int_equal(table_len(&wire.table), 0);
        wire_finish(&wire);
    }
}

/* Under hold a record never goes while it is open, so its input has no ttl until
 * the record is completed. */
TEST_WIRE(input, ofAHeldRecordIsGivenAnEndWithIt)
{
    uint64_t fence = begin('a', IDEM_HOLD, 5000);

    wire_pass(&wire, 1000 * DAY_MS);
    act_out_ttl();
    check_heads();
    assert_int_equal(parts('i'), 1);
    assert_ok(end('a', fence, IDEM_STATUS_COMPLETED, 10));
    check_heads();
    assert_int_equal(parts('i'), 1);
    wire_pass(&wire, 5 * DAY_MS);
    act_out_ttl();
    assert_int_equal(table_len(&wire.table), 0);
}

/* What failed never expires; its input had a ttl, and must lose it before the head
 * says so. */
TEST_WIRE(input, livesAsLongAsAFailure)
{
    struct idem_op op = wire_op(IDEM_OP_GET, "k", 'b');
    uint64_t fence = begin('a', IDEM_RERUN, 2 * IDEM__PART_LEN);

    assert_ok(end('a', fence, IDEM_STATUS_FAILED, 10));
    check_heads();
    wire_pass(&wire, 1000 * DAY_MS);
    act_out_ttl();
    wire_run(&wire, &op);
    assert_ok(op.error.code);
    assert_slice(op.record->input, idem_bytes(bytes, 2 * IDEM__PART_LEN));
    wire_free(&op);
}

/* Work that is renewed for days keeps its input, which is written again once a day
 * and not with each renewal. */
TEST_WIRE(input, outlivesRenewals)
{
    struct idem_op op = wire_op(IDEM_OP_RENEW, "k", 'a');
    int hour;

    op.fence = begin('a', IDEM_RERUN, 5000);
    wire.requests = 0;
    wire.log[0] = '\0';
    for (hour = 0; hour < 96; hour++) {
        wire_pass(&wire, HOUR_MS);
        op.u.renew.lease_ms = 2 * HOUR_MS;
        assert_ok(run(&op));
        check_heads();
    }
    assert_true(wire.requests <= 96 + 4 * 2);
}

/* An input that is lost does not keep its owner from ending the attempt. */
TEST_WIRE(input, thatIsLostCostsNobodyHisOutcome)
{
    uint64_t fence = begin('a', IDEM_RERUN, 5000);

    json_object_object_foreach(wire.table.items, id, item)
    {
        (void)item;
        if (strstr(id, "#i#") != NULL) {
            json_object_object_del(wire.table.items, id);
            break;
        }
    }
    assert_ok(end('a', fence, IDEM_STATUS_FAILED, 10));
}

/* ---- Bodies that are replaced ---- */

/* A key past its retention is used again: the bodies of its former life go. */
TEST(body, ofAFormerLifeGoes)
{
    static const unsigned spares[] = {0,
                                      7}; /* A batch may not be done whole. */
    size_t i;

    for (i = 0; i < COUNT(spares); i++) {
        uint64_t fence;

        set_up(true);
        fence = begin('a', IDEM_RERUN, 30 * IDEM__PART_LEN);
        assert_ok(end('a', fence, IDEM_STATUS_COMPLETED, 28 * IDEM__PART_LEN));
        assert_int_equal(parts('i'), 30);
        assert_int_equal(parts('r'), 28);
        wire_pass(&wire, DAY_MS + HOUR_MS);
        wire.table.spare = spares[i];
        (void)begin('b', IDEM_RERUN, 0);
        assert_int_equal(parts('i'), 0);
        assert_int_equal(parts('r'), 0);
        wire_finish(&wire);
    }
}

/* The large result of failed work goes once a person has let it run again. */
TEST_WIRE(body, ofResolvedFailureGoes)
{
    uint64_t fence = begin('a', IDEM_RERUN, 0);

    assert_ok(end('a', fence, IDEM_STATUS_FAILED, 5000));
    assert_int_equal(parts('r'), 1);
    resolve_released(fence);
    (void)begin('b', IDEM_RERUN, 0);
    assert_int_equal(parts('r'), 0);
}

/* Other numbers each time. */
static int count_up(void *ctx, void *buf, size_t len)
{
    static uint8_t calls;

    (void)ctx;
    memset(buf, ++calls, len);
    return 0;
}

/* A head that was not answered may have been written, and replaced by another's since,
 * which deletes the parts that it named, at any time. So they are written once more, and
 * not under the same names. */
TEST_WIRE(body, ofAHeadThatWasNotAnsweredIsWrittenOnceMore)
{
    uint64_t fence;

    wire.env.base.host.random = count_up;
    fence = begin('a', IDEM_RERUN, 0);
    wire.fates[wire.requests + 1] = FATE_LOST; /* The head. */
    assert_ok(end('a', fence, IDEM_STATUS_COMPLETED, 5000));
    assert_int_equal(parts('r'), 2);
    check_heads();
}

/* A takeover keeps the input unless it brings its own. */
TEST_WIRE(body, ofATakeoverIsTheNewOne)
{
    (void)begin('a', IDEM_RERUN, 5000);
    wire_pass(&wire, 2 * HOUR_MS);
    (void)begin('b', IDEM_RERUN, 0);
    assert_int_equal(parts('i'), 1);
    wire_pass(&wire, 2 * HOUR_MS);
    (void)begin('c', IDEM_RERUN, 6000);
    assert_int_equal(parts('i'), 1);
    check_heads();
}

/* Tidying is no part of the op: it is answered alike if that fails. */
TEST(body, thatCannotBeDeletedCostsNobodyHisClaim)
{
    int fate;

    for (fate = FATE_NOT_SENT; fate < FATES; fate++) {
        uint64_t fence;

        set_up(true);
        fence = begin('a', IDEM_RERUN, 0);
        assert_ok(end('a', fence, IDEM_STATUS_COMPLETED, 5000));
        wire_pass(&wire, DAY_MS + HOUR_MS);
        wire.requests = 0;
        wire.fates[2] = (enum fate)fate; /* After two writes of the head. */
        (void)begin('b', IDEM_RERUN, 0);
        assert_int_equal(wire.requests, 3);
        wire_finish(&wire);
    }
}

/* A reader that comes between a head and its parts, which another has just
 * replaced, is told of the new head. */
TEST_WIRE(body, thatIsReplacedWhileItIsReadIsNotDamage)
{
    struct idem_op op = begin_op('r', IDEM_RERUN, 0);
    struct idem__claims *none = NULL;
    struct wire other;
    uint64_t fence = begin('a', IDEM_RERUN, 0);

    assert_ok(end('a', fence, IDEM_STATUS_FAILED, 5000));
    memset(&op.error, 0, sizeof(op.error));
    op.asked_boot_ms = wire.now.boot_ms;
    wire_start(&wire, &op);
    wire_step(&wire, FATE_GOOD); /* Now it wants the part. */
    assert_string_equal(strchr(wire.task.request.target, '.') + 1,
                        "BatchGetItem");

    other = wire; /* Another host, on the same table. */
    memset(&wire.task, 0, sizeof(wire.task));
    wire.env.base.claims = none;
    idem__task_init(&wire.task, &wire.env);
    resolve_released(fence);
    (void)begin('b', IDEM_RERUN, 0);
    idem__task_free(&wire.task);
    wire.task = other.task;
    wire.env.base.claims = other.env.base.claims;

    while (wire.task.base.next != IDEM__FLIGHT_DONE) {
        wire_step(&wire, FATE_GOOD);
    }
    assert_ok(op.error.code);
    assert_int_equal(op.verdict, IDEM_BUSY);
    idem__task_reset(&wire.task);
    wire_free(&op);
}

/* ---- Orphans ---- */

static const char orphan_name[] =
    "0000000000000000000000000000000000000000000000000000000000000001"
    "#i#00000000000000000000000000000002#0";

static void add_orphan(int64_t made_ms)
{
    char text[256];
    int rc;

    (void)snprintf(text, sizeof(text),
                   "{\"id\":{\"S\":\"%s\"},\"body\":{\"B\":\"AAAA\"},"
                   "\"made\":{\"N\":\"%lld\"}}",
                   orphan_name, (long long)made_ms);
    (void)json_object_object_add(wire.table.items, orphan_name,
                                 idem__json_parse(idem_str(text), &rc));
}

/* A purge deletes parts that no head names, a day after they were written, and no
 * part that one names. */
TEST_WIRE(orphan, isPurgedAfterADay)
{
    uint64_t parts = 0;
    uint64_t fence;

    wire.env.parts_purged = &parts;
    fence = begin('a', IDEM_HOLD, 5000);
    assert_ok(end('a', fence, IDEM_STATUS_FAILED, 6000));
    add_orphan(wire.now.store_ms);
    wire_pass(&wire, DAY_MS - 1000);
    assert_int_equal(purge(), 0);
    assert_int_equal(table_len(&wire.table), 4);
    wire_pass(&wire, 2000);
    assert_int_equal(purge(), 0);
    assert_int_equal(parts, 1);
    assert_int_equal(table_len(&wire.table), 3);
    check_heads();
}

/* A purge counts the units of the heads that it reads strongly. */
TEST_WIRE(orphan, isLookedUpForUnits)
{
    struct idem_op op = wire_op(IDEM_OP_PURGE, "none", 'p');

    add_orphan(wire.now.store_ms);
    wire_pass(&wire, DAY_MS + 1000);
    op.u.purge.max = 100;
    assert_ok(run(&op));
    /* One head at a unit, in halves; the table reports no units for pages. */
    assert_int_equal(op.u.purge.from[IDEM__PURGE_READ], 2);
}

/* An outcome from a journal writes its parts again, days later: a purge that has
 * seen the old ones leaves them alone. */
TEST_WIRE(orphan, thatIsWrittenAgainIsLeftAlone)
{
    struct idem_op op = wire_op(IDEM_OP_PURGE, "none", 'p');

    add_orphan(wire.now.store_ms);
    wire_pass(&wire, 2 * DAY_MS);
    op.u.purge.max = 100;
    wire_start(&wire, &op);
    while (wire.task.base.next != IDEM__FLIGHT_DONE) {
        if (strstr(wire.task.request.target, "DeleteItem") != NULL) {
            add_orphan(wire.now.store_ms);
        }
        wire_step(&wire, FATE_GOOD);
    }
    assert_ok(op.error.code);
    assert_non_null(table_item(&wire.table, orphan_name));
    idem__task_reset(&wire.task);
}

/* ---- Anything ---- */

static struct {
    char who;
    uint64_t fence;
} held;

static void any_op(uint64_t *seed, char who)
{
    static const enum idem_status ends[] = {IDEM_STATUS_COMPLETED,
                                            IDEM_STATUS_FAILED,
                                            IDEM_STATUS_UNKNOWN,
                                            IDEM_STATUS_RELEASED};
    static const size_t lens[] = {0, 50, 5000, IDEM__PART_LEN + 1};
    struct idem_op op;
    uint8_t draw[4];

    random_fill(seed, draw, sizeof(draw));
    switch (draw[0] % 4) {
    case 0:
    case 1:
        op = begin_op(who, draw[1] % 2 == 0 ? IDEM_HOLD : IDEM_RERUN,
                      lens[draw[2] % 4]);
        if (run(&op) == 0 && op.verdict == IDEM_STARTED) {
            held.who = who;
            held.fence = op.fence;
        }
        break;
    case 2:
        (void)end(held.who, held.fence, ends[draw[1] % 4], lens[draw[2] % 4]);
        break;
    case 3:
        op = wire_op(IDEM_OP_RESOLVE, "k", who);
        op.fence = held.fence;
        op.u.resolve.who = idem_str("ann");
        op.u.resolve.outcome.status = ends[draw[1] % 4];
        (void)run(&op);
        break;
    }
    wire_pass(&wire, draw[3] % 8 == 0 ? 30 * HOUR_MS : draw[3] * 1000);
}

/* Whatever is done, and whatever becomes of its requests, a head never names parts
 * that are not there or that go before it; and a purge finds all others. */
TEST(lifetime, holdsForAnythingThatIsDone)
{
    uint64_t seed;

    for (seed = 1; seed <= 60; seed++) {
        uint64_t state = seed;
        int i;

        set_up(seed % 2 == 0);
        memset(&held, 0, sizeof(held));
        for (i = 0; i < 12; i++) {
            uint8_t fates[64];
            size_t n;

            random_fill(&state, fates, sizeof(fates));
            for (n = 0; n < COUNT(wire.fates); n++) {
                wire.fates[n] = fates[n] % 8 == 0
                                    ? (enum fate)(fates[n] / 8 % FATES)
                                    : FATE_GOOD;
            }
            wire.requests = 0;
            wire.log[0] = '\0';
            any_op(&state, (char)('A' + i));
            check_heads();
            act_out_ttl();
            check_heads();
        }
        memset(wire.fates, 0, sizeof(wire.fates));
        wire_pass(&wire, 25 * HOUR_MS);
        (void)purge();
        check_heads();
        wire_pass(&wire, 3000 * DAY_MS);
        act_out_ttl();
        (void)purge();
        check_heads();
        wire_finish(&wire);
    }
}
