/* What a person decides, and a restore from a copy. */
#include "sample.h"

#include "test.h"

#include <idem/operator.h>

/* The same decision by the same person, asked for twice because its answer was
 * lost or the person came back, is made once. Another is another. */
TEST(resolve, isMadeOnce)
{
    static const enum idem_status outcomes[] = {IDEM_STATUS_COMPLETED,
                                                IDEM_STATUS_FAILED,
                                                IDEM_STATUS_RELEASED};
    int change;

    EACH(one, outcomes) {
        struct idem_record found = sample_ended(IDEM_STATUS_UNKNOWN, 0);
        struct idem_op op = sample_resolve();
        struct idem_record next;

        op.u.resolve.outcome.status = *one;
        next = sample_decide(&found, &op, NULL).next;
        for (change = 0; change < 5; change++) {
            struct idem_op again = op;
            struct idem_decision decision;
            bool same = change < 2;

            /* What was released has no content to differ in. */
            if (*one == IDEM_STATUS_RELEASED && change > 2) {
                continue;
            }
            again.nonce[0] ^= change == 0 ? 0 : 1;
            switch (change) {
            case 2:
                again.u.resolve.who = idem_str("bob");
                break;
            case 3:
                again.u.resolve.outcome.text = idem_str("another reason");
                break;
            case 4:
                again.u.resolve.outcome.result.bytes = idem_str("more");
                break;
            default:
                break;
            }
            decision = sample_decide(&next, &again, NULL);
            assert_code(IDEM_OK, decision.code);
            assert_int_equal(decision.change,
                             same ? IDEM_CHANGE_NONE : IDEM_CHANGE_REPLACE);
        }
    }
}

/* About another attempt it is another decision, even of the same person and the
 * same words: of one that is gone, or one that the record only tells of. */
TEST(resolve, isMadeOnceForEachAttempt)
{
    struct idem_record found = sample_ended(IDEM_STATUS_UNKNOWN, 0);
    struct idem_op op = sample_resolve();
    struct idem_record next = sample_decide(&found, &op, NULL).next;

    op.nonce[0] ^= 1;
    assert_code(IDEM_OK, sample_decide(&next, &op, NULL).code);
    op.fence = next.fence - 1;
    assert_code(IDEM_ELOST, sample_decide(&next, &op, NULL).code);
    op.fence = next.fence;
    next.fence++; /* As an import may raise it. */
    assert_code(IDEM_ELOST, sample_decide(&next, &op, NULL).code);
}

/* What is stored of the decision, and read back; @head has its bytes. */
static struct idem_record stored(const struct idem_record *found,
                                 const struct idem_op *op,
                                 uint8_t head[IDEM_HEAD_MAX])
{
    struct idem_record next = sample_decide(found, op, NULL).next;
    struct idem_record read;
    size_t len;

    assert_ok(idem__record_encode(&next, head, IDEM_HEAD_MAX, &len));
    assert_ok(idem__record_decode(next.id, idem_bytes(head, len), &read, &why));
    return read;
}

/* What a decision replaces stays in the history, also in that of the store: the
 * status, the first line of the metadata, and the error or the note. */
TEST(resolve, keepsWhatItReplaces)
{
    static const char big[IDEM_TEXT_MAX] = "no answer from the bank";
    struct idem_record found = sample_ended(IDEM_STATUS_FAILED, 0);
    struct idem_op op = sample_resolve();
    struct idem_record next;
    const struct idem_past *past = &next.history[0];
    uint8_t head[IDEM_HEAD_MAX];

    found.result.meta = idem_str("exit 3\nmore");
    found.error = idem_bytes(big, sizeof(big));
    next = stored(&found, &op, head);
    assert_int_equal(past->was, IDEM_STATUS_FAILED);
    assert_text(past->meta, "exit 3");
    assert_slice(past->text, idem_bytes(big, IDEM_PAST_TEXT_MAX));
    found = sample_ended(IDEM_STATUS_UNKNOWN, 0);
    found.note = idem_str("asleep");
    op.u.resolve.outcome.status = IDEM_STATUS_RETRY;
    next = stored(&found, &op, head);
    assert_int_equal(past->was, IDEM_STATUS_UNKNOWN);
    assert_text(past->text, "asleep");
}

