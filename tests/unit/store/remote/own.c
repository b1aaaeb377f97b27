/* What an op knows of its own writes. */
#include "store/remote/own.h"

#include "test.h"

/* Whatever stopped it: "nothing was done" is said only where that is known. What is
 * known of the record, which was read, stays as it is. */
TEST(own, saysUnknownOnceItMayHaveBeenApplied)
{
    static const int nothing_done[] = {IDEM_EUNAVAILABLE, IDEM_EFULL,
                                       IDEM_EDENIED, IDEM_ECONFIG, IDEM_ENOMEM};
    static const int of_the_record[] = {IDEM_ELOST, IDEM_ECORRUPT,
                                        IDEM_EINVALID, IDEM_ENOTFOUND};

    EACH(one, nothing_done) {
        assert_int_equal(idem__own_code(*one, false), *one);
        assert_int_equal(idem__own_code(*one, true), IDEM_EUNKNOWN);
    }
    EACH(one, of_the_record) {
        assert_int_equal(idem__own_code(*one, true), *one);
    }
    assert_int_equal(idem__own_code(IDEM_EUNKNOWN, false), IDEM_EUNAVAILABLE);
    assert_int_equal(idem__own_code(IDEM_EUNKNOWN, true), IDEM_EUNKNOWN);
}

/* A claim that was made has a fence, by which it is given back. One that was completed
 * with its caller's writes has none, for it never is in progress; nor has another's. */
TEST(own, notesAClaimThatCanBeGivenBack)
{
    static const enum idem_change changes[] = {IDEM_CHANGE_NONE,
                                               IDEM_CHANGE_INSERT};
    struct idem_record found = {.fence = 7};
    struct idem_commit commit = {.writes_len = 1};

    EACH(one, changes) {
        struct idem_decision decision = {.verdict = IDEM_STARTED,
                                         .change = *one,
                                         .next = {.fence = 8}};
        struct idem_op op = {.verb = IDEM_OP_BEGIN, .fence = 9};

        idem__own_claim_note(&op, &found, &decision);
        assert_int_equal(op.fence, *one == IDEM_CHANGE_NONE ? 7 : 8);
        op.commit = &commit;
        idem__own_claim_note(&op, &found, &decision);
        assert_int_equal(op.fence, 0);
        op.commit = NULL;
        decision.verdict = IDEM_BUSY;
        op.fence = 9;
        idem__own_claim_note(&op, &found, &decision);
        assert_int_equal(op.fence, 0);
    }
}
