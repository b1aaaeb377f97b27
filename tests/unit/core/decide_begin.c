/* The decisions about a claim that calls of the library do not show. tests/contract has the
 * table of verdicts, and tests/fuzz/decide.c has it a second time. */
#include "core/decide.h"
#include "core/identity.h"
#include "sample.h"
#include "test.h"

static struct idem_decision decide(const struct idem_record *found,
                                   const struct idem_op *op,
                                   const struct idem_now *now)
{
    struct idem_decision decision = sample_decide(found, op, now);

    assert_code(IDEM_OK, decision.code);
    return decision;
}

/* ---- Doubts ---- */

/* However often others gave the key back since: while no person has looked, an
 * attempt that stopped without a word is not forgotten. */
TEST(begin, remembersThatItMayHaveHappened)
{
    struct idem_record record = sample_record();
    struct idem_op op = sample_begin();
    int i;

    op.u.begin.attempts_max = 0;
    op.u.begin.on_expired_lease = IDEM_RERUN;
    record.on_expired_lease = IDEM_RERUN;
    sample_lease(&record, 0);
    for (i = 0; i < 3 * IDEM_HISTORY_MAX; i++) {
        uint64_t before = record.fence;
        struct idem_decision decision;

        memset(op.nonce, i + 1, sizeof(op.nonce));
        decision = decide(&record, &op, NULL);
        assert_int_equal(decision.verdict, IDEM_STARTED);
        assert_true(decision.takeover);
        record = decision.next;
        assert_int_equal(record.history[record.history_len - 1].fence, 41);
        assert_int_equal(record.history[0].fence, before);
        record.status = IDEM_STATUS_RELEASED;
        record.expires_ms = NOW_MS + 1;
    }

    /* An older one makes room once there is a newer one. */
    record.status = IDEM_STATUS_IN_PROGRESS;
    sample_lease(&record, 0);
    memset(op.nonce, 'z', sizeof(op.nonce));
    record = decide(&record, &op, NULL).next;
    assert_int_equal(record.history_len, IDEM_HISTORY_MAX);
    assert_int_equal(record.history[0].end, IDEM_PAST_TAKEN_OVER);
    assert_int_equal(record.history[IDEM_HISTORY_MAX - 1].end,
                     IDEM_PAST_RELEASED);
}

/* With a doubt that is told twice, the oldest entry makes room as ever. */
TEST(begin, forgetsADoubtThatAnotherTells)
{
    struct idem_record found = sample_ended(IDEM_STATUS_RELEASED, 3600000);
    struct idem_op op = sample_begin();
    struct idem_decision decision;
    size_t i;

    found.history_len = IDEM_HISTORY_MAX;
    for (i = 0; i < IDEM_HISTORY_MAX; i++) {
        found.history[i].fence = 40 - i;
        found.history[i].end = i == 3 || i == IDEM_HISTORY_MAX - 1
                                   ? IDEM_PAST_TAKEN_OVER
                                   : IDEM_PAST_RELEASED;
    }
    decision = decide(&found, &op, NULL);
    assert_true(decision.takeover);
    assert_int_equal(decision.next.history[IDEM_HISTORY_MAX - 1].fence,
                     40 - (IDEM_HISTORY_MAX - 2));
}

/* So many attempts that they cannot be counted are not few. */
TEST(begin, doesNotCountRound)
{
    struct idem_record found = sample_record();
    struct idem_op op = sample_begin();

    op.u.begin.attempts_max = 0;
    found.on_expired_lease = op.u.begin.on_expired_lease = IDEM_RERUN;
    found.attempts = UINT32_MAX;
    sample_lease(&found, 0);
    assert_true(decide(&found, &op, NULL).next.attempts == UINT32_MAX);
    found.status = IDEM_STATUS_RELEASED;
    found.expires_ms = NOW_MS + 1;
    assert_true(decide(&found, &op, NULL).next.attempts == UINT32_MAX);
}

/* ---- Fences ---- */

/* A new life's fence is the store's time, or one more than any that the key may
 * have had; a takeover's is one more than the record's, unless that would undercut one
 * that was purged. */
