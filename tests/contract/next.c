/* Ending one attempt and claiming the next key in one step. */
#include "contract.h"

#include <sys/wait.h>
#include <unistd.h>

static const enum idem_status ends[] = {
    IDEM_STATUS_COMPLETED,
    IDEM_STATUS_FAILED,
    IDEM_STATUS_RETRY,
    IDEM_STATUS_UNKNOWN,
};

static struct idem_outcome outcome_of(enum idem_status status)
{
    struct idem_outcome outcome = {.status = status};

    if (status == IDEM_STATUS_COMPLETED) {
        outcome.result.bytes = idem_str("a result");
    } else {
        outcome.text = idem_str("a text");
    }
    return outcome;
}

/* An attempt about "a", and the attempt that idem_next() returned for "b". */
struct pair {
    struct fixture f;
    struct idem_request a;
    struct idem_request b;
    struct idem_attempt *attempt;
    struct idem_attempt *next;
};

static void open_pair_of(struct pair *p, struct idem_request a)
{
    p->a = a;
    p->b = claim("b");
    p->next = NULL;
    open_virtual(&p->f);
    p->attempt = begin(p->f.store, &p->a, IDEM_STARTED);
}

static void open_pair(struct pair *p)
{
    open_pair_of(p, claim("a"));
}

static void finish_pair(struct pair *p)
{
    finish(&p->f);
}

#define TEST_PAIR(suite, condition)                                            \
    TEST_WITH(suite, condition, struct pair, p, open_pair, finish_pair)

/* Ends the attempt with @status, and begins "b". */
static int next_of(struct pair *p, enum idem_status status)
{
    struct idem_outcome outcome = outcome_of(status);
    int rc = idem_next(p->attempt, &outcome, &p->b, &p->next, &why);

    freed_later(p->next);
    return rc;
}

static enum idem_status shown_status(struct idem_store *store, const char *key)
{
    const struct idem_record *record = get(store, key);
    enum idem_status status = idem_record_status(record);

    return status;
}

static void expect_no_record(struct idem_store *store, const char *key)
{
    struct idem_answer *answer = NULL;

    assert_code(IDEM_ENOTFOUND,
                idem_get(store, idem_str(""), idem_str(key), &answer, &why));
}

/* A worker that takes one key after the other: each way to end is on record when
 * the next is STARTED, and the attempt shows it. */
TEST_VIRTUAL(next, endsOneAndStartsAnother)
{
    struct idem_request request = claim("k0");
    size_t i;
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    for (i = 0; i < COUNT(ends); i++) {
        struct idem_outcome outcome = outcome_of(ends[i]);
        struct idem_attempt *next = NULL;
        const char *key = numbered("k", i + 1);

        request = claim(key);
        assert_ok(idem_next(attempt, &outcome, &request, &next, &why));
        assert_int_equal(next->verdict, IDEM_STARTED);
        assert_int_equal(next->attempts, 1);
        assert_text(next->record->key, key);
        assert_true(idem_attempt_lease_left_ms(next) > 0);
        assert_int_equal(idem_record_status(attempt->record), ends[i]);
        assert_int_equal(idem_attempt_lease_left_ms(attempt), 0);
        assert_int_equal(shown_status(f->store, numbered("k", i)), ends[i]);
        assert_int_equal(shown_status(f->store, key), IDEM_STATUS_IN_PROGRESS);
        if (ends[i] == IDEM_STATUS_COMPLETED) {
            assert_text(attempt->record->result.bytes, "a result");
        }
        assert_ok(idem_end(attempt, &outcome, &why)); /* The same again. */
        attempt = freed_later(next);
    }
    assert_ok(complete(attempt, "the last"));
}

/* A release may also be followed by the next key. */
TEST_PAIR(next, mayRelease)
{
    assert_ok(next_of(p, IDEM_STATUS_RELEASED));
    assert_int_equal(p->next->verdict, IDEM_STARTED);
    assert_int_equal(p->attempt->record->status, IDEM_STATUS_RELEASED);
    p->attempt = begin(p->f.store, &p->a, IDEM_STARTED);
    assert_false(p->attempt->takeover);
}

