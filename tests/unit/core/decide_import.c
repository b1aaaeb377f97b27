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

/* What is past its retention gives way, and its fence is not undercut. */
TEST(import, replacesWhatIsForgotten)
{
    static const struct {
        uint64_t found;
        uint64_t record;
        uint64_t want;
    } rows[] = {{41, 50, 50}, {50, 41, 51}, {41, 41, 42}};

    EACH(row, rows) {
        struct idem_record found = sample_ended(IDEM_STATUS_COMPLETED, 5000);
        struct idem_record record =
            sample_ended(IDEM_STATUS_COMPLETED, 3600000);
        struct idem_decision decision;

        found.fence = row->found;
        record.fence = row->record;
        decision = decide(&found, &record);
        assert_int_equal(decision.change, IDEM_CHANGE_REPLACE);
        assert_true(decision.next.fence == row->want);
    }
}

/* A record that is past its own retention is not worth adding. */
TEST(import, addsNothingThatIsForgotten)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 5000);

    assert_int_equal(decide(NULL, &record).change, IDEM_CHANGE_NONE);
}
