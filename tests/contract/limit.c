/* Rate limits: a request counts once. */
#include "contract.h"

#include "threads.h"

#include <idem/limit.h>
#include <idem/operator.h>
#include <idem/queue.h>
#include <stdlib.h>

static const int64_t DAY_MS = IDEM_LIMIT_DAY;

/* Returns a request of u1 now, in a window of a day. */
static struct idem_limit_request ask(struct fixture *f, const char *request,
                                     uint64_t max)
{
    struct idem_limit_request limit = IDEM_LIMIT_INIT;

    limit.name = idem_str("uploads");
    limit.subject = idem_str("u1");
    limit.request = idem_str(request);
    limit.at_ms = store_ms(f->store);
    limit.per_ms = DAY_MS;
    limit.max = max;
    return limit;
}

static struct idem_limited answer(struct idem_store *store,
                                  const struct idem_limit_request *limit)
{
    struct idem_limited limited;

    assert_ok(idem_limit(store, limit, &limited, &why));
    return limited;
}

static void expect_limited_by(struct idem_store *store,
                              const struct idem_limit_request *limit,
                              bool admitted, uint64_t remaining, bool repeated)
{
    struct idem_limited limited = answer(store, limit);

    if (limited.admitted != admitted || limited.remaining != remaining ||
        limited.repeated != repeated) {
        fail_with("%.*s: admitted %d, remaining %llu, repeated %d",
                  (int)limit->request.len, (const char *)limit->request.base,
                  limited.admitted, (unsigned long long)limited.remaining,
                  limited.repeated);
    }
}

static void expect_limited(struct fixture *f,
                           const struct idem_limit_request *limit,
                           bool admitted, uint64_t remaining, bool repeated)
{
    expect_limited_by(f->store, limit, admitted, remaining, repeated);
}

/* Eight of eight requests are admitted, and each gets the number that is left; the ninth is
 * refused; and each gets the same decision whenever it asks again. */
TEST_VIRTUAL(limit, countsEachRequestOnce)
{
    unsigned round;
    unsigned n;
    struct idem_limit_request limit = ask(f, "", 8);

    for (n = 0; n < 8; n++) {
        limit.request = idem_str(numbered("r", n));
        expect_limited(f, &limit, true, 7 - n, false);
        expect_limited(f, &limit, true, 7 - n, true);
    }
    for (round = 0; round < 3; round++) {
        limit.request = idem_str(numbered("r", 8 + round));
        expect_limited(f, &limit, false, 0, false);
        for (n = 0; n < 8; n++) {
            limit.request = idem_str(numbered("r", n));
            expect_limited(f, &limit, true, 7 - n, true);
        }
    }
}

/* The time of the event selects the window: a request that is repeated after midnight gets
 * the same decision, and one of the new day begins a new count. */
TEST_VIRTUAL(limit, cutsTheWindowFromTheEvent)
{
    struct idem_limited again;
    int64_t midnight_ms;
    struct idem_limit_request limit = ask(f, "r1", 1);
    struct idem_limited first = answer(f->store, &limit);

    assert_int_equal(first.end_ms - first.start_ms, DAY_MS);
    assert_int_equal(first.start_ms % DAY_MS, 0);
    assert_true(first.start_ms <= limit.at_ms && limit.at_ms < first.end_ms);
    midnight_ms = first.end_ms;
    host_pass(&f->host, midnight_ms - limit.at_ms + 1000);
    again = answer(f->store, &limit);
    assert_true(again.admitted);
    assert_true(again.repeated);
    assert_int_equal(again.remaining, first.remaining);
    assert_int_equal(again.start_ms, first.start_ms);
    limit.request = idem_str("r2");
    expect_limited(f, &limit, false, 0, false); /* Of yesterday. */
    limit.at_ms = midnight_ms - 1;
    expect_limited(f, &limit, false, 0, false);
    limit.at_ms = midnight_ms;
    expect_limited(f, &limit, true, 0, false);
    limit.request = idem_str("r1");
    expect_limited(f, &limit, false, 0, false); /* Another window. */
}

/* Another name, subject, max, length or begin is another limit. */
TEST_VIRTUAL(limit, keepsLimitsApart)
{
    struct idem_limit_request limits[5];
    struct idem_limited window;
    int round;

    EACH(limit, limits) {
        *limit = ask(f, "r1", 3);
    }
    limits[1].name = idem_str("downloads");
    limits[2].subject = idem_str("u2");
    limits[3].per_ms = 7 * DAY_MS;
    limits[4].start_ms = limits[4].at_ms - 100; /* As a calendar has it. */
    limits[4].per_ms = DAY_MS - IDEM_LIMIT_HOUR;
    for (round = 0; round < 2; round++) {
        EACH(row, limits) {
            expect_limited(f, row, true, row->max - 1, round == 1);
        }
    }
    limits[4].request = idem_str("r2");
    limits[4].at_ms += 1000;
    window = answer(f->store, &limits[4]);
    assert_int_equal(window.remaining, 1); /* Of the same. */
    assert_int_equal(window.start_ms, limits[4].start_ms);
    assert_int_equal(window.end_ms, window.start_ms + limits[4].per_ms);
}