/* The verdict on the next key is returned, and the end is on record. */
TEST(next, tellsEveryVerdict)
{
    static const struct {
        enum idem_status status; /* How "b" was ended; 0: not. */
        enum idem_verdict verdict;
    } cases[] = {
        {IDEM_STATUS_COMPLETED, IDEM_REPLAY},
        {IDEM_STATUS_FAILED, IDEM_FAILED},
        {IDEM_STATUS_UNKNOWN, IDEM_UNKNOWN},
        {(enum idem_status)0, IDEM_BUSY},
        {IDEM_STATUS_RETRY, IDEM_STARTED},
        {IDEM_STATUS_RELEASED, IDEM_STARTED},
    };

    EACH(row, cases) {
        struct idem_attempt *other;
        struct pair p;

        open_pair(&p);
        other = begin(p.f.store, &p.b, IDEM_STARTED);
        if (row->status != 0) {
            struct idem_outcome outcome = outcome_of(row->status);

            assert_ok(idem_end(other, &outcome, &why));
        }
        assert_ok(next_of(&p, IDEM_STATUS_COMPLETED));
        assert_int_equal(p.next->verdict, row->verdict);
        assert_int_equal(p.next->takeover, row->status == IDEM_STATUS_RETRY);
        assert_int_equal(shown_status(p.f.store, "a"), IDEM_STATUS_COMPLETED);
        if (p.next->verdict == IDEM_REPLAY) {
            assert_text(p.next->record->result.bytes, "a result");
        }
        finish_pair(&p);
    }
}

/* If both are about one key, the claim finds the end. */
TEST(next, mayNameTheSameKey)
{
    static const struct {
        enum idem_status status;
        enum idem_verdict verdict;
    } cases[] = {
        {IDEM_STATUS_COMPLETED, IDEM_REPLAY},
        {IDEM_STATUS_FAILED, IDEM_FAILED},
        {IDEM_STATUS_UNKNOWN, IDEM_UNKNOWN},
        {IDEM_STATUS_RELEASED, IDEM_STARTED},
        {IDEM_STATUS_RETRY, IDEM_STARTED},
    };

    EACH(row, cases) {
        struct pair p;

        open_pair(&p);
        p.b = p.a;
        assert_ok(next_of(&p, row->status));
        assert_int_equal(p.next->verdict, row->verdict);
        assert_int_equal(p.next->takeover, row->status == IDEM_STATUS_RETRY);
        finish_pair(&p);
    }
}

/* An owner that lost its key starts nothing: the next key is as free as before, and
 * the record of the other owner as it was. */
TEST(next, isGivenBackWhereTheEndIsLost)
{
    struct idem_attempt *owner;
    struct pair p;

    open_pair_of(&p, rerun("a"));
    host_pass(&p.f.host, 60000);
    owner = begin(p.f.store, &p.a, IDEM_STARTED);
    assert_code(IDEM_ELOST, next_of(&p, IDEM_STATUS_COMPLETED));
    assert_null(p.next);
    assert_int_equal(idem_attempt_lease_left_ms(p.attempt), 0);
    assert_int_equal(idem_record_status(p.attempt->record),
                     IDEM_STATUS_IN_PROGRESS);
    assert_int_equal(shown_status(p.f.store, "a"), IDEM_STATUS_IN_PROGRESS);
    p.next = begin(p.f.store, &p.b, IDEM_STARTED);
    assert_false(p.next->takeover);
    assert_ok(complete(owner, "the owner's"));
    finish_pair(&p);
}

/* A key that was completed is not touched when the end before it is lost. */
TEST_PAIR(next, leavesWhatItDidNotClaim)
{
    run(p->f.store, &p->b, "b's");
    assert_ok(complete(p->attempt, "another result"));
    assert_code(IDEM_ELOST, next_of(p, IDEM_STATUS_COMPLETED));
    assert_null(p->next);
    assert_int_equal(shown_status(p->f.store, "b"), IDEM_STATUS_COMPLETED);
}

static void refused(struct fixture *f, struct idem_attempt *attempt,
                    const struct idem_outcome *outcome,
                    const struct idem_request *request)
{
    struct idem_attempt *next = NULL;

    memset(&why, 0, sizeof(why));
    assert_code(IDEM_EINVALID,
                idem_next(attempt, outcome, request, &next, &why));
    assert_null(next);
    assert_true(why.text[0] != '\0');
    expect_no_record(f->store, "next");
}

