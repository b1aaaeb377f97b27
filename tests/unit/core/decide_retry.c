/* What "run it again" means: said by an owner, wished by a person, and for whoever
 * comes next. */
#include "core/decide.h"
#include "core/record.h"
#include "sample.h"
#include "test.h"

static struct idem_op retry(void)
{
    struct idem_op op = sample_end();

    memset(&op.u.end, 0, sizeof(op.u.end));
    op.u.end.status = IDEM_STATUS_RETRY;
    op.u.end.text = idem_str("the bank was away");
    return op;
}

static struct idem_op reopening(void)
{
    struct idem_op op = sample_resolve();

    op.u.resolve.outcome.status = IDEM_STATUS_RETRY;
    op.u.resolve.outcome.text = idem_str("the key file was missing");
    return op;
}

static struct idem_decision begin_at(const struct idem_record *found,
                                     const struct idem_op *op, int64_t ms)
{
    struct idem_now now = sample_now();
    struct idem_decision decision;

    now.store_ms += ms;
    now.boot_ms += ms;
    decision = sample_decide(found, op, &now);
    assert_code(IDEM_OK, decision.code);
    return decision;
}

/* ---- An owner says so ---- */

/* A waiter is told to begin again and starts nothing; a late copy of the claim is
 * not told that its attempt is at work. */
TEST(retry, isNoStartForThoseWhoDoNotAsk)
{
    struct idem_record found = sample_retry();
    struct idem_op op = sample_begin();
    struct idem_decision decision;

    op.u.begin.join_fence = found.fence;
    decision = begin_at(&found, &op, 0);
    assert_int_equal(decision.verdict, IDEM_BUSY);
    assert_int_equal(decision.lease_left_ms, 0);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);

    op = sample_begin();
    memcpy(op.nonce, found.nonce, sizeof(op.nonce));
    decision = begin_at(&found, &op, 0);
    assert_int_equal(decision.verdict, IDEM_BUSY);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);
}

/* ---- A budget of failures ---- */

/* An end of @found, which is in progress, with a budget of @max. */
static struct idem_op failure_of(const struct idem_record *found, uint32_t max)
{
    struct idem_op op = retry();

    op.fence = found->fence;
    memcpy(op.nonce, found->nonce, sizeof(op.nonce));
    op.u.end.failures_max = max;
    return op;
}

/* Said again it is done already, and counts once; what another end would have come to
 * is no copy of it. */
TEST(budget, countsAnEndOnce)
{
    struct idem_record found = sample_record();
    struct idem_op op = failure_of(&found, 2);
    struct idem_record next = sample_decide(&found, &op, NULL).next;
    struct idem_decision decision = sample_decide(&next, &op, NULL);

    assert_code(IDEM_OK, decision.code);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);
    assert_int_equal(next.failures, 1);

    found.failures = 1;
    next = sample_decide(&found, &op, NULL).next;
    assert_int_equal(next.status, IDEM_STATUS_FAILED);
    decision = sample_decide(&next, &op, NULL);
    assert_code(IDEM_OK, decision.code);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);
    op.u.end.failures_max = 0;
    assert_code(IDEM_ELOST, sample_decide(&next, &op, NULL).code);
    op.u.end.failures_max = 2;
    op.u.end.text = idem_str("another reason");
    assert_code(IDEM_ELOST, sample_decide(&next, &op, NULL).code);
    op = failure_of(&found, 2);
    next.by_lease = true; /* So it did not say it. */
    assert_int_equal(sample_decide(&next, &op, NULL).change,
                     IDEM_CHANGE_REPLACE);
}

/* It is gone with a life that is over, and with a person's decision that it did nothing. */
TEST(budget, isOfOneLife)
{
    struct idem_record found = sample_ended(IDEM_STATUS_RELEASED, 3600000);
    struct idem_op op = sample_begin();

    found.failures = 2;
    assert_int_equal(begin_at(&found, &op, 0).next.failures, 2);
    assert_int_equal(begin_at(&found, &op, 3600000).next.failures, 0);

    found = sample_ended(IDEM_STATUS_FAILED, 0);
    found.failures = 2;
    op = sample_resolve();
    op.u.resolve.outcome.status = IDEM_STATUS_RELEASED;
    assert_int_equal(sample_decide(&found, &op, NULL).next.failures, 0);
}

/* ---- A pause ---- */

static const int64_t pause_ms = 600000;

