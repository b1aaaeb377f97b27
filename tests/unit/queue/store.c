/* The head of a store, and counting. */
#include "contract/parts.h"
#include "test.h"

/* Each answer is counted under one name, an error only where an owner was lost. */
TEST(store, answersAreAddedUp)
{
    struct idem_counters counters = IDEM_COUNTERS_INIT;
    struct idem_record record = {.status = IDEM_STATUS_UNKNOWN};
    struct idem_op op = {.verb = IDEM_OP_BEGIN,
                         .verdict = IDEM_STARTED,
                         .changed = true,
                         .takeover = true};

    idem__counters_add(&counters, &op);
    idem__counters_add(&counters, &op);
    op.verdict = IDEM_UNKNOWN;
    op.record = &record;
    idem__counters_add(&counters, &op);
    op.error.code = IDEM_EUNAVAILABLE;
    idem__counters_add(&counters, &op);
    op = (struct idem_op){.verb = IDEM_OP_END, .error = {IDEM_ELOST, ""}};
    idem__counters_add(&counters, &op);
    assert_int_equal(counters.started, 2);
    assert_int_equal(counters.takeovers, 2);
    assert_int_equal(counters.unknown, 1);
    assert_int_equal(counters.lost, 1);
    assert_int_equal(counters.completed + counters.released + counters.purged,
                     0);
    assert_int_equal(counters.size, sizeof(counters));
}