/* Costs are counted. A request whose cost is too great leaves room for smaller ones, and is
 * still told the count at its own time. The same holds for a limit that is counted in
 * pieces, of which no single one has room for such a cost. */
TEST(limit, countsCosts)
{
    static const uint64_t scales[] = {1, 100};

    EACH(one, scales) {
        uint64_t scale = *one;
        struct fixture f;
        struct idem_limit_request limit;
        struct idem_limit_request great;

        open_virtual(&f);
        limit = ask(&f, "r1", 10 * scale);
        limit.cost = 4 * scale;
        expect_limited(&f, &limit, true, 6 * scale, false);
        great = ask(&f, "great", 10 * scale);
        great.cost = 7 * scale;
        expect_limited(&f, &great, false, 6 * scale, false);
        limit.request = idem_str("r2");
        limit.cost = 6 * scale;
        expect_limited(&f, &limit, true, 0, false);
        expect_limited(&f, &great, false, 6 * scale, true);
        expect_limited(&f, &limit, true, 0, true);
        limit.request = idem_str("r3");
        limit.cost = 1;
        expect_limited(&f, &limit, false, 0, false);
        finish(&f);
    }
}

/* A window remembers so many refusals of that kind and no more; all are refused. */
TEST_VIRTUAL(limit, remembersSoManyRefusals)
{
    struct idem_limited limited;
    unsigned n;
    struct idem_limit_request limit = ask(f, "first", 10);

    limit.cost = 9;
    expect_limited(f, &limit, true, 1, false);
    limit.cost = 2;
    for (n = 0; n < IDEM_LIMIT_REFUSALS + 3; n++) {
        limit.request = idem_str(numbered("r", n));
        expect_limited(f, &limit, false, 1, false);
    }
    limit.request = idem_str("last");
    limit.cost = 1;
    expect_limited(f, &limit, true, 0, false);
    limit.cost = 2;
    for (n = 0; n < IDEM_LIMIT_REFUSALS + 3; n++) {
        limit.request = idem_str(numbered("r", n));
        limited = answer(f->store, &limit);
        assert_false(limited.admitted);
        assert_int_equal(limited.repeated, n < IDEM_LIMIT_REFUSALS);
        assert_int_equal(limited.remaining, n < IDEM_LIMIT_REFUSALS);
    }
}

/* A decision stays while a request may ask for it; some time later, newer requests or a
 * purge delete it. */
TEST_VIRTUAL(limit, forgetsWindowsThatAreOver)
{
    struct idem_limited limited;
    unsigned round;
    struct idem_limit_request limit = ask(f, "r1", 2);

    limit.per_ms = IDEM_LIMIT_MINUTE;
    limit.late_ms = IDEM_LIMIT_MINUTE;
    expect_limited(f, &limit, true, 1, false);
    limited = answer(f->store, &limit);
    host_pass(&f->host, limited.end_ms + limit.late_ms - limit.at_ms);
    expect_limited(f, &limit, true, 1, true);
    limit.request = idem_str("r2");
    expect_limited(f, &limit, true, 0, false);
    host_pass(&f->host, 20 * IDEM_LIMIT_MINUTE);
    limit.request = idem_str("r3");
    assert_code(IDEM_EINVALID, idem_limit(f->store, &limit, &limited, &why));
    assert_why("late");
    host_pass(&f->host, 10 * DAY_MS);
    if (traits()->file) {
        assert_int_equal(
            stored_number(f, "SELECT count(*) FROM idem_limit_request"), 2);
    }
    for (round = 0; round < 2; round++) {
        struct idem_limit_request later = ask(f, round == 0 ? "l1" : "l2", 2);

        expect_limited(f, &later, true, 1 - round, false);
    }
    if (traits()->file) {
        assert_int_equal(
            stored_number(f, "SELECT count(*) FROM idem_limit_request"), 2);
        assert_int_equal(
            stored_number(f, "SELECT count(*) FROM idem_limit_window"), 1);
    }
    host_pass(&f->host, 10 * DAY_MS);
    assert_ok(idem_purge(f->store, 0, NULL, &why));
    if (traits()->file) {
        assert_int_equal(
            stored_number(f, "SELECT count(*) FROM idem_limit_window"), 0);
        assert_int_equal(
            stored_number(f, "SELECT count(*) FROM idem_limit_request"), 0);
    }
    if (traits()->purge_lag_ms == 0) { /* A table's TTL does it there. */
        limit.request = idem_str("r1");
        assert_code(IDEM_EINVALID,
                    idem_limit(f->store, &limit, &limited, &why));
    }
}

