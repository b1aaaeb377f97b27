/* Replays from memory by a handle of a remote store: for a while, and nothing else. The
 * service is a few lines here, which keep heads and results, and count requests. */
#include "store/remote/remote.h"

#include "base/heap.h"
#include "base/host.h"
#include "contract/move.h"
#include "claims.h"
#include "host.h"
#include "test.h"

#include <idem/operator.h>
#include <time.h>

enum {
    CACHE_MS = 30000,
    RETENTION_MS = 60000,
    ROWS = 4,
};

struct row {
    uint8_t id[IDEM_ID_LEN];
    struct idem__buffer head; /* Empty: there is no record. */
    char result[16];
    size_t result_len;
};

struct service {
    struct idem__remote remote;
    struct idem__flight_env env;
    struct row rows[ROWS];
    size_t rows_len;
    struct flight *sent;
    unsigned requests;
    unsigned seen; /* Of these, by expect_asked(). */
    bool holds;    /* The answers to what is read from now on. */
};

struct flight {
    struct idem__flight base;
    struct service *service;
    struct flight *next_sent;
    struct idem_record found;
    struct idem_slice found_head;
    char result[16]; /* As it was read. */
    size_t result_len;
    struct idem_record next;
    bool held;
    bool refused;
};

static struct host host;
static int64_t cache_ms;

/* ---- The service ---- */

static struct row *row_of(struct service *service, const uint8_t *id)
{
    size_t i;

    for (i = 0; i < service->rows_len; i++) {
        if (memcmp(service->rows[i].id, id, IDEM_ID_LEN) == 0) {
            return &service->rows[i];
        }
    }
    assert_true(i < ROWS);
    memcpy(service->rows[i].id, id, IDEM_ID_LEN);
    service->rows_len++;
    return &service->rows[i];
}

static idem__state look(struct flight *flight, const struct row *row)
{
    struct idem__flight *base = &flight->base;

    base->has_found = row->head.len > 0;
    if (base->has_found) {
        base->found_memory.len = 0;
        idem__buffer_add(&base->found_memory, row->head.base, row->head.len);
        flight->found_head = idem__buffer_slice(&base->found_memory);
        assert_ok(idem__record_decode(row->id, flight->found_head,
                                      &flight->found, &why));
        flight->found.scope = base->op->scope;
        flight->found.key = base->op->key;
        memcpy(flight->result, row->result, sizeof(row->result));
        flight->result_len = row->result_len;
    }
    flight->held = flight->service->holds;
    return IDEM__STATE_SEND;
}

static idem__state load(struct flight *flight)
{
    struct idem_record bodies = flight->found;

    bodies.result.bytes = idem_bytes(flight->result, flight->result_len);
    idem__verb_take_bodies(&flight->base.decision, &bodies,
                           &flight->base.given);
    return IDEM__STATE_ACT;
}

/* On condition of what was found. */
static idem__state write_row(struct flight *flight, struct row *row)
{
    struct idem__flight *base = &flight->base;
    struct idem_slice old =
        base->has_found ? flight->found_head : idem_bytes(NULL, 0);

    flight->refused =
        old.len != row->head.len ||
        (old.len > 0 && memcmp(old.base, row->head.base, old.len));
    if (!flight->refused) {
        row->head.len = 0;
        idem__buffer_add(&row->head, base->head.base, base->head.len);
    }
    if (!flight->refused && base->decision.set_result) {
        row->result_len = flight->next.result.bytes.len;
        assert_true(row->result_len <= sizeof(row->result));
        memcpy(row->result, flight->next.result.bytes.base, row->result_len);
    }
    return IDEM__STATE_SEND;
}

static idem__state enter(struct idem__flight *base)
{
    struct flight *flight = (struct flight *)base;
    struct row *row;

    if (base->state == IDEM__STATE_PURGE || base->state == IDEM__STATE_MOVE) {
        return IDEM__STATE_SEND;
    }
    if (base->state == IDEM__STATE_LOAD) {
        return load(flight);
    }
    row = row_of(flight->service, base->op->id);
    return base->state == IDEM__STATE_LOOK ? look(flight, row)
                                           : write_row(flight, row);
}

