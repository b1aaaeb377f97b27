/* Replays from memory by a handle of a remote store: for a while, and nothing else. The
 * service is a store in memory; a call to that itself is one of another process. */
#include "service.h"

#include "base/heap.h"
#include "claims.h"
#include "contract/move.h"
#include "host.h"
#include "queue/queue.h"
#include "test.h"

#include <idem/operator.h>

enum {
    CACHE_MS = 30000,
    RETENTION_MS = 60000,
    ROOM = 1 << 20,
    ROUND = 2 * 4096, /* Ops that a round of the leader answers, at most. */
};

#define CACHE "30000"

static struct host host;

static void close_store(void *store)
{
    idem_close(store);
}

static void destroy_queue(void *queue)
{
    idem_queue_destroy(queue);
}

static struct idem_queue *open_queue(struct idem_store *store)
{
    struct idem_queue *queue;

    assert_ok(idem_queue_create(store, &queue, &why));
    test_after(destroy_queue, queue);
    return queue;
}

static struct service *open_for(const char *cache, size_t cache_max)
{
    struct idem_open_options options;
    struct idem_store *records;
    struct service *service;

    host_init(&host);
    options = host_options(&host, false);
    options.cache_max = cache_max;
    options.queue_max = ROUND + 1;
    records = open_memory(&options);
    service = open_service(cache, &options);
    test_after(close_store, &service->remote.base);
    service->records = open_queue(records);
    return service;
}

static struct idem_store *of(struct service *service)
{
    return &service->remote.base;
}

static struct idem_request request_of(const char *text)
{
    static uint8_t print[IDEM_FINGERPRINT_LEN];
    struct idem_request request = claim("k");
    struct idem_slice part = idem_str(text);

    assert_ok(idem_fingerprint(&part, 1, idem_bytes(NULL, 0), print));
    request.retention_ms = RETENTION_MS;
    request.fingerprint = idem_bytes(print, sizeof(print));
    return request;
}

static void run_k(struct idem_store *store, const char *text)
{
    struct idem_request request = request_of("this");

    run(store, &request, text);
}

static struct service *open_completed(const char *cache, size_t cache_max)
{
    struct service *service = open_for(cache, cache_max);

    run_k(of(service), "first");
    return service;
}

/* Time passes; then a begin of "k" is replayed with @text, or meets another verdict. */
struct step {
    const char *text;
    unsigned asked; /* Requests. */
    int64_t passes_ms;
    enum idem_verdict verdict; /* 0: a replay. MISMATCH: of another request. */
};

static void take(struct service *service, const struct step *steps, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const struct step *step = &steps[i];
        struct idem_request request =
            request_of(step->verdict == IDEM_MISMATCH ? "another" : "this");
        enum idem_verdict verdict =
            step->verdict != 0 ? step->verdict : IDEM_REPLAY;

        host_pass(&host, step->passes_ms);
        service->requests = 0;
        assert_text(begin(of(service), &request, verdict)->record->result.bytes,
                    step->text);
        if (service->requests != step->asked) {
            fail_with("step %zu: %u requests", i, service->requests);
        }
    }
}

#define TAKE(service, ...)                                                     \
    take(service, (const struct step[]){__VA_ARGS__},                          \
         COUNT(((const struct step[]){__VA_ARGS__})))

static struct idem_op *op_of_k(void)
{
    struct idem_request request = request_of("this");
    struct idem_op *op;

    assert_ok(idem_op_begin(&request, &op, &why));
    return op;
}

static void expect_first(struct idem_queue *queue, struct idem_op *op)
{
    assert_ptr_equal(idem_queue_reap(queue, 10000), op);
    assert_ok(idem_op_code(op));
    assert_int_equal(idem_op_verdict(op), IDEM_REPLAY);
    assert_text(idem_op_record(op)->result.bytes, "first");
    idem_op_destroy(op);
}

/* A begin of "k" was sent, and its answer is on its way. */
static struct idem_op *hold_answer(struct service *service,
                                   struct idem_queue *queue)
{
    struct idem_op *op = op_of_k();

    service->holds = true;
    assert_ok(idem_queue_submit(queue, op, &why));
    assert_null(idem_queue_reap(queue, 0));
    service->holds = false;
    return op;
}

/* ---- For a while ---- */

/* A record that was replayed is replayed without a request until its time is over: replays
 * from memory do not add to it. Each is counted. */
TEST(memory, replaysForAWhile)
{
    struct idem_counters counters = IDEM_COUNTERS_INIT;
    struct service *service = open_completed(CACHE, ROOM);

    TAKE(service, {"first", .asked = 1}, {"first", 0, .passes_ms = 10},
         {"first", 0, .passes_ms = CACHE_MS - 11}, {"first", 1, .passes_ms = 1},
         {"first", .asked = 0});
    assert_ok(idem_count(of(service), &counters, &why));
    assert_int_equal(counters.replayed, 5);
}

