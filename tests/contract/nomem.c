/* Out of memory: every function reports it, leaks nothing, and leaves a record that a
 * caller that died there could have left. Each is called with its first, second, ...
 * allocation failing, once alone and once with all that follow, until none fails. */
#include "contract.h"

#include "heap.h"
#include "temp.h"
#include "threads.h"

#include <idem/memory.h>
#include <idem/operator.h>
#include <idem/queue.h>

/* One function and what must be there before it is called. */
struct scenario {
    const char *name;
    /* Calls the function once, between arm() and disarm(), and undoes it if it
     * succeeded. Answers its code. */
    int (*call)(struct fixture *f);
    int verb;      /* Of call_verb(), where call is NULL. */
    bool recalled; /* A store may keep the answer in memory, or not. */
};

/* The allocation that the loop below lets fail; armed only around the function itself. */
static long fail_at;
static bool fail_on;
static bool failed;

static void arm(void)
{
    heap_fail(fail_at, fail_on);
}

static int disarm(int rc)
{
    failed = heap_fail_never();
    return rc;
}

/* A key that no call before this one has had. */
static const char *fresh_key(void)
{
    static unsigned n;

    return numbered("n", ++n);
}

static struct idem_request full_request(const char *key)
{
    struct idem_request request = rerun(key);

    request.owner = idem_str("owner");
    request.input = idem_str("input");
    return request;
}

static struct idem_attempt *start(struct fixture *f)
{
    struct idem_request request = full_request(fresh_key());

    return begin(f->store, &request, IDEM_STARTED);
}

/* ---- Begin ---- */

static int try_begin(struct fixture *f, const struct idem_request *request)
{
    struct idem_attempt *attempt = NULL;
    int rc;

    arm();
    rc = disarm(idem_begin(f->store, request, &attempt, &why));
    assert_int_equal(rc == 0, attempt != NULL);
    idem_attempt_destroy(attempt);
    return rc;
}

static int begin_anew(struct fixture *f)
{
    struct idem_request request = full_request(fresh_key());
    struct idem_attempt *attempt;
    int rc = try_begin(f, &request);

    /* A caller that ran out of memory does not hold the key. */
    assert_ok(idem_begin(f->store, &request, &attempt, &why));
    assert_int_equal(attempt->verdict,
                     rc == IDEM_ENOMEM ? IDEM_STARTED : IDEM_BUSY);
    idem_attempt_destroy(attempt);
    return rc;
}

static int begin_replay(struct fixture *f)
{
    struct idem_request request = full_request("replayed");
    struct idem_attempt *attempt;
    int rc;

    assert_ok(idem_begin(f->store, &request, &attempt, &why));
    if (attempt->verdict == IDEM_STARTED) {
        assert_ok(complete(attempt, "a result"));
    }
    idem_attempt_destroy(attempt);
    rc = try_begin(f, &request);
    expect(f->store, &request, IDEM_REPLAY);
    return rc;
}

static int begin_takeover(struct fixture *f)
{
    struct idem_request request = full_request(fresh_key());
    int rc;

    expect(f->store, &request, IDEM_STARTED);
    host_pass(&f->host, 60000);
    request.input = idem_str("");
    rc = try_begin(f, &request);
    host_pass(&f->host, 60000);
    expect(f->store, &request, IDEM_STARTED);
    return rc;
}

static int begin_waiting(struct fixture *f)
{
    struct idem_request request = full_request(fresh_key());
    int rc;

    expect(f->store, &request, IDEM_STARTED);
    request.wait_ms = 20;
    rc = try_begin(f, &request);
    request.wait_ms = 0;
    expect(f->store, &request, IDEM_BUSY);
    return rc;
}

/* ---- The owner's verbs ---- */

/* A call that failed may be repeated, and then succeeds. */
static int try_verb(struct fixture *f, int verb)
{
    struct idem_attempt *attempt = start(f);
    int rc;

    arm();
    rc = disarm(call_verb(verb, attempt));
    assert_ok(call_verb(verb, attempt));
    return rc;
}

static int expire(struct fixture *f)
{
    struct idem_attempt *attempt = start(f);
    int rc;

    arm();
    rc = disarm(idem_expire(attempt, &why));
    assert_ok(idem_expire(attempt, &why));
    return rc;
}

/* Whatever fails, nothing is started without an end on record, and the call may be
 * repeated. */
static int next(struct fixture *f)
{
    struct idem_attempt *attempt = start(f);
    struct idem_request request = full_request(fresh_key());
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                   .result.bytes = idem_str("a result")};
    struct idem_attempt *other = NULL;
    int rc;

    arm();
    rc = disarm(idem_next(attempt, &outcome, &request, &other, &why));
    assert_int_equal(rc == 0, other != NULL);
    if (other != NULL) {
        assert_int_equal(attempt->record->status, IDEM_STATUS_COMPLETED);
    }
    idem_attempt_destroy(other);
    assert_ok(idem_end(attempt, &outcome, &why));
    return rc;
}

