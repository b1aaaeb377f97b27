/* What is unknown is asked again, as the same request, until it is known or the
 * time is over; what is known is not asked twice. */
#include "claims.h"
#include "host.h"
#include "sample.h"
#include "script.h"
#include "test.h"
#include "threads.h"

struct plan {
    int codes[8]; /* Answers in their order; then the relay's. */
    unsigned len;
    bool apply; /* Do it all the same. */
};

static enum script_does follow_plan(struct script *script, struct idem_op *op)
{
    struct plan *plan = script->ctx;
    unsigned n = script->served - 1;
    int code = n < plan->len ? plan->codes[n] : 0;

    if (code == 0 || plan->apply) {
        script_relay(script, op);
    }
    if (code != 0) {
        (void)idem__op_fail(op, code, "as planned");
    }
    return SCRIPT_ANSWERS;
}

/* A store that @serve serves, with @ctx; an operation has a second of @host's clock. */
static struct idem_store *open_served(struct script *script, script_fn *serve,
                                      void *ctx, struct host *host)
{
    struct idem_open_options options;
    struct idem_store *store;

    host_init(host);
    options = host_options(host, true);
    options.timeout_ms = 1000;
    store = script_open(script, serve, &options);
    script->ctx = ctx;
    return store;
}

static void assert_one_nonce(const struct script *script)
{
    unsigned n;

    for (n = 1; n < script->served && n < COUNT(script->nonces); n++) {
        assert_memory_equal(script->nonces[n], script->nonces[0], 16);
    }
}

/* A begin of unknown fate is asked again with the nonce it had, whether it was
 * made or not; the pauses grow and are slept on the host's clock. */
TEST(settle, asksAgainWithTheSameNonce)
{
    int apply;

    for (apply = 0; apply < 2; apply++) {
        struct plan plan = {{IDEM_EUNKNOWN, IDEM_EUNKNOWN, IDEM_EUNKNOWN},
                            3,
                            apply != 0};
        struct host host;
        struct script script;
        struct idem_store *store =
            open_served(&script, follow_plan, &plan, &host);
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;

        assert_ok(idem_begin(store, &request, &attempt, &why));
        assert_int_equal(attempt->verdict, IDEM_STARTED);
        assert_false(attempt->takeover);
        assert_int_equal(attempt->attempts, 1);
        assert_int_equal(script.served, 4);
        assert_one_nonce(&script);
        assert_int_equal(host.sleeps, 3);
        assert_int_equal(host.slept_ms, 5 + 10 + 20);
        /* The lease counts from the first time it was asked for. */
        assert_true(idem_attempt_lease_left_ms(attempt) <= 60000 - 35);
        idem_attempt_destroy(attempt);
        idem_close(store);
    }
}

static enum script_does never_know(struct script *script, struct idem_op *op)
{
    int *code = script->ctx;

    (void)idem__op_fail(op, script->served == 1 ? IDEM_EUNKNOWN : *code,
                        "as planned");
    return SCRIPT_ANSWERS;
}

/* When the time is over it is unknown still, also if the last word was "nothing
 * was done": an earlier copy may have been. */
TEST(settle, staysUnknownWhenTheTimeIsOver)
{
    static int codes[] = {IDEM_EUNKNOWN, IDEM_EUNAVAILABLE};

    EACH(one, codes) {
        struct host host;
        struct script script;
        struct idem_store *store = open_served(&script, never_know, one, &host);
        struct idem_request request = claim("k");
        struct idem_attempt *attempt = NULL;

        assert_code(IDEM_EUNKNOWN, idem_begin(store, &request, &attempt, &why));
        assert_int_equal(why.code, IDEM_EUNKNOWN);
        assert_true(host.slept_ms < 1000);
        assert_true(script.served > 4);
        assert_one_nonce(&script);
        assert_null(attempt);
        idem_close(store);
    }
}

/* From then on an operation has the time that was set. */
TEST(settle, hasTheTimeThatWasSet)
{
    static int code = IDEM_EUNKNOWN;
    struct host host;
    struct script script;
    struct idem_store *store = open_served(&script, never_know, &code, &host);
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = NULL;

    assert_ok(idem_store_set_timeout(store, 100, &why));
    assert_code(IDEM_EUNKNOWN, idem_begin(store, &request, &attempt, &why));
    assert_between(host.slept_ms, 1, 99);
    idem_close(store);
}

/* Makes the claim, and never says so; answers what else is asked. */
static enum script_does claim_unheard(struct script *script, struct idem_op *op)
{
    unsigned *ends = script->ctx;

    script_relay(script, op);
    if (op->verb == IDEM_OP_BEGIN) {
        op->fence = op->record->fence;
        (void)idem__op_fail(op, IDEM_EUNKNOWN, "as planned");
    } else {
        assert_int_equal(op->verb, IDEM_OP_END);
        assert_int_equal(op->u.end.status, IDEM_STATUS_RELEASED);
        assert_memory_equal(op->nonce, script->nonces[0], 16);
        assert_int_equal(op->error.code, 0);
        ++*ends;
    }
    return SCRIPT_ANSWERS;
}

/* ROW(12) A claim that was made, as its caller never heard, is given back: the
 * key waits for no lease. */
TEST(settle, givesBackWhatMayHaveBeenClaimed)
{
    struct host host;
    struct script script;
    unsigned ends = 0;
    struct idem_store *store =
        open_served(&script, claim_unheard, &ends, &host);
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = NULL;

    assert_code(IDEM_EUNKNOWN, idem_begin(store, &request, &attempt, &why));
    assert_string_equal(why.text, "as planned");
    assert_null(attempt);
    assert_int_equal(ends, 1);
    idem_close(store);
}

/* ---- Timeouts ---- */

enum {
    BOUND_MS = 20000
};

static enum script_does keep_first(struct script *script, struct idem_op *op)
{
    if (script->served == 1) {
        return SCRIPT_KEEPS;
    }
    script_relay(script, op);
    return SCRIPT_ANSWERS;
}

/* An end that the store neither makes nor refuses in time is unknown, and the
 * attempt may be asked to end again. */
TEST(timeout, leavesTheAttemptToItsCaller)
{
    struct script script;
    struct idem_store *store = script_open(&script, keep_first, NULL);
    struct idem_request request = claim("k");
    struct idem_attempt *attempt = NULL;
    long long before_ms = now_ms();

    assert_code(IDEM_EUNKNOWN, idem_begin(store, &request, &attempt, &why));
    assert_why("not known");
    assert_null(attempt);
    assert_true(now_ms() - before_ms >= 200);
    assert_in_time(now_ms() - before_ms, BOUND_MS);
    assert_ok(idem_begin(store, &request, &attempt, &why));
    idem_attempt_destroy(attempt);
    script_release(&script);
    idem_close(store);
}