/* Without the setting, and without room, each replay is a request. */
TEST(memory, isOffUnlessItIsAskedFor)
{
    TAKE(open_completed(NULL, ROOM), {"first", .asked = 1},
         {"first", .asked = 1});
    TAKE(open_completed(CACHE, 0), {"first", .asked = 1},
         {"first", .asked = 1});
}

/* The time counts from before the reading, however long the answer took. */
TEST(memory, countsFromTheRequest)
{
    struct service *service = open_completed(CACHE, ROOM);
    struct idem_queue *queue = open_queue(of(service));
    struct idem_op *op = hold_answer(service, queue);

    host_pass(&host, CACHE_MS - 1);
    service->sent->held = false;
    expect_first(queue, op);
    TAKE(service, {"first", .asked = 0}, {"first", 1, .passes_ms = 1});
}

/* It is over when its retention is, to the millisecond. */
TEST(memory, keepsTheRetention)
{
    struct service *service = open_completed("600000", ROOM);

    TAKE(service, {"first", .asked = 1},
         {"first", 0, .passes_ms = RETENTION_MS - 1});
    host_pass(&host, 1);
    run_k(of(service), "second");
    TAKE(service, {"second", .asked = 1}, {"second", .asked = 0});
}

/* While the service does not answer, replays go on, and leave the try of the breaker to
 * an op that sends a request. */
TEST(memory, needsNoService)
{
    struct service *service = open_completed(CACHE, ROOM);
    struct idem__breaker *breaker = &service->remote.breaker;

    TAKE(service, {"first", .asked = 1});
    breaker->open = true;
    breaker->next_try_ms = INT64_MAX;
    TAKE(service, {"first", .asked = 0});
    breaker->next_try_ms = 0;
    TAKE(service, {"first", .asked = 0});
    assert_int_equal(breaker->next_try_ms, 0);
    (void)get(of(service), "k");
    assert_false(breaker->open);
}

/* A round ends, however many ask for a hot key: the leader has answers to take. */
TEST(memory, letsARoundEnd)
{
    struct service *service = open_completed(CACHE, ROOM);
    struct idem_queue *queue = open_queue(of(service));
    size_t n;

    TAKE(service, {"first", .asked = 1});
    service->requests = 0;
    for (n = 0; n < ROUND + 1; n++) {
        assert_ok(idem_queue_submit(queue, op_of_k(), &why));
    }
    idem_op_destroy(idem_queue_reap(queue, 0));
    assert_int_equal(service->remote.leader.pending.len, 1);
    for (n = 0; n < ROUND; n++) {
        idem_op_destroy(idem_queue_reap(queue, 10000));
    }
    assert_int_equal(service->requests, 0);
}

/* ---- Replays alone ---- */

/* Another request with the key is asked, learns nothing, and drops the record. */
TEST(alone, aMismatchIsAsked)
{
    static const struct step mismatch = {"", 1, .verdict = IDEM_MISMATCH};

    TAKE(open_completed(CACHE, ROOM), {"first", .asked = 1}, mismatch, mismatch,
         {"first", .asked = 1});
}

/* What is not completed is asked for each time. */
TEST(alone, nothingElseIsKept)
{
    static const struct step busy = {"", 1, .verdict = IDEM_BUSY};
    static const struct step failed = {"", 1, .verdict = IDEM_FAILED};
    struct service *service = open_for(CACHE, ROOM);
    struct idem_request request = request_of("this");
    struct idem_attempt *attempt = begin(of(service), &request, IDEM_STARTED);

    TAKE(service, busy, busy);
    assert_ok(idem_fail(attempt, idem_str("no"), NULL, &why));
    TAKE(service, failed, failed);
}

/* A waiter knows of an attempt that may be later; an earlier copy of an op may have
 * claimed the key, or claim it yet; and a commit compares writes. A look knows nothing. */
TEST(alone, whoKnowsMoreAsks)
{
    static const struct {
        uint64_t join_fence;
        uint64_t fence;
        bool pending;
        bool commits;
        unsigned asked;
    } rows[] = {{.join_fence = 1, .asked = 1}, {.join_fence = UINT64_MAX},
                {.fence = 1, .asked = 1},      {.pending = true, .asked = 1},
                {.commits = true, .asked = 1}, {.asked = 0}};

    EACH(row, rows) {
        struct service *service = open_completed(CACHE, ROOM);
        struct idem_queue *queue = open_queue(of(service));
        struct idem_op *op = op_of_k();

        TAKE(service, {"first", .asked = 1});
        op->u.begin.join_fence = row->join_fence;
        op->fence = row->fence;
        op->pending = row->pending;
        if (row->commits) {
            op->commit = idem__zalloc(sizeof(*op->commit));
            assert_non_null(op->commit);
        }
        service->requests = 0;
        assert_ok(idem_queue_submit(queue, op, &why));
        expect_first(queue, op);
        assert_int_equal(service->requests, row->asked);
    }
}

