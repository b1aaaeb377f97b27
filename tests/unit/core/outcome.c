/* Which results tell of a failure. */
#include "sample.h"
#include "test.h"

#include <idem/operator.h>

/* By the exit status of a command, by its signal, by the status of HTTP. */
TEST(outcome, failsByItsResult)
{
    static const struct {
        const char *meta;
        bool want;
    } rows[] = {
        {"", false},
        {"exit 0\n", false},
        {"exit 1\n", true},
        {"exit 255\n", true},
        {"exit ", false}, /* Cut off: nothing is told. */
        {"signal 9\n", true},
        {"HTTP 200\n", false},
        {"HTTP 404\nlocation: /\n", false},
        {"HTTP 499\n", false},
        {"HTTP 500\n", true},
        {"HTTP 599\nretry-after: 7\n", true},
        {"HTTP 700\n", false},
        {"exited 1\n", false},
        {"a program's own words", false},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 0);

        record.result.meta = idem_str(rows[i].meta);
        assert_int_equal(idem_outcome_failed(&record), rows[i].want);
    }
}

/* What did not complete has another status to tell. */
TEST(outcome, isOfWhatIsCompleted)
{
    static const enum idem_status others[] = {
        IDEM_STATUS_IN_PROGRESS,
        IDEM_STATUS_FAILED,
        IDEM_STATUS_UNKNOWN,
        IDEM_STATUS_RELEASED,
    };
    size_t i;

    for (i = 0; i < COUNT(others); i++) {
        struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 0);

        record.status = others[i];
        record.result.meta = idem_str("exit 1\n");
        assert_false(idem_outcome_failed(&record));
    }
}
