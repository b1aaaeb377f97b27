/* Which results tell of a failure. */
#include "sample.h"
#include "test.h"

#include <idem/operator.h>

/* By the exit status of a command, by its signal, by the status of HTTP, unless it is
 * named complete. */
TEST(outcome, failsByItsResult)
{
    static const struct {
        const char *meta;
        bool failed;
        bool succeeded;
    } rows[] = {
        {"", false, true},
        {"exit 0\n", false, true},
        {"exit 1\n", true, false},
        {"exit 255\n", true, false},
        {"exit 1 complete\n", false, true},
        {"exit 1 complete", true, false}, /* Cut off: it is not named. */
        {"exit 1\ncomplete\n", true, false},
        {"exit 1 incomplete\n", true, false},
        {"exit ", false, true}, /* Cut off: nothing is told. */
        {"signal 9\n", true, false},
        {"HTTP 200\n", false, true},
        {"HTTP 299\netag: 1\n", false, true},
        {"HTTP 303\n", false, false},
        {"HTTP 404\nlocation: /\n", false, false},
        {"HTTP 404 complete\nlocation: /\n", false, true},
        {"HTTP 499\n", false, false},
        {"HTTP 500\n", true, false},
        {"HTTP 500 complete\n", false, true},
        {"HTTP 500\nx: it is complete\n", true, false},
        {"HTTP 599\nretry-after: 7\n", true, false},
        {"HTTP 700\n", false, true},
        {"exited 1\n", false, true},
        {"a program's own words", false, true},
    };

    EACH(row, rows) {
        struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 0);

        record.result.meta = idem_str(row->meta);
        assert_int_equal(idem_outcome_failed(&record), row->failed);
        assert_int_equal(idem_outcome_succeeded(&record), row->succeeded);
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

    EACH(other, others) {
        struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 0);

        record.status = *other;
        record.result.meta = idem_str("exit 1\n");
        assert_false(idem_outcome_failed(&record));
        record.result.meta = idem_str("exit 1 complete\n");
        assert_false(idem_outcome_succeeded(&record));
    }
}