/* ---- What ends it ---- */

static struct idem_store *elsewhere(struct service *service)
{
    return service->records->store;
}

static void reopen_in(struct service *service, struct idem_store *store)
{
    assert_ok(idem_reopen(store, idem_str(""), idem_str("k"),
                          get(elsewhere(service), "k")->fence, idem_str("ann"),
                          idem_str("again"), &why));
}

/* Nothing but the reopening tells the handle. */
static void reopen(struct service *service)
{
    reopen_in(service, of(service));
    run_k(elsewhere(service), "second");
}

/* A person decides "k". */
static void decide_k(struct service *service, const char *text)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                   .text = idem_str("looked"),
                                   .result.bytes = idem_str(text)};

    assert_ok(idem_resolve(of(service), idem_str(""), idem_str("k"),
                           get(elsewhere(service), "k")->fence, idem_str("ann"),
                           &outcome, /* flags= */ 0, &why));
}

static void import(struct service *service)
{
    struct idem_record record = *get(elsewhere(service), "k");
    bool added;

    record.key = idem_str("other");
    assert_ok(idem_id(record.scope, record.key, record.id));
    assert_ok(idem_import(of(service), &record, &added, &why));
}

static void purge(struct service *service)
{
    uint64_t purged;

    assert_ok(idem_purge(of(service), 10, &purged, &why));
}

static void look_at_the_mark(struct service *service)
{
    struct idem_move move;

    assert_ok(idem__move_get(of(service), &move, &why));
}

/* What an operator does through the handle ends all that it has in memory, at once. */
TEST(change, endsReplays)
{
    static const struct {
        void (*change)(struct service *service);
        const char *text;
    } rows[] = {{reopen, "second"},
                {import, "first"},
                {purge, "first"},
                {look_at_the_mark, "first"}};

    EACH(row, rows) {
        struct service *service = open_completed(CACHE, ROOM);

        TAKE(service, {"first", .asked = 1}, {"first", .asked = 0});
        row->change(service);
        TAKE(service, {row->text, .asked = 1}, {row->text, .asked = 0});
    }
}

/* A person who corrects a person is heard at once, and no reading that began before is
 * kept beyond it. */
TEST(change, overtakesAReading)
{
    struct service *service = open_for(CACHE, ROOM);
    struct idem_request request = request_of("this");
    struct idem_queue *queue = open_queue(of(service));
    struct idem_op *op;

    assert_ok(idem_unknown(begin(of(service), &request, IDEM_STARTED),
                           idem_str("lost"), &why));
    decide_k(service, "first");
    op = hold_answer(service, queue);
    decide_k(service, "second");
    service->sent->held = false;
    expect_first(queue, op); /* It was asked before. */
    TAKE(service, {"second", .asked = 1});
    decide_k(service, "third");
    TAKE(service, {"third", .asked = 1});
}

/* Another process reopens the record while this handle reads it. If this handle then runs
 * it again, its reading is not kept. If the other process does, and this handle reads the
 * new record first, the new record stays. */
TEST(change, elsewhereOvertakesAReading)
{
    int ours;

    for (ours = 0; ours < 2; ours++) {
        struct service *service = open_completed(CACHE, ROOM);
        struct idem_queue *queue = open_queue(of(service));
        struct idem_op *op = hold_answer(service, queue);

        reopen_in(service, elsewhere(service));
        run_k(ours ? of(service) : elsewhere(service), "second");
        if (!ours) {
            TAKE(service, {"second", .asked = 1});
        }
        service->sent->held = false;
        expect_first(queue, op); /* It was asked before. */
        TAKE(service, {"second", .asked = ours}, {"second", .asked = 0});
    }
}

/* Another process has reopened the record: that is seen once the time is over, or once
 * this handle is told of it. */
TEST(change, elsewhereIsSeenInTime)
{
    int told;

    for (told = 0; told < 2; told++) {
        struct service *service = open_completed(CACHE, ROOM);

        TAKE(service, {"first", .asked = 1});
        reopen_in(service, elsewhere(service));
        TAKE(service, {"first", 0, .passes_ms = CACHE_MS - 1});
        if (told) {
            (void)get(of(service), "k");
        }
        TAKE(service, {"", 1, .passes_ms = !told, .verdict = IDEM_STARTED});
    }
}