/* A lease without an end is never over, so a person may decide at any time. */
TEST(resolve, mayEndALeaseWithoutAnEnd)
{
    struct idem_record found = sample_record();
    struct idem_op op = sample_resolve();

    found.lease_ms = found.lease_end_ms = IDEM_NEVER;
    found.lease_end_boot_ms = IDEM_NEVER;
    assert_code(IDEM_OK, sample_decide(&found, &op, NULL).code);
}

/* Eight decisions and attempts are kept. */
TEST(resolve, remembersEight)
{
    struct idem_record record = sample_ended(IDEM_STATUS_FAILED, 0);
    struct idem_op op = sample_resolve();
    int i;

    for (i = 1; i <= 10; i++) {
        char who[8];

        (void)snprintf(who, sizeof(who), "p%d", i);
        op.u.resolve.who = idem_str(who);
        memset(op.nonce, i, sizeof(op.nonce));
        op.fence = record.fence;
        record = sample_decide(&record, &op, NULL).next;
        assert_int_equal(record.history_len, i < 8 ? i : 8);
        assert_text(record.history[0].owner, who);
        record.history[0].owner = idem_str("written down");
    }
}

/* ---- A restore from a copy ---- */

static const uint8_t fresh[16] = {'f', 'f', 'f', 'f', 'f', 'f', 'f', 'f',
                                  'f', 'f', 'f', 'f', 'f', 'f', 'f', 'f'};

static struct idem_decision mark(const struct idem_record *found)
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
        bool retry;
    } rows[] = {
        {IDEM_HOLD, 60000, IDEM_NEVER, false},
        {IDEM_HOLD, 0, IDEM_NEVER, false},
        {IDEM_RERUN, 60000, NOW_MS + 60, false},
        {IDEM_RERUN, 0, NOW_MS + 60, false},
        {IDEM_RERUN, 0, NOW_MS - 60, false},
        {IDEM_RERUN, 0, IDEM_NEVER, true},
    };

    EACH(row, rows) {
        struct idem_record found =
            row->retry ? sample_retry() : sample_record();
        struct idem_decision decision;

        found.on_expired_lease = row->policy;
        sample_lease(&found, row->left_ms);
        found.expires_ms = row->expires_ms;
        decision = mark(&found);
        assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
        assert_int_equal(decision.next.status, IDEM_STATUS_UNKNOWN);
        assert_false(decision.next.retry);
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
    struct idem_op end = sample_end();
    struct idem_op resolve = sample_resolve();
    struct idem_record next = mark(&found).next;
    struct idem_decision decision;
    int status;

    for (status = IDEM_STATUS_COMPLETED; status <= IDEM_STATUS_RELEASED;
         status++) {
        end.u.end.status = (enum idem_status)status;
        decision = sample_decide(&next, &end, NULL);
        assert_code(IDEM_ELOST, decision.code);
        assert_string_equal(decision.text,
                            "the store was put back from a copy: unknown");
    }
    end.verb = IDEM_OP_RENEW;
    assert_code(IDEM_ELOST, sample_decide(&next, &end, NULL).code);
    end.verb = IDEM_OP_EXPIRE;
    assert_code(IDEM_ELOST, sample_decide(&next, &end, NULL).code);
    assert_code(IDEM_OK, sample_decide(&next, &resolve, NULL).code);
}

/* What its lease made of an attempt the owner could still correct: no longer. */
TEST(restored, cutsOffWhoseLeaseRanOut)
{
    static const enum idem_status statuses[] = {IDEM_STATUS_UNKNOWN,
                                                IDEM_STATUS_FAILED};

    EACH(status, statuses) {
        struct idem_record found = sample_ended(*status, 0);
        struct idem_op end = sample_end();
        struct idem_record next;

        found.by_lease = true;
        assert_code(IDEM_OK, sample_decide(&found, &end, NULL).code);
        next = mark(&found).next;
        assert_int_equal(next.status, *status);
        assert_slice(next.note, found.note);
        assert_slice(next.error, found.error);
        assert_code(IDEM_ELOST, sample_decide(&next, &end, NULL).code);
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
    struct idem_record marked = mark(&found).next;

    EACH(status, statuses) {
        found = sample_ended(*status, 3600000);
        assert_int_equal(mark(&found).change, IDEM_CHANGE_NONE);
        assert_code(IDEM_OK, mark(&found).code);
    }
    assert_int_equal(mark(&marked).change, IDEM_CHANGE_NONE);
    found = sample_ended(IDEM_STATUS_UNKNOWN, 0);
    found.by_lease = true;
    marked = mark(&found).next;
    assert_int_equal(mark(&marked).change, IDEM_CHANGE_NONE);
}