static void do_work(void *ctx, struct idem_attempt *attempt,
                    struct idem_outcome *ret_outcome)
{
    unsigned *runs = ctx;

    (void)attempt;
    (*runs)++;
    ret_outcome->status = IDEM_STATUS_COMPLETED;
    ret_outcome->result.bytes = idem_str("a result");
}

static int once(struct fixture *f)
{
    struct idem_request request = full_request(fresh_key());
    struct idem_attempt *attempt = NULL;
    unsigned runs = 0;
    int rc;

    arm();
    rc = disarm(idem_once(f->store, &request, do_work, &runs, &attempt, &why));
    assert_int_equal(attempt != NULL, runs == 1);
    if (rc != 0 && attempt != NULL) {
        assert_ok(complete(attempt, "a result"));
    }
    idem_attempt_destroy(attempt);
    return rc;
}

static int token(struct fixture *f)
{
    struct idem_attempt *attempt = start(f);
    struct idem_attempt *other = NULL;
    char text[IDEM_TOKEN_MAX];
    int rc;

    arm();
    rc = idem_attempt_token(attempt, text);
    if (rc == 0) {
        rc = idem_attempt_from_token(f->store, text, &other, &why);
    }
    (void)disarm(rc);
    assert_int_equal(rc == 0, other != NULL);
    idem_attempt_destroy(other);
    return rc;
}

/* ---- The operator's ---- */

static int get_one(struct fixture *f)
{
    struct idem_answer *answer = NULL;
    int rc;

    arm();
    rc = disarm(
        idem_get(f->store, idem_str(""), idem_str("replayed"), &answer, &why));
    assert_int_equal(rc == 0, answer != NULL);
    idem_answer_destroy(answer);
    return rc;
}

static int see(void *ctx, int code, const struct idem_record *record)
{
    (void)ctx;
    (void)record;
    return code;
}

static int list(struct fixture *f)
{
    struct idem_filter filter = IDEM_FILTER_INIT;

    filter.any_scope = false;
    filter.scope = idem_str("tenant");
    arm();
    return disarm(idem_list(f->store, &filter, see, NULL, NULL, &why));
}

static int list_page(struct fixture *f)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_page page = IDEM_PAGE_INIT;

    filter.newest_first = true;
    filter.max = 1;
    arm();
    return disarm(idem_list_page(f->store, &filter, see, NULL, &page, &why));
}

static int resolve(struct fixture *f)
{
    const char *key = fresh_key();
    struct idem_request request = claim(key);
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                   .result = {.bytes = idem_str("by hand")},
                                   .text = idem_str("because")};
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);
    uint64_t fence = attempt->fence;
    int rc;

    assert_ok(idem_unknown(attempt, idem_str("?"), &why));
    arm();
    rc = disarm(idem_resolve(f->store, idem_str(""), request.key, fence,
                             idem_str("ann"), &outcome, /* flags= */ 0, &why));
    assert_ok(idem_resolve(f->store, idem_str(""), request.key, fence,
                           idem_str("ann"), &outcome, /* flags= */ 0, &why));
    return rc;
}

static int import(struct fixture *f)
{
    const struct idem_record *record = get(f->store, "replayed");

    arm();
    return disarm(idem_import(f->store, record, NULL, &why));
}

static int purge(struct fixture *f)
{
    struct idem_request request = claim(fresh_key());
    int rc;

    request.lease_ms = idem_store_lease_min_ms(f->store);
    request.retention_ms = request.lease_ms;
    run(f->store, &request, "x");
    host_pass(&f->host, request.retention_ms);
    arm();
    rc = disarm(idem_purge(f->store, 0, NULL, &why));
    assert_ok(idem_purge(f->store, 0, NULL, &why));
    return rc;
}

/* ---- Queues ---- */

/* A whole cycle: whichever part failed, nothing is left over. */
static int queue_cycle(struct fixture *f)
{
    struct idem_request request = full_request(fresh_key());
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_attempt *attempt = NULL;
    struct idem_queue *queue = NULL;
    struct idem_op *op = NULL;
    bool refused = false;
    int rc;

    arm();
    rc = idem_queue_create(f->store, &queue, &why);
    if (rc == 0) {
        rc = idem_op_begin(&request, &op, &why);
    }
    if (rc == 0) {
        rc = idem_queue_submit(queue, op, &why);
    }
    if (rc == 0) {
        op = idem_queue_reap(queue, -1);
        rc = idem_op_code(op);
        refused = rc != 0;
    }
    if (rc == 0) {
        rc = idem_op_take_attempt(op, &attempt);
    }
    idem_op_destroy(op);
    op = NULL;
    if (rc == 0) {
        rc = idem_op_end(attempt, &outcome, &op, &why);
    }
    if (rc == 0) {
        rc = idem_queue_submit(queue, op, &why);
    }
    if (rc == 0) {
        op = idem_queue_reap(queue, -1);
        rc = idem_op_code(op);
    }
    (void)disarm(rc);
    idem_op_destroy(op);
    idem_attempt_destroy(attempt);
    idem_queue_destroy(queue);
    if (refused) {
        /* The claim was not made: no attempt holds the key. */
        expect(f->store, &request, IDEM_STARTED);
    }
    return rc;
}

