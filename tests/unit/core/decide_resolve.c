/* A person's decisions, and a restore from a copy. */
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

/* No owner of before is heard: also where the lease has ended the attempt, and where the
 * record counts as absent by now, for its renewals may have been lost. */
TEST(restored, cutsOffEveryOwner)
{
    static const uint8_t fresh[16] = "restored";
    static const enum idem_status statuses[] = {IDEM_STATUS_IN_PROGRESS,
                                                IDEM_STATUS_UNKNOWN,
                                                IDEM_STATUS_FAILED};

    EACH(status, statuses) {
        struct idem_record found = sample_ended(*status, 0);
        struct idem_now now = sample_now();
        struct idem_op end = sample_end();
        struct idem_decision decision;

        found.by_lease = *status != IDEM_STATUS_IN_PROGRESS;
        found.expires_ms = found.by_lease ? IDEM_NEVER : NOW_MS - 60;
        idem__decide_restored(&found, fresh, idem_str("put back"), &now,
                              &decision);
        assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
        assert_false(decision.next.by_lease);
        assert_true(decision.next.expires_ms == IDEM_NEVER);
        found = decision.next;
        assert_code(IDEM_ELOST, sample_decide(&found, &end, NULL).code);
    }
}
