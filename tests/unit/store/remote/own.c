/* What an op that stopped is answered, once a write of it may have been applied. */
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
    size_t i;

    for (i = 0; i < COUNT(nothing_done); i++) {
        assert_int_equal(idem__own_code(nothing_done[i], false),
                         nothing_done[i]);
        assert_int_equal(idem__own_code(nothing_done[i], true), IDEM_EUNKNOWN);
    }
    for (i = 0; i < COUNT(of_the_record); i++) {
        assert_int_equal(idem__own_code(of_the_record[i], true),
                         of_the_record[i]);
    }
    assert_int_equal(idem__own_code(IDEM_EUNKNOWN, false), IDEM_EUNAVAILABLE);
    assert_int_equal(idem__own_code(IDEM_EUNKNOWN, true), IDEM_EUNKNOWN);
}