TEST(fence, onlyGrows)
{
    static const struct {
        const char *what;
        int64_t store_ms;
        uint64_t found;
        uint64_t floor;
        uint64_t want;
        bool takeover;
    } rows[] = {
        {"time alone", NOW_MS, 0, 0, NOW_MS, false},
        {"time above both", NOW_MS, NOW_MS - 1, NOW_MS - 1, NOW_MS, false},
        {"as high as the record's", NOW_MS, NOW_MS, 0, NOW_MS + 1, false},
        {"the record's is higher", NOW_MS, NOW_MS + 9, 0, NOW_MS + 10, false},
        {"as high as the floor", NOW_MS, 0, NOW_MS, NOW_MS + 1, false},
        {"the floor is higher", NOW_MS, 5, NOW_MS + 9, NOW_MS + 10, false},
        {"record above floor", NOW_MS, NOW_MS + 20, NOW_MS + 9, NOW_MS + 21,
         false},
        {"no time at all", 0, 0, 0, 1, false},
        {"a takeover", NOW_MS, 41, 0, 42, true},
        {"a takeover above the floor", NOW_MS, 41, 40, 42, true},
        {"a takeover as high as the floor", NOW_MS, 41, 41, 42, true},
        {"a takeover below the floor", NOW_MS, 41, 42, 43, true},
        {"a takeover far below it", NOW_MS, 41, NOW_MS, NOW_MS + 1, true},
    };

    EACH(row, rows) {
        struct idem_record found =
            row->takeover ? sample_record()
                          : sample_ended(IDEM_STATUS_COMPLETED, -3600000);
        struct idem_op op = sample_begin();
        struct idem_now now = sample_now();
        struct idem_decision decision;

        found.on_expired_lease = op.u.begin.on_expired_lease = IDEM_RERUN;
        sample_lease(&found, 0);
        found.fence = row->found;
        now.store_ms = row->store_ms;
        now.fence_floor = row->floor;
        decision = decide(row->found == 0 ? NULL : &found, &op, &now);
        assert_int_equal(decision.verdict, IDEM_STARTED);
        if (decision.next.fence != row->want) {
            fail_with("%s: fence %llu", row->what,
                      (unsigned long long)decision.next.fence);
        }
    }
}

/* Above the highest that a record can have there is none: a claim, a takeover and a new
 * life are refused, and nothing is written that could not be read. */
TEST(fence, isRefusedWhereNoneIsLeft)
{
    struct idem_record found = sample_record();
    struct idem_op op = sample_begin();
    struct idem_now now = sample_now();
    struct idem_decision decision;

    now.fence_floor = INT64_MAX - 1;
    assert_true(decide(NULL, &op, &now).next.fence == INT64_MAX);
    now.fence_floor = INT64_MAX;
    decision = sample_decide(NULL, &op, &now);
    assert_code(IDEM_ECORRUPT, decision.code);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);
    assert_non_null(strstr(decision.text, "9223372036854775807, above"));

    now.fence_floor = 0;
    found.on_expired_lease = op.u.begin.on_expired_lease = IDEM_RERUN;
    sample_lease(&found, 0);
    found.fence = INT64_MAX - 1;
    assert_true(decide(&found, &op, &now).next.fence == INT64_MAX);
    found.fence = INT64_MAX;
    decision = sample_decide(&found, &op, &now);
    assert_code(IDEM_ECORRUPT, decision.code);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);

    found = sample_ended(IDEM_STATUS_RELEASED, 0);
    found.fence = INT64_MAX;
    decision = sample_decide(&found, &op, &now);
    assert_code(IDEM_ECORRUPT, decision.code);
    assert_int_equal(decision.change, IDEM_CHANGE_NONE);
}

/* ---- Waiters ---- */

/* A waiter is tied to the attempt that it saw. After a takeover it waits on; of
 * what was released, or belongs to another life, it is told so. An attempt that is newer
 * than all the history tells, and older than the one at work, was of another life, or came
 * from elsewhere. */