static idem__state answered(struct idem__flight *base)
{
    static const struct idem_error none;
    bool refused = ((struct flight *)base)->refused;
    idem__state next;

    switch (base->state) {
    case IDEM__STATE_LOOK:
        return IDEM__STATE_DECIDE;
    case IDEM__STATE_WRITE:
        next =
            idem__flight_written(base,
                                 refused ? IDEM__SAID_REFUSED : IDEM__SAID_OK,
                                 true, &none);
        return next == IDEM__STATE_NONE ? IDEM__STATE_LOOK : next;
    case IDEM__STATE_PURGE:
        base->op->u.purge.done = true;
        break;
    default:
        break;
    }
    return IDEM__STATE_DONE;
}

static idem__state start(struct idem__flight *base)
{
    return idem__flight_first(base, /* looks= */ true);
}

static idem__state decide(struct idem__flight *base,
                          const struct idem_record *there)
{
    idem__verb_decide(there, base->op, base->now, &base->decision);
    return IDEM__STATE_NONE;
}

static idem__state prepare(struct idem__flight *base)
{
    (void)base;
    return IDEM__STATE_NONE;
}

static bool may_have_written(const struct idem__flight *base)
{
    return base->state == IDEM__STATE_WRITE;
}

static const struct idem__machine_ops machine_ops = {
    .service = "The service",
    .rounds_max = 16,
    .pause_base_ms = 1,
    .start = start,
    .enter = enter,
    .answered = answered,
    .decide = decide,
    .prepare = prepare,
    .may_have_written = may_have_written,
};

static struct idem__flight *create(struct idem__remote *remote)
{
    struct service *service = (struct service *)remote;
    struct flight *flight = idem__zalloc(sizeof(*flight));

    assert_non_null(flight);
    flight->service = service;
    flight->base.ops = &machine_ops;
    flight->base.env = &service->env;
    flight->base.found = &flight->found;
    flight->base.found_head = &flight->found_head;
    flight->base.next_record = &flight->next;
    return &flight->base;
}

static bool reset(struct idem__flight *base)
{
    idem__flight_reset(base);
    return true;
}

static void destroy(struct idem__flight *base)
{
    idem__flight_free(base);
    idem__free(base);
}

static int now(struct idem__remote *remote, struct idem_now *ret_now)
{
    return idem__remote_now(&remote->base.options.host, /* clock= */ NULL, 0,
                            ret_now);
}

static void send(struct idem__flight *base, int64_t deadline_ms)
{
    struct flight *flight = (struct flight *)base;

    (void)deadline_ms;
    flight->service->requests++;
    flight->next_sent = flight->service->sent;
    flight->service->sent = flight;
}

static void ignore_flight(struct idem__flight *base)
{
    (void)base;
}

static void ignore(struct idem__remote *remote)
{
    (void)remote;
}

static struct idem__flight *reap(struct idem__remote *remote)
{
    struct flight **at = &((struct service *)remote)->sent;
    struct flight *flight;

    while (*at != NULL && (*at)->held) {
        at = &(*at)->next_sent;
    }
    flight = *at;
    if (flight == NULL) {
        return NULL;
    }
    *at = flight->next_sent;
    flight->base.heard = true;
    flight->base.timed_out = false;
    return &flight->base;
}

static void wait_for_work(struct idem__remote *remote, int64_t deadline_ms)
{
    static const struct timespec moment = {0, 100000};

    (void)remote;
    (void)deadline_ms;
    (void)nanosleep(&moment, NULL);
}

static int64_t due_ms(struct idem__remote *remote)
{
    (void)remote;
    return IDEM_NEVER;
}

static bool reads(const struct idem_op *op)
{
    return op->verb == IDEM_OP_GET;
}

static const struct idem_store_ops store_ops =
    IDEM__REMOTE_STORE_OPS("service");

static int set_up(struct idem__remote *remote, const char *place,
                  const struct idem_open_options *options,
                  struct idem_error *error)
{
    struct service *service = (struct service *)remote;

    (void)place;
    remote->endpoint = "service.example";
    remote->cache_ms = cache_ms;
    assert_ok(idem__store_init(&remote->base, &store_ops, options, error));
    return idem__flight_env_init(&service->env, &remote->base.options.host,
                                 /* remembers= */ false);
}

