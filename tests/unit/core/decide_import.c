/* What adding a record from elsewhere means: never the loss of one that counts. */
#include "sample.h"
#include "test.h"

static struct idem_decision decide(const struct idem_record *found,
                                   const struct idem_record *record)
{
    struct idem_op op = {.verb = IDEM_OP_IMPORT, .u.import.record = record};
    struct idem_now now = sample_now();
    struct idem_decision decision;

    memset(&decision, 0x5a, sizeof(decision));
    idem__decide_import(found, &op, &now, &decision);
    assert_code(IDEM_OK, decision.code);
    return decision;
}

/* Where there is nothing it is added as it is. */
TEST(import, addsARecordAsItIs)
{
    int status;

    for (status = IDEM_STATUS_IN_PROGRESS; status <= IDEM_STATUS_RELEASED;
         status++) {
        struct idem_record record =
            sample_ended((enum idem_status)status, 3600000);
        struct idem_decision decision;

        record.input = idem_str("input");
        decision = decide(NULL, &record);
        assert_int_equal(decision.change, IDEM_CHANGE_INSERT);
        assert_true(decision.set_result && decision.set_input);
        assert_same_record(&decision.next, &record);
        assert_slice(decision.next.result.bytes, record.result.bytes);
        assert_slice(decision.next.input, record.input);
    }
}

/* What is there and counts stays, in every status. */
TEST(import, writesOverNothingThatCounts)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 3600000);
    int status;

    for (status = IDEM_STATUS_IN_PROGRESS; status <= IDEM_STATUS_RELEASED;
         status++) {
        struct idem_record found =
            sample_ended((enum idem_status)status, 3600000);

        found.fence = status == IDEM_STATUS_RELEASED ? record.fence : 1;
        assert_int_equal(decide(&found, &record).change, IDEM_CHANGE_NONE);
    }
}

/* What was released counts no longer once there is a later attempt. */
TEST(import, replacesWhatWasReleasedBefore)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 3600000);
    struct idem_record found = sample_ended(IDEM_STATUS_RELEASED, 3600000);
    struct idem_decision decision;

    found.fence = record.fence - 1;
    decision = decide(&found, &record);
    assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
    assert_true(decision.next.fence == record.fence);
    found.fence = record.fence + 1;
    assert_int_equal(decide(&found, &record).change, IDEM_CHANGE_NONE);
}

/* What is past its retention gives way, and its fence is not undercut. */
TEST(import, replacesWhatIsForgotten)
{
    static const struct {
        uint64_t found;
        uint64_t record;
        uint64_t want;
    } rows[] = {{41, 50, 50}, {50, 41, 51}, {41, 41, 42}};
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_record found = sample_ended(IDEM_STATUS_COMPLETED, 5000);
        struct idem_record record =
            sample_ended(IDEM_STATUS_COMPLETED, 3600000);
        struct idem_decision decision;

        found.fence = rows[i].found;
        record.fence = rows[i].record;
        decision = decide(&found, &record);
        assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
        assert_true(decision.next.fence == rows[i].want);
    }
}

/* A record that is past its own retention is not worth adding. */
TEST(import, addsNothingThatIsForgotten)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 5000);

    assert_int_equal(decide(NULL, &record).change, IDEM_CHANGE_NONE);
}