/* A wall clock that jumps changes nothing that was decided. */
TEST_VIRTUAL(limit, standsWhenTheClockJumps)
{
    static const int64_t jumps[] = {-3600000, 3600000, -86400000, 86400000};
    struct idem_limit_request limit = ask(f, "r1", 5);

    expect_limited(f, &limit, true, 4, false);
    EACH(jump, jumps) {
        f->host.wall_ms += *jump;
        expect_limited(f, &limit, true, 4, true);
    }
}

/* A limit whose max changes in mid-window goes on with its count: a smaller max refuses until
 * there is room again, a larger one admits the difference, and each earlier request gets its
 * decision again. */
static void change_max(uint64_t few, uint64_t some, uint64_t many)
{
    struct fixture f;
    struct idem_limit_request limit;

    open_virtual(&f);
    limit = ask(&f, "first", some);
    limit.cost = few + 1;
    expect_limited(&f, &limit, true, some - few - 1, false);
    limit = ask(&f, "second", few);
    expect_limited(&f, &limit, false, 0, false);
    limit = ask(&f, "second", some);
    limit.cost = some - few - 1;
    expect_limited(&f, &limit, true, 0, false);
    limit = ask(&f, "third", some);
    expect_limited(&f, &limit, false, 0, false);
    limit.max = many;
    limit.cost = many - some;
    expect_limited(&f, &limit, true, 0, false);
    limit = ask(&f, "fourth", many);
    expect_limited(&f, &limit, false, 0, false);
    limit = ask(&f, "first", few);
    expect_limited(&f, &limit, true, some - few - 1, true);
    limit = ask(&f, "second", many);
    expect_limited(&f, &limit, true, 0, true);
    finish(&f);
}

TEST(limit, goesOnWithAnotherMax)
{
    change_max(5, 8, 12);
}

/* The same holds for a large limit. */
TEST(limit, goesOnWithAnotherLargeMax)
{
    change_max(300, 5000, 6000);
    change_max(300, 3000, 100000);
}

/* The same holds, in both directions, across the size above which a table moves the decisions
 * out of the item of the window. */
TEST(limit, goesOnAcrossTheBorder)
{
    change_max(5, 200, 1000);
    change_max(5, 1000, 2000);
    change_max(100, 128, 129);
    change_max(128, 300, 9000);
}

/* Callers with different numbers, in turns, each with its own handle. */
static void share(uint64_t one, uint64_t other)
{
    struct idem_limit_request limit;
    struct idem_store *stores[2];
    struct fixture f;
    unsigned i;

    open_virtual(&f);
    stores[0] = f.store;
    stores[1] = handle_open(&f, &f.options);
    for (i = 0; i < 100; i++) {
        uint64_t max = i % 2 == 0 ? one : other;

        limit = ask(&f, numbered("r", i), max);
        expect_limited_by(stores[i % 2], &limit, true, max - i - 1, false);
        limit.max = i % 2 == 0 ? other : one;
        expect_limited_by(stores[(i + 1) % 2], &limit, true, max - i - 1, true);
    }
    limit = ask(&f, "small", 100);
    expect_limited(&f, &limit, false, 0, false);
    limit = ask(&f, "large", 300);
    limit.cost = 201;
    expect_limited(&f, &limit, false, 200, false);
    limit.max = 100;
    limit.cost = 1;
    expect_limited(&f, &limit, false, 200, true);
    limit = ask(&f, "rest", 300);
    limit.cost = 200;
    expect_limited(&f, &limit, true, 0, false);
    handle_close(&f, stores[1]);
    finish(&f);
}

/* A max below that size and one above it share the count, and each request gets its first
 * decision from both. */
TEST(limit, isSharedAcrossTheBorder)
{
    share(100, 300);
    share(300, 100);
}

/* Records and limits stay apart: neither is listed, read or purged as the other. */
TEST_VIRTUAL(limit, keepsAwayFromRecords)
{
    struct idem_request request = claim("r1");
    struct idem_answer *none;
    uint64_t purged;
    struct idem_limit_request limit = ask(f, "r1", 300);

    expect_limited(f, &limit, true, 299, false);
    limit = ask(f, "r1", 5);
    limit.subject = idem_str("u2");
    expect_limited(f, &limit, true, 4, false);
    assert_int_equal(count(f->store, NULL), 0);
    assert_code(IDEM_ENOTFOUND,
                idem_get(f->store, idem_str(""), idem_str("r1"), &none, &why));
    expect(f->store, &request, IDEM_STARTED);
    assert_int_equal(count(f->store, NULL), 1);
    assert_ok(idem_purge(f->store, 0, &purged, &why));
    assert_int_equal(purged, 0);
    expect_limited(f, &limit, true, 4, true);
}