/* @found, which said at sample_now() that it is to be run again after a pause. */
static struct idem_record paused(void)
{
    struct idem_record found = sample_record();
    struct idem_op op = retry();

    op.u.end.retry_after_ms = pause_ms;
    return sample_decide(&found, &op, NULL).next;
}

/* On another boot it is over once the store's time is certainly past it; one that only
 * a wrong clock can have written is shortened, and still keeps others away. */
TEST(pause, isJudgedByTheClocksOfLeases)
{
    struct idem_record found = paused();
    struct idem_op op = sample_begin();
    struct idem_decision decision;

    memset(found.boot_id, 'B', sizeof(found.boot_id));
    decision = begin_at(&found, &op, pause_ms + 4999);
    assert_int_equal(decision.verdict, IDEM_BUSY);
    decision = begin_at(&found, &op, pause_ms + 5000);
    assert_int_equal(decision.verdict, IDEM_STARTED);

    found.lease_end_ms += 365 * 86400000LL;
    decision = begin_at(&found, &op, 0);
    assert_int_equal(decision.verdict, IDEM_BUSY);
    assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
    assert_true(decision.next.retry);
    assert_int_equal(decision.next.lease_end_ms, NOW_MS + pause_ms + 1800000);
}

/* It counts from the end of the work, however late the store is told of that. */
TEST(pause, countsFromTheEndOfTheWork)
{
    struct idem_record found = sample_record();
    struct idem_op op = retry();
    struct idem_op begin = sample_begin();
    struct idem_record next;

    op.u.end.retry_after_ms = pause_ms;
    op.u.end.ended_boot_ms = NOW_BOOT_MS - 1000;
    next = sample_decide(&found, &op, NULL).next;
    assert_int_equal(begin_at(&next, &begin, 0).lease_left_ms, pause_ms - 1000);
    op.u.end.ended_boot_ms = NOW_BOOT_MS - pause_ms;
    next = sample_decide(&found, &op, NULL).next;
    assert_int_equal(begin_at(&next, &begin, 0).verdict, IDEM_STARTED);
}

/* Nobody is late in it. A person need not wait for it, and a mended request neither. */
TEST(pause, isNobodysDelay)
{
    struct idem_record found = paused();
    struct idem_now now = sample_now();
    struct idem_op op = reopening();
    struct idem_op begin = sample_begin();
    struct idem_decision decision;

    found.expected_ms = NOW_MS - 1;
    assert_false(idem__decide_overdue(&found, &now));
    now.store_ms += pause_ms;
    now.boot_ms += pause_ms;
    assert_true(idem__decide_overdue(&found, &now));

    decision = sample_decide(&found, &op, NULL);
    assert_code(IDEM_OK, decision.code);
    assert_int_equal(begin_at(&decision.next, &begin, 0).verdict, IDEM_STARTED);
    op = sample_resolve();
    assert_code(IDEM_OK, sample_decide(&found, &op, NULL).code);
}

/* ---- What may have happened ---- */

/* @found, released by its owner at sample_now(). */
static struct idem_record released(const struct idem_record *found)
{
    struct idem_op op = sample_end();

    memset(&op.u.end, 0, sizeof(op.u.end));
    op.fence = found->fence;
    memcpy(op.nonce, found->nonce, sizeof(op.nonce));
    op.u.end.status = IDEM_STATUS_RELEASED;
    return sample_decide(found, &op, NULL).next;
}

/* It does not hang on the history, which holds eight, and a person ends it. */
TEST(doubt, outlivesTheHistory)
{
    struct idem_record found = sample_ended(IDEM_STATUS_RELEASED, 3600000);
    struct idem_op op = sample_begin();
    struct idem_op resolved = sample_resolve();
    struct idem_record next;
    size_t i;

    found.history_len = IDEM_HISTORY_MAX;
    for (i = 0; i < IDEM_HISTORY_MAX; i++) {
        found.history[i].fence = 40 - i;
        found.history[i].end = IDEM_PAST_RELEASED;
    }
    assert_false(begin_at(&found, &op, 0).takeover);
    found.in_doubt = 12;
    next = begin_at(&found, &op, 0).next;
    assert_true(begin_at(&found, &op, 0).takeover);

    next.status = IDEM_STATUS_UNKNOWN;
    resolved.fence = next.fence;
    next = sample_decide(&next, &resolved, NULL).next;
    assert_int_equal(next.in_doubt, 0);
    next = released(&next);
    next.status = IDEM_STATUS_RELEASED;
    memset(op.nonce, 'q', sizeof(op.nonce));
    assert_false(begin_at(&next, &op, 0).takeover);
}