static int other_ops(struct fixture *f)
{
    struct idem_attempt *attempt = start(f);
    struct idem_op *ops[2] = {NULL, NULL};
    int rc;

    arm();
    rc = idem_op_renew(attempt, 0, &ops[0], &why);
    if (rc == 0) {
        rc = idem_op_get(idem_str("s"), idem_str("k"), &ops[1], &why);
    }
    (void)disarm(rc);
    idem_op_destroy(ops[0]);
    idem_op_destroy(ops[1]);
    return rc;
}

/* ---- Opening ---- */

static int open_it(struct fixture *f, unsigned flags)
{
    struct idem_open_options options = f->options;
    struct idem_store *store = NULL;
    struct fixture other = {.path = new_place("new.db")};
    int rc;

    options.host.sleep = NULL;
    options.flags = flags;
    arm();
    rc = disarm(idem_open(url_of(&other), &options, &store, &why));
    assert_int_equal(rc == 0, store != NULL);
    idem_close(store);
    return rc;
}

static int open_new(struct fixture *f)
{
    return open_it(f, 0);
}

static int open_threaded(struct fixture *f)
{
    return open_it(f, IDEM_OPEN_THREAD);
}

/* Opens what a store opens at its first read only. */
static int first_read(struct fixture *f)
{
    struct fixture other = *f;
    struct idem_answer *answer = NULL;
    int rc;

    other.path = new_place("read.db");
    open_again(&other);
    arm();
    rc = disarm(
        idem_get(other.store, idem_str(""), idem_str("k"), &answer, &why));
    finish(&other);
    return rc == IDEM_ENOTFOUND ? 0 : rc;
}

static int open_in_memory(struct fixture *f)
{
    struct idem_store *store = NULL;
    int rc;

    arm();
    rc = disarm(idem_memory_open(&f->options, &store, &why));
    idem_close(store);
    return rc;
}

/* ---- All of them ---- */

static const struct scenario scenarios[] = {
    {.name = "open", .call = open_new},
    {.name = "open with a thread", .call = open_threaded},
    {.name = "open, and read", .call = first_read},
    {.name = "open memory", .call = open_in_memory},
    {.name = "begin", .call = begin_anew},
    {.name = "begin, a replay", .call = begin_replay, .recalled = true},
    {.name = "begin, a takeover", .call = begin_takeover},
    {.name = "begin, waiting", .call = begin_waiting},
    {.name = "complete", .verb = 0},
    {.name = "fail", .verb = 1},
    {.name = "release", .verb = 2},
    {.name = "unknown", .verb = 3},
    {.name = "renew", .verb = 4},
    {.name = "expire", .call = expire},
    {.name = "next", .call = next},
    {.name = "once", .call = once},
    {.name = "token", .call = token},
    {.name = "get", .call = get_one},
    {.name = "list", .call = list},
    {.name = "list_page", .call = list_page},
    {.name = "resolve", .call = resolve},
    {.name = "import", .call = import},
    {.name = "purge", .call = purge},
    {.name = "queue", .call = queue_cycle},
    {.name = "other ops", .call = other_ops},
};

/* Fails the n-th allocation of @scenario until it needs no more. What leaks is
 * found at the end of the test, when the store is closed. */
static void fail_each(struct fixture *f, const struct scenario *scenario)
{
    bool again = true;
    long n;

    for (n = 0; again && n < 1000; n++) {
        int rc;

        fail_at = n;
        memset(&why, 0, sizeof(why));
        rc = scenario->call == NULL ? try_verb(f, scenario->verb)
                                    : scenario->call(f);
        again = failed;
        if (rc != (failed ? IDEM_ENOMEM : IDEM_OK) &&
            !(scenario->recalled && rc == IDEM_OK)) {
            fail_with("%s, allocation %ld%s: %s", scenario->name, n,
                      fail_on ? " and on" : "", idem_error_name(rc));
        }
    }
    assert_true(n < 1000);
}

static void fail_all(bool on)
{
    struct fixture f;
    struct idem_request request = full_request("replayed");

    fail_on = on;
    open_virtual(&f);
    run(f.store, &request, "a result");
    EACH(scenario, scenarios) {
        fail_each(&f, scenario);
    }
    /* At the end of all it works as before. */
    expect(f.store, &request, IDEM_REPLAY);
    finish(&f);
}

/* One allocation fails, and the next ones succeed. */
TEST(nomem, isSurvivedOnce)
{
    fail_all(false);
}

/* No allocation succeeds from there on, not even for cleaning up. */
TEST(nomem, isSurvivedFromThereOn)
{
    fail_all(true);
}