static void finish(struct idem__remote *remote)
{
    struct service *service = (struct service *)remote;
    size_t i;

    for (i = 0; i < ROWS; i++) {
        idem__buffer_free(&service->rows[i].head);
    }
    idem__flight_env_finish(&service->env);
}

static const struct idem__remote_ops service_ops = {
    .service = "The service",
    .size = sizeof(struct service),
    .sending_max = 8,
    .set_up = set_up,
    .finish = finish,
    .create = create,
    .reset = reset,
    .destroy = destroy,
    .now = now,
    .send = send,
    .abort = ignore_flight,
    .work = ignore,
    .reap = reap,
    .wait = wait_for_work,
    .wake = ignore,
    .due_ms = due_ms,
    .reads = reads,
};

/* ---- What a test does with it ---- */

static void close_service(void *store)
{
    idem_close(store);
}

static struct service *open_service(int64_t for_ms, size_t cache_max)
{
    struct idem_open_options options;
    struct idem_store *store;

    host_init(&host);
    options = host_options(&host, false);
    options.cache_max = cache_max;
    cache_ms = for_ms;
    assert_ok(idem__remote_open(&service_ops, NULL, &options, &store, &why));
    test_after(close_service, store);
    return (struct service *)store;
}

static struct idem_store *of(struct service *service)
{
    return &service->remote.base;
}

/* Of one request, or of another one. */
static struct idem_slice print_of(const char *text)
{
    static uint8_t prints[2][IDEM_FINGERPRINT_LEN];
    uint8_t *print = prints[text[0] == 'a'];
    struct idem_slice part = idem_str(text);

    assert_ok(idem_fingerprint(&part, 1, idem_bytes(NULL, 0), print));
    return idem_bytes(print, IDEM_FINGERPRINT_LEN);
}

static struct idem_request request_of(const char *key)
{
    struct idem_request request = claim(key);

    request.retention_ms = RETENTION_MS;
    request.fingerprint = print_of("this");
    return request;
}

/* Requests since the last call. */
static void expect_asked(struct service *service, unsigned n)
{
    assert_int_equal(service->requests - service->seen, n);
    service->seen = service->requests;
}

/* "k" is completed with @text. */
static void complete_k(struct service *service, const char *text)
{
    struct idem_request request = request_of("k");

    run(of(service), &request, text);
    service->seen = service->requests;
}

/* "k" is replayed with @text, in @asked requests. Its record. */
static const struct idem_record *replay_k(struct service *service,
                                          const char *text, unsigned asked)
{
    struct idem_request request = request_of("k");
    const struct idem_record *record =
        begin(of(service), &request, IDEM_REPLAY)->record;

    assert_text(record->result.bytes, text);
    expect_asked(service, asked);
    return record;
}

static struct service *open_completed(int64_t for_ms, size_t cache_max)
{
    struct service *service = open_service(for_ms, cache_max);

    complete_k(service, "first");
    return service;
}

/* The same, and replayed once: it is in memory. */
static struct service *open_kept(int64_t for_ms)
{
    struct service *service = open_completed(for_ms, 1 << 20);

    (void)replay_k(service, "first", 1);
    return service;
}

static void destroy_queue(void *queue)
{
    idem_queue_destroy(queue);
}

static struct idem_queue *open_queue(struct service *service)
{
    struct idem_queue *queue;

    assert_ok(idem_queue_create(of(service), &queue, &why));
    test_after(destroy_queue, queue);
    return queue;
}

static struct idem_op *op_of(const char *key)
{
    struct idem_request request = request_of(key);
    struct idem_op *op;

    assert_ok(idem_op_begin(&request, &op, &why));
    return op;
}

static void expect_replay(struct idem_queue *queue, struct idem_op *op)
{
    assert_ptr_equal(idem_queue_reap(queue, 10000), op);
    assert_ok(idem_op_code(op));
    assert_int_equal(idem_op_verdict(op), IDEM_REPLAY);
    assert_text(idem_op_record(op)->result.bytes, "first");
    idem_op_destroy(op);
}

/* ---- For a while ---- */

/* A record that was replayed is replayed without a request until its time is over: replays
 * from memory do not add to it. Each is counted. */