/* A read-only handle counts nothing, but still reports earlier decisions. */
TEST(limit, isNotForReaders)
{
    struct fixture f;
    struct idem_open_options options;
    struct idem_store *reader;
    struct idem_limit_request limit;
    struct idem_limited limited;

    open_virtual(&f);
    if (!is_durable()) {
        finish(&f);
        test_skip("this store has one handle");
    }
    limit = ask(&f, "r1", 8);
    expect_limited(&f, &limit, true, 7, false);
    options = f.options;
    options.flags |= IDEM_OPEN_READONLY;
    reader = handle_open(&f, &options);
    if (traits()->file) {
        limited = answer(reader, &limit);
        assert_true(limited.repeated);
    }
    limit.request = idem_str("r2");
    assert_code(IDEM_EDENIED, idem_limit(reader, &limit, &limited, &why));
    handle_close(&f, reader);
    expect_limited(&f, &limit, true, 6, false);
    finish(&f);
}

/* ---- Queues ---- */

/* A queue decides many requests together, and each gets its own decision. */
TEST_REAL(limit, runsInAQueue)
{
    enum {
        OPS = 60,
        MAX = 25
    };
    struct idem_queue *queue;
    bool seen[MAX] = {false};
    unsigned admitted = 0;
    unsigned refused = 0;
    unsigned repeated = 0;
    struct idem_op *op;
    unsigned n;
    struct idem_limit_request limit = ask(f, "", MAX);

    assert_ok(idem_queue_create(f->store, &queue, &why));
    for (n = 0; n < OPS; n++) {
        limit.request = idem_str(numbered("r", n / 2));
        assert_ok(idem_op_limit(&limit, &op, &why));
        assert_null(idem_op_limited(op));
        assert_ok(idem_queue_submit(queue, op, &why));
    }
    while ((op = idem_queue_reap(queue, -1)) != NULL) {
        const struct idem_limited *limited = idem_op_limited(op);

        assert_ok(idem_op_code(op));
        assert_non_null(limited);
        refused += !limited->admitted;
        if (limited->admitted && limited->repeated) {
            repeated++;
        } else if (limited->admitted) {
            assert_true(limited->remaining < MAX);
            assert_false(seen[limited->remaining]);
            seen[limited->remaining] = true;
            admitted++;
        }
        idem_op_destroy(op);
    }
    assert_int_equal(admitted, MAX);
    assert_int_equal(repeated, MAX);
    assert_int_equal(refused, OPS - 2 * MAX);
    idem_queue_destroy(queue);
}

/* ---- Threads ---- */

struct crowd {
    struct fixture *f;
    struct idem_limit_request limit;
    unsigned ids;
    unsigned admitted; /* Atomic. */
    unsigned wrong;
    int heard[450]; /* For each id: 0 nothing, 1 admitted, 2 refused; atomic. */
};

static void ask_in_crowd(void *ctx, size_t thread)
{
    struct crowd *crowd = ctx;
    unsigned i;

    for (i = 0; i < crowd->ids; i++) {
        struct idem_limit_request limit = crowd->limit;
        struct idem_limited limited;
        unsigned id = (i * 7 + (unsigned)thread * 13) % crowd->ids;
        int first = 0;
        int told;
        limit.request = idem_str(numbered("r", id));
        if (idem_limit(crowd->f->store, &limit, &limited, NULL) != 0) {
            (void)__atomic_add_fetch(&crowd->wrong, 1, __ATOMIC_SEQ_CST);
            continue;
        }
        told = limited.admitted ? 1 : 2;
        if (!__atomic_compare_exchange_n(&crowd->heard[id], &first, told, false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            (void)__atomic_add_fetch(&crowd->wrong, first != told,
                                     __ATOMIC_SEQ_CST);
        } else if (limited.admitted) {
            (void)__atomic_add_fetch(&crowd->admitted, 1, __ATOMIC_SEQ_CST);
        }
    }
}

/* All threads ask about all requests at the same time: exactly the limit is admitted, and
 * all get the same decision of each request; with a small limit and a large one. */
TEST(limit, admitsExactlyTheLimitToACrowd)
{
    static const unsigned limits[] = {8, 300};
    enum {
        THREADS = 4
    };

    EACH(one, limits) {
        struct fixture f;
        struct crowd crowd = {.f = &f, .ids = *one * 3 / 2};

        open_real(&f);
        crowd.limit = ask(&f, "", *one);
        assert_true(crowd.ids <= COUNT(crowd.heard));
        threads_run(THREADS, ask_in_crowd, &crowd);
        assert_int_equal(crowd.wrong, 0);
        assert_int_equal(crowd.admitted, *one);
        finish(&f);
    }
}