TEST(begin, tiesAWaiterToItsAttempt)
{
    static const struct {
        const char *what;
        uint64_t fence; /* Of the attempt at work. */
        uint64_t joined;
        size_t history_len;
        enum idem_past_end end; /* Of the attempt with fence 40. */
        enum idem_verdict want;
    } rows[] = {
        {"its own attempt", 41, 41, 1, IDEM_PAST_RELEASED, IDEM_BUSY},
        {"taken over", 41, 40, 1, IDEM_PAST_TAKEN_OVER, IDEM_BUSY},
        {"released, and begun by another", 41, 40, 1, IDEM_PAST_RELEASED,
         IDEM_RELEASED},
        {"of an earlier life", 41, 39, 0, IDEM_PAST_RELEASED, IDEM_RELEASED},
        {"of an earlier life than the history", 41, 39, 1, IDEM_PAST_TAKEN_OVER,
         IDEM_RELEASED},
        {"older than the history can tell", 41, 12, 8, IDEM_PAST_TAKEN_OVER,
         IDEM_BUSY},
        {"an attempt that never was", 50, 45, 1, IDEM_PAST_TAKEN_OVER,
         IDEM_RELEASED},
    };
    size_t n;

    EACH(row, rows) {
        struct idem_record found = sample_record();
        struct idem_op op = sample_begin();
        enum idem_verdict got;

        found.fence = row->fence;
        found.history_len = row->history_len;
        for (n = 0; n < found.history_len; n++) {
            found.history[n].fence = 40 - n;
            found.history[n].end = row->end;
        }
        op.u.begin.join_fence = row->joined;
        got = decide(&found, &op, NULL).verdict;
        if (got != row->want) {
            fail_with("%s: %s", row->what, idem_verdict_name(got));
        }
    }
}

/* The record notes the end of a lease for a waiter too, unless another takes over. */
TEST(begin, endsALeaseBeforeAWaiter)
{
    static const struct {
        enum idem_on_expired_lease found;
        enum idem_on_expired_lease asked;
        uint32_t attempts;
        enum idem_verdict want;
    } rows[] = {
        {IDEM_HOLD, IDEM_HOLD, 4, IDEM_UNKNOWN},
        {IDEM_HOLD, IDEM_RERUN, 4, IDEM_UNKNOWN},
        {IDEM_RERUN, IDEM_HOLD, 5, IDEM_UNKNOWN},
        {IDEM_RERUN, IDEM_RERUN, 5, IDEM_FAILED},
        {IDEM_RERUN, IDEM_RERUN, 4, IDEM_BUSY},
    };

    EACH(row, rows) {
        struct idem_record found = sample_record();
        struct idem_op op = sample_begin();
        struct idem_decision decision;

        found.on_expired_lease = row->found;
        found.attempts = row->attempts;
        sample_lease(&found, 0);
        op.u.begin.on_expired_lease = row->asked;
        op.u.begin.join_fence = found.fence;
        decision = decide(&found, &op, NULL);
        assert_int_equal(decision.verdict, row->want);
        assert_int_equal(decision.change, row->want == IDEM_BUSY
                                              ? IDEM_CHANGE_NONE
                                              : IDEM_CHANGE_REPLACE);
        if (row->want != IDEM_BUSY) {
            assert_int_equal(decision.next.status, row->want);
            assert_true(decision.next.by_lease);
            assert_int_equal(decision.next.fence, found.fence);
            assert_int_equal(decision.next.ended_ms, NOW_MS);
            assert_true(decision.next.expires_ms == IDEM_NEVER);
        }
    }
}

/* ---- Leases ---- */

/* One of another boot is over once the store's time is certainly past it, by the margin. */
TEST(lease, ofAnotherBootIsOverForCertain)
{
    static const struct {
        int64_t past_ms;
        int64_t error_ms;
        enum idem_verdict want;
    } rows[] = {
        {4999, 0, IDEM_BUSY},
        {5000, 0, IDEM_UNKNOWN},
        {5999, 1000, IDEM_BUSY},
        {6000, 1000, IDEM_UNKNOWN},
    };

    EACH(row, rows) {
        struct idem_record found = sample_record();
        struct idem_op op = sample_begin();
        struct idem_now now = sample_now();

        sample_lease(&found, -row->past_ms);
        found.boot_id[0] = 'B';
        found.lease_end_boot_ms = NOW_BOOT_MS * 2; /* Must not be looked at. */
        now.store_err_ms = row->error_ms;
        assert_int_equal(decide(&found, &op, &now).verdict, row->want);
    }
}

/* A lease of this boot is judged by the boot clock alone, to the millisecond. */
TEST(lease, endsByTheBootClockOnItsBoot)
{
    static const struct {
        int64_t left_ms;
        enum idem_verdict want;
    } rows[] = {{1, IDEM_BUSY}, {0, IDEM_UNKNOWN}, {-1, IDEM_UNKNOWN}};

    EACH(row, rows) {
        struct idem_record found = sample_record();
        struct idem_op op = sample_begin();
        struct idem_now now = sample_now();

        sample_lease(&found, row->left_ms);
        now.store_ms += 86400000;
        assert_int_equal(decide(&found, &op, &now).verdict, row->want);
        now.store_ms -= 2 * 86400000LL;
        now.store_err_ms = 3600000;
        assert_int_equal(decide(&found, &op, &now).verdict, row->want);
    }
}