/* An older program that records a person's decision keeps the field: what is older
 * than the decision no longer counts. */
TEST(doubt, endsWithADecisionOfAnOlderProgram)
{
    struct idem_record found = sample_ended(IDEM_STATUS_RELEASED, 3600000);
    struct idem_op op = sample_begin();

    found.in_doubt = 40;
    found.history_len = 1;
    found.history[0].fence = 41;
    found.history[0].end = IDEM_PAST_RESOLVED;
    assert_false(begin_at(&found, &op, 0).takeover);
    found.in_doubt = 42;
    assert_true(begin_at(&found, &op, 0).takeover);
}

/* A copy that is imported over what was released brings no doubt to an end, unless
 * it knows of that attempt. */
TEST(doubt, outlivesAnImport)
{
    struct idem_record found = sample_ended(IDEM_STATUS_RELEASED, 9000000);
    struct idem_record record = sample_ended(IDEM_STATUS_RELEASED, 60000);
    struct idem_op op = {.verb = IDEM_OP_IMPORT, .u.import.record = &record};
    struct idem_decision decision;

    found.in_doubt = 40;
    found.retention_ms = 9000000;
    record.fence = 43;
    decision = sample_decide(&found, &op, NULL);
    assert_int_equal(decision.next.in_doubt, 40);
    assert_true(decision.next.expires_ms == found.expires_ms);
    assert_int_equal(decision.next.retention_ms, 9000000);
    record.history_len = 1;
    record.history[0].fence = 41;
    record.history[0].end = IDEM_PAST_RESOLVED;
    decision = sample_decide(&found, &op, NULL);
    assert_int_equal(decision.next.in_doubt, 0);
    assert_true(decision.next.expires_ms == record.expires_ms);
}

/* ---- Clocks ---- */

/* The owner renews as ever, and its renewal mends the end, too. An end that stays
 * because it was asked for stays with its length, so nobody takes it for wrong. */
TEST(lease, isMendedByARenewal)
{
    struct idem_record found = sample_record();
    struct idem_op op = retry();
    struct idem_decision decision;

    found.lease_end_ms = NOW_MS + 365 * 86400000LL;
    op.verb = IDEM_OP_RENEW;
    op.u.renew.lease_ms = 60000;
    decision = sample_decide(&found, &op, NULL);
    assert_true(decision.next.lease_end_ms == NOW_MS + 1800000 + 60000);

    found.lease_ms = 86400000;
    sample_lease(&found, 86400000);
    op.u.renew.lease_ms = 2000;
    decision = sample_decide(&found, &op, NULL);
    assert_true(decision.next.lease_end_ms == NOW_MS + 86400000);
    assert_int_equal(decision.next.lease_ms, 86400000);
}

/* Hosts do not agree on the time: no time of a record goes behind an earlier one,
 * in the record or in its history. */
TEST(times, neverGoBack)
{
    struct idem_record found = sample_retry();
    struct idem_op op = sample_begin();
    struct idem_record next;
    struct idem_record record = sample_record();
    struct idem_op done = sample_end();

    record.created_ms = record.started_ms = NOW_MS + 300;
    next = sample_decide(&record, &done, NULL).next;
    assert_int_equal(next.ended_ms, NOW_MS + 300);
    done = retry();
    next = sample_decide(&record, &done, NULL).next;
    assert_int_equal(next.ended_ms, NOW_MS + 300);

    found.ended_ms = NOW_MS + 300;
    next = begin_at(&found, &op, 0).next;
    assert_int_equal(next.history[0].ended_ms, NOW_MS + 300);
    assert_int_equal(next.started_ms, NOW_MS + 300);

    record.on_expired_lease = op.u.begin.on_expired_lease = IDEM_RERUN;
    sample_lease(&record, 0);
    next = begin_at(&record, &op, 0).next;
    assert_int_equal(next.history[0].ended_ms, NOW_MS + 300);
    assert_int_equal(next.started_ms, NOW_MS + 300);

    found = sample_ended(IDEM_STATUS_RELEASED, 3600000);
    found.ended_ms = NOW_MS + 300;
    next = begin_at(&found, &op, 0).next;
    assert_int_equal(next.started_ms, NOW_MS + 300);
}