TEST(memory, replaysForAWhile)
{
    struct idem_counters counters = IDEM_COUNTERS_INIT;
    struct service *service = open_kept(CACHE_MS);

    host_pass(&host, 10);
    (void)replay_k(service, "first", 0);
    host_pass(&host, CACHE_MS - 11);
    (void)replay_k(service, "first", 0);
    host_pass(&host, 1);
    (void)replay_k(service, "first", 1);
    (void)replay_k(service, "first", 0);
    assert_ok(idem_count(of(service), &counters, &why));
    assert_int_equal(counters.replayed, 5);
}

/* Without the setting, and without room, each replay is a request. */
TEST(memory, isOffUnlessItIsAskedFor)
{
    static const struct {
        int64_t for_ms;
        size_t cache_max;
    } rows[] = {{0, 1 << 20}, {CACHE_MS, 0}};

    EACH(row, rows) {
        struct service *service = open_completed(row->for_ms, row->cache_max);

        (void)replay_k(service, "first", 1);
        (void)replay_k(service, "first", 1);
    }
}

/* The time counts from before the reading, however long the answer took. */
TEST(memory, countsFromTheRequest)
{
    struct service *service = open_completed(CACHE_MS, 1 << 20);
    struct idem_queue *queue = open_queue(service);
    struct idem_op *op = op_of("k");

    service->holds = true;
    assert_ok(idem_queue_submit(queue, op, &why));
    assert_null(idem_queue_reap(queue, 0));
    host_pass(&host, CACHE_MS - 1);
    service->sent->held = false;
    service->holds = false;
    expect_replay(queue, op);
    expect_asked(service, 1);
    (void)replay_k(service, "first", 0);
    host_pass(&host, 1);
    (void)replay_k(service, "first", 1);
}

/* It is over when its retention is, to the millisecond. */
TEST(memory, keepsTheRetention)
{
    struct service *service = open_kept((int64_t)10 * RETENTION_MS);

    host_pass(&host, RETENTION_MS - 1);
    (void)replay_k(service, "first", 0);
    host_pass(&host, 1);
    complete_k(service, "second");
    (void)replay_k(service, "second", 1);
    (void)replay_k(service, "second", 0);
}

/* ---- Replays alone ---- */

/* Another request with the key is refused by the service, and learns nothing; the record
 * stays what it is. */
TEST(alone, aMismatchIsAsked)
{
    struct service *service = open_kept(CACHE_MS);
    struct idem_request request = request_of("k");
    struct idem_attempt *attempt;
    unsigned i;

    request.fingerprint = print_of("another");
    for (i = 0; i < 2; i++) {
        attempt = begin(of(service), &request, IDEM_MISMATCH);
        assert_int_equal(attempt->record->result.bytes.len, 0);
        expect_asked(service, 1);
    }
    (void)replay_k(service, "first", 1);
}

/* What is not completed is asked for each time. */
TEST(alone, nothingElseIsKept)
{
    struct service *service = open_service(CACHE_MS, 1 << 20);
    struct idem_request request = request_of("k");
    struct idem_attempt *attempt = begin(of(service), &request, IDEM_STARTED);
    unsigned i;

    service->seen = service->requests;
    for (i = 0; i < 2; i++) {
        expect(of(service), &request, IDEM_BUSY);
        expect_asked(service, 1);
    }
    assert_ok(idem_fail(attempt, idem_str("no"), NULL, &why));
    service->seen = service->requests;
    for (i = 0; i < 2; i++) {
        expect(of(service), &request, IDEM_FAILED);
        expect_asked(service, 1);
    }
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
    } rows[] = {
        {.join_fence = 1, .asked = 1}, {.join_fence = UINT64_MAX},
        {.fence = 1, .asked = 1},      {.pending = true, .asked = 1},
        {.commits = true, .asked = 1}, {.asked = 0},
    };

    EACH(row, rows) {
        struct service *service = open_kept(CACHE_MS);
        struct idem_queue *queue = open_queue(service);
        struct idem_op *op = op_of("k");

        op->u.begin.join_fence = row->join_fence;
        op->fence = row->fence;
        op->pending = row->pending;
        if (row->commits) {
            op->commit = idem__zalloc(sizeof(*op->commit));
            assert_non_null(op->commit);
        }
        assert_ok(idem_queue_submit(queue, op, &why));
        expect_replay(queue, op);
        expect_asked(service, row->asked);
    }
}

/* ---- What ends it ---- */