/* ---- One's own earlier claim ---- */

/* A claim that was delivered twice finds what its first copy did, writes
 * nothing, and is told whether that was a takeover, whatever the record is about by now. */
TEST(begin, recognisesItself)
{
    static const struct {
        enum idem_status status;
        enum idem_verdict want;
    } rows[] = {
        {IDEM_STATUS_IN_PROGRESS, IDEM_STARTED},
        {IDEM_STATUS_COMPLETED, IDEM_REPLAY},
        {IDEM_STATUS_FAILED, IDEM_FAILED},
        {IDEM_STATUS_UNKNOWN, IDEM_UNKNOWN},
        {IDEM_STATUS_RELEASED, IDEM_RELEASED},
    };
    static const enum idem_past_end ends[] = {IDEM_PAST_TAKEN_OVER,
                                              IDEM_PAST_RELEASED,
                                              IDEM_PAST_RESOLVED};
    static const uint8_t prints[2][IDEM_FINGERPRINT_LEN] = {{1, 'a'}, {1, 'b'}};
    size_t i;
    size_t j;

    for (i = 0; i < COUNT(rows); i++) {
        for (j = 0; j <= COUNT(ends); j++) {
            struct idem_record found = sample_ended(rows[i].status, 60000);
            struct idem_op op = sample_begin();
            struct idem_decision decision;

            memcpy(op.nonce, found.nonce, 16);
            found.fingerprint = idem_bytes(prints[0], IDEM_FINGERPRINT_LEN);
            op.u.begin.fingerprint =
                idem_bytes(prints[1], IDEM_FINGERPRINT_LEN);
            if (j < COUNT(ends)) {
                found.history_len = 1;
                found.history[0].end = ends[j];
                found.history[0].fence = 40;
            }
            sample_lease(&found, i % 2 ? 1000 : 0);
            decision = decide(&found, &op, NULL);
            assert_int_equal(decision.verdict, rows[i].want);
            assert_int_equal(decision.change, IDEM_CHANGE_NONE);
            assert_int_equal(decision.takeover, j == 0);
        }
    }
}

/* A claim that another ended by its lease before its op was answered is taken back: the same
 * attempt, at work under a new lease. One of an op that has made no claim is not, for its
 * owner may have been told. */
TEST(begin, takesBackAClaimThatNobodyWasToldOf)
{
    static const enum idem_status ended[] = {IDEM_STATUS_UNKNOWN,
                                             IDEM_STATUS_FAILED};
    size_t i;

    for (i = 0; i < 8; i++) {
        struct idem_record found = sample_ended(ended[i % 2], 60000);
        bool takeover = (i & 2) != 0;
        bool claimed = (i & 4) != 0;
        struct idem_now now = sample_now();
        struct idem_op op = sample_begin();
        struct idem_decision decision;

        found.by_lease = true;
        found.in_doubt = takeover ? found.fence - 1 : 0;
        found.ended_ms = now.store_ms + 300; /* By another's estimate. */
        memcpy(op.nonce, found.nonce, 16);
        op.fence = claimed ? found.fence : 0;
        op.u.begin.on_expired_lease = found.on_expired_lease;
        decision = decide(&found, &op, &now);
        assert_int_equal(decision.takeover, takeover);
        if (!claimed) {
            assert_int_equal(decision.change, IDEM_CHANGE_NONE);
            assert_int_equal(decision.verdict,
                             i % 2 ? IDEM_FAILED : IDEM_UNKNOWN);
            continue;
        }
        assert_int_equal(decision.verdict, IDEM_STARTED);
        assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
        assert_int_equal(decision.next.status, IDEM_STATUS_IN_PROGRESS);
        assert_false(decision.next.by_lease);
        assert_false(decision.next.retry);
        assert_int_equal(decision.next.fence, found.fence);
        assert_memory_equal(decision.next.nonce, found.nonce, 16);
        assert_int_equal(decision.next.attempts, found.attempts);
        assert_int_equal(decision.next.history_len, found.history_len);
        assert_int_equal(decision.next.started_ms, found.ended_ms);
        assert_int_equal(decision.next.ended_ms, 0);
        assert_int_equal(decision.next.error.len + decision.next.note.len, 0);
        assert_int_equal(decision.next.lease_end_ms,
                         now.store_ms + now.store_err_ms + op.u.begin.lease_ms);
        assert_true(decision.set_result);
        assert_false(decision.set_input);
    }
}
