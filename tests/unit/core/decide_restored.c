/* What a record is once its store was put back from a copy. */
#include "sample.h"
#include "test.h"

static const uint8_t fresh[16] = {'f', 'f', 'f', 'f', 'f', 'f', 'f', 'f',
                                  'f', 'f', 'f', 'f', 'f', 'f', 'f', 'f'};

static struct idem_decision decide(const struct idem_record *found)
{
    struct idem_now now = sample_now();
    struct idem_decision decision;

    memset(&decision, 0x5a, sizeof(decision));
    idem__decide_restored(found, fresh, idem_str("put back"), &now, &decision);
    return decision;
}

/* In progress becomes unknown for good, whatever its policy and its lease, and
 * also where it counts as absent by now: its renewals may have been lost. */
TEST(restored, callsOpenAttemptsUnknown)
{
    static const struct {
        enum idem_on_expired_lease policy;
        int64_t left_ms;
        int64_t expires_ms;
    } rows[] = {
        {IDEM_HOLD, 60000, IDEM_NEVER},   {IDEM_HOLD, 0, IDEM_NEVER},
        {IDEM_RERUN, 60000, NOW_MS + 60}, {IDEM_RERUN, 0, NOW_MS + 60},
        {IDEM_RERUN, 0, NOW_MS - 60},
    };

    EACH(row, rows) {
        struct idem_record found = sample_record();
        struct idem_decision decision;

        found.on_expired_lease = row->policy;
        sample_lease(&found, row->left_ms);
        found.expires_ms = row->expires_ms;
        decision = decide(&found);
        assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
        assert_int_equal(decision.next.status, IDEM_STATUS_UNKNOWN);
        assert_int_equal(decision.next.expires_ms, IDEM_NEVER);
        assert_int_equal(decision.next.ended_ms, NOW_MS);
        assert_int_equal(decision.next.fence, found.fence);
        assert_int_equal(decision.next.attempts, found.attempts);
        assert_memory_equal(decision.next.nonce, fresh, 16);
        assert_text(decision.next.note, "put back");
    }
}

/* Nobody who owned it can change it any more; a person can. */
TEST(restored, takesTheRecordFromItsOwner)
{
    struct idem_record found = sample_record();
    struct idem_now now = sample_now();
    struct idem_op end = sample_end();
    struct idem_op resolve = sample_resolve();
    struct idem_record next = decide(&found).next;
    struct idem_decision decision;
    int status;

    for (status = IDEM_STATUS_COMPLETED; status <= IDEM_STATUS_RELEASED;
         status++) {
        end.u.end.status = (enum idem_status)status;
        idem__decide_end(&next, &end, &now, &decision);
        assert_code(IDEM_ELOST, decision.code);
        assert_string_equal(decision.text,
                            "the store was put back from a copy: unknown");
    }
    idem__decide_renew(&next, &end, &now, &decision);
    assert_code(IDEM_ELOST, decision.code);
    idem__decide_expire(&next, &end, &now, &decision);
    assert_code(IDEM_ELOST, decision.code);
    idem__decide_resolve(&next, &resolve, &now, &decision);
    assert_code(IDEM_OK, decision.code);
}

/* What its lease made of an attempt the owner could still correct: no longer. */
TEST(restored, cutsOffWhoseLeaseRanOut)
{
    static const enum idem_status statuses[] = {IDEM_STATUS_UNKNOWN,
                                                IDEM_STATUS_FAILED};

    EACH(status, statuses) {
        struct idem_record found = sample_ended(*status, 0);
        struct idem_now now = sample_now();
        struct idem_op end = sample_end();
        struct idem_decision decision;
        struct idem_record next;

        found.by_lease = true;
        idem__decide_end(&found, &end, &now, &decision);
        assert_code(IDEM_OK, decision.code);
        next = decide(&found).next;
        assert_int_equal(next.status, *status);
        assert_slice(next.note, found.note);
        assert_slice(next.error, found.error);
        idem__decide_end(&next, &end, &now, &decision);
        assert_code(IDEM_ELOST, decision.code);
    }
}

/* All else stays as it is; and so does what was marked before. */
TEST(restored, leavesTheRest)
{
    static const enum idem_status statuses[] = {IDEM_STATUS_COMPLETED,
                                                IDEM_STATUS_FAILED,
                                                IDEM_STATUS_UNKNOWN,
                                                IDEM_STATUS_RELEASED};
    struct idem_record found = sample_record();
    struct idem_record marked = decide(&found).next;

    EACH(status, statuses) {
        found = sample_ended(*status, 3600000);
        assert_int_equal(decide(&found).change, IDEM_CHANGE_NONE);
        assert_code(IDEM_OK, decide(&found).code);
    }
    assert_int_equal(decide(&marked).change, IDEM_CHANGE_NONE);
    found = sample_ended(IDEM_STATUS_UNKNOWN, 0);
    found.by_lease = true;
    marked = decide(&found).next;
    assert_int_equal(decide(&marked).change, IDEM_CHANGE_NONE);
}