static void reopen(struct service *service, const struct idem_record *found)
{
    struct idem_request request = request_of("k");

    assert_ok(idem_reopen(of(service), idem_str(""), idem_str("k"),
                          found->fence, idem_str("ann"), idem_str("again"),
                          &why));
    assert_ok(complete(begin(of(service), &request, IDEM_STARTED), "second"));
}

/* A person decides "k", whose fence is @fence. */
static void decide_k(struct service *service, uint64_t fence, const char *text)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                   .text = idem_str("looked")};

    outcome.result.bytes = idem_str(text);
    assert_ok(idem_resolve(of(service), idem_str(""), idem_str("k"), fence,
                           idem_str("ann"), &outcome, /* flags= */ 0, &why));
}

static void import(struct service *service, const struct idem_record *found)
{
    struct idem_record record = *found;
    bool added;

    record.key = idem_str("other");
    assert_ok(idem_id(record.scope, record.key, record.id));
    assert_ok(idem_import(of(service), &record, &added, &why));
}

static void purge(struct service *service, const struct idem_record *found)
{
    uint64_t purged;

    (void)found;
    assert_ok(idem_purge(of(service), 10, &purged, &why));
}

static void look_at_the_mark(struct service *service,
                             const struct idem_record *found)
{
    struct idem_move move;

    (void)found;
    assert_ok(idem__move_get(of(service), &move, &why));
}

/* What an operator does through the handle ends all that it has in memory, at once. */
TEST(change, endsReplays)
{
    static const struct {
        void (*change)(struct service *service,
                       const struct idem_record *found);
        const char *text;
    } rows[] = {
        {reopen, "second"},
        {import, "first"},
        {purge, "first"},
        {look_at_the_mark, "first"},
    };

    EACH(row, rows) {
        struct service *service = open_kept(CACHE_MS);

        row->change(service, replay_k(service, "first", 0));
        service->seen = service->requests;
        (void)replay_k(service, row->text, 1);
        (void)replay_k(service, row->text, 0);
    }
}

/* A person who corrects a person is heard at once, and no reading that began before is
 * kept beyond it. */
TEST(change, overtakesAReading)
{
    struct service *service = open_service(CACHE_MS, 1 << 20);
    struct idem_request request = request_of("k");
    struct idem_queue *queue = open_queue(service);
    struct idem_op *op = op_of("k");
    struct idem_attempt *attempt = begin(of(service), &request, IDEM_STARTED);
    uint64_t fence = attempt->fence;

    assert_ok(idem_unknown(attempt, idem_str("lost"), &why));
    decide_k(service, fence, "first");
    service->holds = true;
    assert_ok(idem_queue_submit(queue, op, &why));
    assert_null(idem_queue_reap(queue, 0));
    service->holds = false;
    decide_k(service, get(of(service), "k")->fence, "second");
    service->sent->held = false;
    expect_replay(queue, op); /* It was asked before. */
    service->seen = service->requests;
    decide_k(service, replay_k(service, "second", 1)->fence, "third");
    service->seen = service->requests;
    (void)replay_k(service, "third", 1);
}

/* Another process has deleted the record: that is seen once the time is over, ... */
static void delete_elsewhere(struct service *service)
{
    uint8_t id[IDEM_ID_LEN];

    assert_ok(idem_id(idem_str(""), idem_str("k"), id));
    row_of(service, id)->head.len = 0;
}

TEST(change, elsewhereIsSeenInTime)
{
    struct service *service = open_kept(CACHE_MS);
    struct idem_request request = request_of("k");

    delete_elsewhere(service);
    host_pass(&host, CACHE_MS - 1);
    (void)replay_k(service, "first", 0);
    host_pass(&host, 1);
    expect(of(service), &request, IDEM_STARTED);
}

/* ... or once this handle is told of it. */
TEST(change, elsewhereIsSeenOnceItIsTold)
{
    struct service *service = open_kept(CACHE_MS);
    struct idem_request request = request_of("k");
    struct idem_answer *answer;

    delete_elsewhere(service);
    (void)replay_k(service, "first", 0);
    assert_code(IDEM_ENOTFOUND, idem_get(of(service), idem_str(""),
                                         idem_str("k"), &answer, &why));
    expect(of(service), &request, IDEM_STARTED);
}
