/* The next key does not start before the end of the last attempt is on record. */
#include "claims.h"
#include "host.h"
#include "script.h"
#include "test.h"

struct plan {
    int end[8]; /* What ends of "a" are answered, in their order; then 0. */
    int begin[8];
    bool apply;     /* What fails is done all the same. */
    int release[2]; /* What releases of "b" are answered; then 0. */
    bool keeps_end;
    unsigned ends;
    unsigned begins;
    unsigned releases; /* Of "b". */
    unsigned together; /* Most ops that were pending at once. */
};

static unsigned pending(const struct script *script)
{
    const struct idem_op *op;
    unsigned n = 0;

    for (op = script->pending; op != NULL; op = op->next) {
        n++;
    }
    return n;
}

static bool is_about(const struct idem_op *op, const char *key)
{
    return op->key.len == strlen(key) &&
           memcmp(op->key.base, key, op->key.len) == 0;
}

static enum script_does serve(struct script *script, struct idem_op *op)
{
    struct plan *plan = script->ctx;
    bool is_end = op->verb == IDEM_OP_END;
    int code = 0;

    plan->together =
        pending(script) > plan->together ? pending(script) : plan->together;
    if (is_end && is_about(op, "b")) {
        assert_int_equal(op->u.end.status, IDEM_STATUS_RELEASED);
        code = plan->releases < COUNT(plan->release)
                   ? plan->release[plan->releases]
                   : 0;
        plan->releases++;
    } else if (is_end) {
        code = plan->ends < COUNT(plan->end) ? plan->end[plan->ends] : 0;
        plan->ends++;
        if (plan->keeps_end) {
            return SCRIPT_KEEPS;
        }
    } else if (is_about(op, "b")) {
        code =
            plan->begins < COUNT(plan->begin) ? plan->begin[plan->begins] : 0;
        plan->begins++;
    }
    if (code == 0 || plan->apply) {
        script_relay(script, op);
    }
    if (code != 0) {
        if (!is_end && plan->apply) {
            op->fence = op->record->fence;
        }
        (void)idem__op_fail(op, code, "as planned");
    }
    return SCRIPT_ANSWERS;
}

struct fixture {
    struct script script;
    struct host host;
    struct idem_store *store;
    struct idem_attempt *attempt; /* Of "a". */
    struct idem_attempt *next;
};

static void start(struct fixture *f, struct plan *plan)
{
    struct idem_request request = claim("a");
    struct idem_open_options options;

    memset(f, 0, sizeof(*f));
    host_init(&f->host);
    options = host_options(&f->host, true);
    options.timeout_ms = 300;
    f->store = script_open(&f->script, serve, &options);
    f->script.ctx = plan;
    assert_ok(idem_begin(f->store, &request, &f->attempt, &why));
}

static int go_on(struct fixture *f)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED,
                                   .result.bytes = idem_str("done")};
    struct idem_request request = claim("b");

    return idem_next(f->attempt, &outcome, &request, &f->next, &why);
}

static void finish(struct fixture *f)
{
    idem_attempt_destroy(f->attempt);
    idem_attempt_destroy(f->next);
    idem_close(f->store);
}

/* The status of @key in the store behind the script; 0: there is no record. */
static enum idem_status behind(struct fixture *f, const char *key)
{
    struct idem_answer *answer;
    enum idem_status status;
    int rc =
        idem_get(f->script.inner, idem_str(""), idem_str(key), &answer, &why);

    if (rc == IDEM_ENOTFOUND) {
        return (enum idem_status)0;
    }
    assert_ok(rc);
    status = idem_answer_record(answer)->status;
    idem_answer_destroy(answer);
    return status;
}

/* Both are handed over before either is done: one flush, one round trip. */
TEST(next, submitsBothTogether)
{
    struct plan plan = {.apply = false};
    struct fixture f;

    start(&f, &plan);
    assert_ok(go_on(&f));
    assert_int_equal(f.next->verdict, IDEM_STARTED);
    assert_int_equal(plan.together, 2);
    assert_int_equal(plan.ends, 1);
    assert_int_equal(plan.begins, 1);
    finish(&f);
}

/* Whatever the end was answered but 0, the claim is released, and the caller can end
 * the attempt again and go on. */
TEST(next, startsNothingWithoutTheEnd)
{
    static const int codes[] = {IDEM_EUNAVAILABLE, IDEM_EFULL, IDEM_ECORRUPT,
                                IDEM_ECONFIG, IDEM_ENOMEM};

    EACH(code, codes) {
        struct plan plan = {.end = {*code}};
        struct fixture f;

        start(&f, &plan);
        assert_code(*code, go_on(&f));
        assert_string_equal(why.text, "as planned");
        assert_null(f.next);
        assert_int_equal(plan.releases, 1);
        assert_int_equal(behind(&f, "a"), IDEM_STATUS_IN_PROGRESS);
        assert_int_equal(behind(&f, "b"), IDEM_STATUS_RELEASED);
        assert_true(idem_attempt_lease_left_ms(f.attempt) > 0);
        assert_ok(go_on(&f));
        assert_int_equal(f.next->verdict, IDEM_STARTED);
        assert_false(f.next->takeover);
        assert_int_equal(behind(&f, "a"), IDEM_STATUS_COMPLETED);
        finish(&f);
    }
}

/* The claim of the next is released until the store has answered that; a store that did
 * not answer for the end is told once, for the caller has waited for it already. */
TEST(next, waitsOnceForAStoreThatIsAway)
{
    static const int codes[] = {IDEM_EUNAVAILABLE, IDEM_EUNKNOWN,
                                IDEM_ECORRUPT};

    EACH(code, codes) {
        struct plan plan = {.release = {IDEM_EUNKNOWN, IDEM_EUNKNOWN}};
        struct fixture f;

        EACH(one, plan.end) {
            *one = *code;
        }
        start(&f, &plan);
        assert_code(*code, go_on(&f));
        assert_null(f.next);
        assert_int_equal(plan.releases, *code == IDEM_ECORRUPT ? 3 : 1);
        finish(&f);
    }
}

/* The claim fails and the end does not: the attempt says so, and the code is that of
 * the claim. A claim that may have been made is given back. */
TEST(next, saysThatTheEndIsOnRecord)
{
    int unknown;

    for (unknown = 0; unknown < 2; unknown++) {
        struct plan plan = {.apply = unknown != 0};
        int code = unknown ? IDEM_EUNKNOWN : IDEM_EFULL;
        struct fixture f;

        EACH(one, plan.begin) {
            *one = code;
        }
        start(&f, &plan);
        assert_code(code, go_on(&f));
        assert_null(f.next);
        assert_int_equal(idem_record_status(f.attempt->record),
                         IDEM_STATUS_COMPLETED);
        assert_int_equal(idem_attempt_lease_left_ms(f.attempt), 0);
        assert_int_equal(plan.releases, unknown);
        assert_int_equal(behind(&f, "b"),
                         unknown ? IDEM_STATUS_RELEASED : (enum idem_status)0);
        finish(&f);
    }
}