/* If one of the two is not valid, neither is done. */
TEST_VIRTUAL(next, doesNothingWhereAnArgumentIsWrong)
{
    struct idem_outcome done = outcome_of(IDEM_STATUS_COMPLETED);
    struct idem_outcome in_progress = outcome_of(IDEM_STATUS_IN_PROGRESS);
    struct idem_outcome none = {.status = (enum idem_status)0};
    struct idem_request good = claim("next");
    struct idem_request no_policy = good;
    struct idem_request no_key = good;
    struct idem_request a = claim("a");
    struct idem_attempt *attempt;
    struct idem_attempt *busy;

    no_policy.on_expired_lease = IDEM_ON_EXPIRED_UNSET;
    no_key.key = idem_str("");
    attempt = begin(f->store, &a, IDEM_STARTED);
    busy = begin(f->store, &a, IDEM_BUSY);
    refused(f, attempt, &done, &no_policy);
    refused(f, attempt, &done, &no_key);
    refused(f, attempt, &in_progress, &good);
    refused(f, attempt, &none, &good);
    refused(f, busy, &done, &good);
    assert_int_equal(shown_status(f->store, "a"), IDEM_STATUS_IN_PROGRESS);
    assert_ok(complete(attempt, "a result"));
}

/* Only the store knows which lease is too short: the end is on record, as the attempt
 * shows, and nothing was started. */
TEST_PAIR(next, saysWhichOfTheTwoFailed)
{
    p->b.lease_ms = IDEM_LEASE_MIN_MS;
    /* In other stores every valid lease is long enough. */
    if (idem_store_lease_min_ms(p->f.store) > IDEM_LEASE_MIN_MS) {
        assert_code(IDEM_EINVALID, next_of(p, IDEM_STATUS_COMPLETED));
        assert_non_null(strstr(why.text, "lease"));
        assert_null(p->next);
        assert_int_equal(idem_record_status(p->attempt->record),
                         IDEM_STATUS_COMPLETED);
        expect_no_record(p->f.store, "b");
    }
}

/* The holder of a token goes on with the next key as the owner would. */
TEST_PAIR(next, goesOnByToken)
{
    struct idem_attempt *owner;
    char token[IDEM_TOKEN_MAX];

    owner = p->attempt;
    assert_ok(idem_attempt_token(owner, token));
    p->attempt = by_token(p->f.store, token);
    assert_ok(next_of(p, IDEM_STATUS_COMPLETED));
    assert_int_equal(p->next->verdict, IDEM_STARTED);
    assert_int_equal(p->attempt->record->status, IDEM_STATUS_COMPLETED);
    assert_ok(idem_attempt_token(p->next, token));
    p->attempt = by_token(p->f.store, token);
    assert_ok(complete(p->attempt, "by token"));
    assert_int_equal(shown_status(p->f.store, "b"), IDEM_STATUS_COMPLETED);
}

/* idem_next() waits for another's attempt as a begin does, with its own end on record. */
TEST_PAIR(next, waitsAfterTheEnd)
{
    expect(p->f.store, &p->b, IDEM_STARTED);
    p->b.wait_ms = 3000;
    assert_ok(next_of(p, IDEM_STATUS_COMPLETED));
    assert_int_equal(p->next->verdict, IDEM_BUSY);
    assert_true(p->f.host.slept_ms >= 3000);
    assert_int_equal(shown_status(p->f.store, "a"), IDEM_STATUS_COMPLETED);
}

/* The thread of a store does the same. */
TEST(next, isDoneByTheThread)
{
    struct idem_outcome done = outcome_of(IDEM_STATUS_COMPLETED);
    struct idem_request request = claim("k0");
    struct idem_attempt *attempt;
    struct fixture f;
    int i;

    open_real(&f);
    finish(&f);
    f.options.flags = IDEM_OPEN_THREAD;
    open_again(&f);
    attempt = begin(f.store, &request, IDEM_STARTED);
    for (i = 1; i <= 20; i++) {
        struct idem_attempt *next = NULL;

        request = claim(numbered("k", i));
        assert_ok(idem_next(attempt, &done, &request, &next, &why));
        assert_int_equal(next->verdict, IDEM_STARTED);
        attempt = freed_later(next);
    }
    assert_int_equal(count(f.store, NULL), 21);
    finish(&f);
}

/* A handle that crossed a fork() touches nothing. */
TEST_PAIR(next, doesNotCrossAFork)
{
    int status;
    pid_t pid;

    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(next_of(p, IDEM_STATUS_COMPLETED) == IDEM_EINVALID &&
                      p->next == NULL
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(shown_status(p->f.store, "a"), IDEM_STATUS_IN_PROGRESS);
    expect_no_record(p->f.store, "b");
    assert_ok(complete(p->attempt, "a result"));
}
