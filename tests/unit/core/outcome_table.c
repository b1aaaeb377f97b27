/* The table of outcomes: what it accepts, what matches, and what it says of the rest. */
#include "test.h"

#include "sample.h"

#include <idem/operator.h>
#include <idem/outcome.h>

static const enum idem_status complete = IDEM_STATUS_COMPLETED;
static const enum idem_status fail = IDEM_STATUS_FAILED;
static const enum idem_status release = IDEM_STATUS_RELEASED;
static const enum idem_status retry = IDEM_STATUS_RETRY;
static const enum idem_status unknown = IDEM_STATUS_UNKNOWN;

static struct idem_outcome_table table_of(enum idem_endings of,
                                          const char *text)
{
    struct idem_outcome_table table;
    struct idem_error error = {0};

    if (idem_outcome_table_read(&table, of, text, &error) != 0) {
        fail_with("%s: %s", text, error.text);
    }
    return table;
}

static enum idem_status of(const struct idem_outcome_table *table, int status)
{
    return idem_outcome_of_status(table, status, NULL);
}

/* Exit status 75 is a release, and every other one an outcome. */
TEST(outcome_table, exitStatusesHaveDefaults)
{
    struct idem_outcome_table table = table_of(IDEM_ENDINGS_EXIT, NULL);
    int status;

    for (status = -1; status < 300; status++) {
        enum idem_status want = status == 75 ? release : complete;

        assert_int_equal(of(&table, status),
                         status < 0 || status > 255 ? 0 : want);
    }
}

/* By default what asks to come again, or says that the caller is not known, releases;
 * what a gateway says is unknown, and all else is an answer. ROW(52, 53) */
TEST(outcome_table, statusesOfHttpHaveDefaults)
{
    struct idem_outcome_table table = table_of(IDEM_ENDINGS_HTTP, NULL);
    int status;

    for (status = -1; status < 700; status++) {
        enum idem_status want = complete;

        switch (status) {
        case 401:
        case 407:
        case 408:
        case 425:
        case 429:
        case 503:
            want = release;
            break;
        case 502:
        case 504:
            want = unknown;
            break;
        default:
            break;
        }
        assert_int_equal(of(&table, status),
                         status < 200 || status > 599 ? 0 : want);
    }
}

/* The first entry that matches wins, and what none matches has the default. */
TEST(outcome_table, firstMatchWins)
{
    struct idem_outcome_table table =
        table_of(IDEM_ENDINGS_EXIT,
                 "0,1=complete 42=fail 64-78=unknown *=retry");
    bool named;

    assert_int_equal(of(&table, 0), complete);
    assert_int_equal(of(&table, 1), complete);
    assert_int_equal(of(&table, 42), fail);
    assert_int_equal(of(&table, 64), unknown);
    assert_int_equal(of(&table, 75), unknown);
    assert_int_equal(of(&table, 79), retry);
    assert_int_equal(of(&table, 255), retry);

    table = table_of(IDEM_ENDINGS_HTTP,
                     " 503=complete\t5xx,400-404=retry\n422=fail");
    assert_int_equal(of(&table, 503), complete);
    assert_int_equal(of(&table, 502), retry);
    assert_int_equal(of(&table, 404), retry);
    assert_int_equal(of(&table, 405), complete);
    assert_int_equal(of(&table, 422), fail);
    assert_int_equal(of(&table, 429), release);
    assert_int_equal(idem_outcome_of_status(&table, 503, &named), complete);
    assert_true(named);
    assert_int_equal(idem_outcome_of_status(&table, 200, &named), complete);
    assert_false(named);
}

/* An ending without a status is not among those of "*". */
TEST(outcome_table, noneIsAnEntryOfItsOwn)
{
    struct idem_outcome_table table =
        table_of(IDEM_ENDINGS_EXIT, "0=complete *=fail");

    assert_int_equal(idem_outcome_of_none(&table, IDEM_HOLD), unknown);
    assert_int_equal(idem_outcome_of_none(&table, IDEM_RERUN), retry);
    table = table_of(IDEM_ENDINGS_EXIT, "0=complete *,none=fail");
    assert_int_equal(idem_outcome_of_none(&table, IDEM_HOLD), fail);
    assert_int_equal(idem_outcome_of_none(&table, IDEM_RERUN), fail);
    table = table_of(IDEM_ENDINGS_HTTP, "none=unknown");
    assert_int_equal(idem_outcome_of_none(&table, IDEM_RERUN), unknown);
    assert_int_equal(of(&table, 502), unknown);
}

/* A preset is its entries, also among others. */
TEST(outcome_table, presetsAreTheirEntries)
{
    struct idem_outcome_table jobs = table_of(IDEM_ENDINGS_EXIT, "jobs");
    struct idem_outcome_table hook =
        table_of(IDEM_ENDINGS_HTTP, "422=fail 503=unknown webhook none=retry");

    assert_int_equal(of(&jobs, 0), complete);
    assert_int_equal(of(&jobs, 1), retry);
    assert_int_equal(of(&jobs, 75), release);
    assert_int_equal(of(&hook, 201), complete);
    assert_int_equal(of(&hook, 302), retry);
    assert_int_equal(of(&hook, 401), release);
    assert_int_equal(of(&hook, 404), complete);
    assert_int_equal(of(&hook, 422), fail);
    assert_int_equal(of(&hook, 500), retry);
    assert_int_equal(of(&hook, 502), retry);
    assert_int_equal(of(&hook, 503), unknown);
    assert_int_equal(idem_outcome_of_none(&hook, IDEM_HOLD), retry);
}

/* Errors of a function have names; a star in one is any characters. */
TEST(outcome_table, errorsMatchByName)
{
    struct idem_outcome_table table =
        table_of(IDEM_ENDINGS_LAMBDA,
                 "Declined,Exit.42=complete Exit.4*=fail *.Not*Reached=release "
                 "404=retry");

    assert_int_equal(idem_outcome_of_error(&table, "Declined"), complete);
    assert_int_equal(idem_outcome_of_error(&table, "Declined2"), 0);
    assert_int_equal(idem_outcome_of_error(&table, "Exit.42"), complete);
    assert_int_equal(idem_outcome_of_error(&table, "Exit.4"), fail);
    assert_int_equal(idem_outcome_of_error(&table, "Exit.411"), fail);
    assert_int_equal(idem_outcome_of_error(&table, "Exit.3"), 0);
    assert_int_equal(idem_outcome_of_error(&table, "bank.NotReached"), release);
    assert_int_equal(idem_outcome_of_error(&table, "a.NotYet.NotReached"),
                     release);
    assert_int_equal(idem_outcome_of_error(&table, "bank.NotReache"), 0);
    assert_int_equal(of(&table, 404), retry);
    assert_int_equal(of(&table, 401), release);

    table = table_of(IDEM_ENDINGS_LAMBDA, "200-599=complete *=fail");
    assert_int_equal(of(&table, 503), complete);
    assert_int_equal(idem_outcome_of_error(&table, "Any"), fail);
    table = table_of(IDEM_ENDINGS_LAMBDA, "webhook");
    assert_int_equal(idem_outcome_of_error(&table, "Any"), retry);
    table = table_of(IDEM_ENDINGS_HTTP, "*=fail");
    assert_int_equal(of(&table, 200), fail);
    table = table_of(IDEM_ENDINGS_LAMBDA, NULL);
    assert_int_equal(idem_outcome_of_error(&table, "Any"), 0);
}

/* What is not a table is refused by its entry, and changes nothing. */
TEST(outcome_table, refusesWhatCannotBe)
{
    static const struct {
        enum idem_endings of;
        const char *text;
        const char *why;
    } rows[] = {
#define MATCH_EXIT                                                             \
    "expected exit statuses from 0 to 255 (42 or 64-78), * or none before "    \
    "the ="
#define MATCH_HTTP                                                             \
    "expected HTTP statuses from 200 to 599 (404, 500-504 or 5xx), * or none " \
    "before the ="
#define DEAD "can never match: earlier entries match everything that it matches"
#define NONE "without a status, the outcome must be unknown, retry or fail"
#define WORD "an outcome is complete, fail, release, retry or unknown"
        {IDEM_ENDINGS_EXIT, "", "the table is empty"},
        {IDEM_ENDINGS_EXIT, " \n", "the table is empty"},
        {IDEM_ENDINGS_EXIT, "42",
         "\"42\": expected STATUS=OUTCOME, as in 42=fail, or jobs"},
        {IDEM_ENDINGS_EXIT, "webhook",
         "\"webhook\": expected STATUS=OUTCOME, as in 42=fail, or jobs"},
        {IDEM_ENDINGS_HTTP, "jobs",
         "\"jobs\": expected STATUS=OUTCOME, as in 5xx=retry, or webhook"},
        {IDEM_ENDINGS_EXIT, "42=", "\"42=\": " WORD},
        {IDEM_ENDINGS_EXIT, "42=done", "\"42=done\": " WORD},
        {IDEM_ENDINGS_EXIT, "42=fail=fail", "\"42=fail=fail\": " WORD},
        {IDEM_ENDINGS_EXIT, "=fail", "\"=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_EXIT, "1,=fail", "\"1,=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_EXIT, "256=fail", "\"256=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_EXIT, "0001=fail", "\"0001=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_EXIT, "-1=fail", "\"-1=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_EXIT, "9-8=fail", "\"9-8=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_EXIT, "9-=fail", "\"9-=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_EXIT, "1xx=fail", "\"1xx=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_EXIT, "None=fail", "\"None=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_EXIT, "\x1b[1m=fail", "\"?[1m=fail\": " MATCH_EXIT},
        {IDEM_ENDINGS_HTTP, "199=fail", "\"199=fail\": " MATCH_HTTP},
        {IDEM_ENDINGS_HTTP, "600=fail", "\"600=fail\": " MATCH_HTTP},
        {IDEM_ENDINGS_HTTP, "1xx=fail", "\"1xx=fail\": " MATCH_HTTP},
        {IDEM_ENDINGS_HTTP, "6xx=fail", "\"6xx=fail\": " MATCH_HTTP},
        {IDEM_ENDINGS_HTTP, "5xX=fail", "\"5xX=fail\": " MATCH_HTTP},
        {IDEM_ENDINGS_HTTP, "xxx=fail", "\"xxx=fail\": " MATCH_HTTP},
        {IDEM_ENDINGS_HTTP, "500-600=fail", "\"500-600=fail\": " MATCH_HTTP},
        {IDEM_ENDINGS_HTTP, "Declined=fail", "\"Declined=fail\": " MATCH_HTTP},
        {IDEM_ENDINGS_LAMBDA, "75=release",
         "\"75=release\": expected HTTP statuses from 200 to 599 (404, 500-504 "
         "or 5xx), names of errors (Declined, Exit.4*), * or none before the ="},
        {IDEM_ENDINGS_EXIT, "1=fail 1=retry", "\"1=retry\": " DEAD},
        {IDEM_ENDINGS_EXIT, "1-9=fail 3,4=retry", "\"3,4=retry\": " DEAD},
        {IDEM_ENDINGS_EXIT, "0=complete *=fail 75=release",
         "\"75=release\": " DEAD},
        {IDEM_ENDINGS_EXIT, "jobs 42=fail", "\"42=fail\": " DEAD},
        {IDEM_ENDINGS_EXIT, "jobs jobs", "\"jobs\": " DEAD},
        {IDEM_ENDINGS_HTTP, "5xx=retry 503=release", "\"503=release\": " DEAD},
        {IDEM_ENDINGS_HTTP, "none=fail none=retry", "\"none=retry\": " DEAD},
        {IDEM_ENDINGS_LAMBDA, "Exit.4*=fail Exit.42=retry",
         "\"Exit.42=retry\": " DEAD},
        {IDEM_ENDINGS_LAMBDA, "Exit*=fail Exit.4*=retry",
         "\"Exit.4*=retry\": " DEAD},
        {IDEM_ENDINGS_LAMBDA, "*=fail Declined=retry",
         "\"Declined=retry\": " DEAD},
        {IDEM_ENDINGS_EXIT, "none=complete", "\"none=complete\": " NONE},
        {IDEM_ENDINGS_HTTP, "none=release", "\"none=release\": " NONE},
        {IDEM_ENDINGS_EXIT, "*=retry",
         "exit status 0 must complete: put 0=complete first"},
        {IDEM_ENDINGS_EXIT, "0=release",
         "exit status 0 must complete: put 0=complete first"},
    };

    EACH(row, rows) {
        struct idem_outcome_table table = {.text = "untouched"};
        struct idem_error error = {0};

        assert_code(IDEM_EINVALID, idem_outcome_table_read(&table, row->of,
                                                           row->text, &error));
        assert_string_equal(error.text, row->why);
        assert_string_equal(table.text, "untouched");
    }
}

/* A name that the one before covers in part only may still match. */
TEST(outcome_table, namesThatOverlapAreNotDead)
{
    struct idem_outcome_table table = table_of(
        IDEM_ENDINGS_LAMBDA,
        "Exit.42=fail Exit.4*=retry *d=unknown D*=complete 200-599,*=release");

    assert_int_equal(idem_outcome_of_error(&table, "Declined"), unknown);
    assert_int_equal(idem_outcome_of_error(&table, "Decline"), complete);
    assert_int_equal(idem_outcome_of_error(&table, "Exit.4"), retry);
    assert_int_equal(idem_outcome_of_error(&table, "Else"), release);
}

/* ---- Outcomes that failed ---- */

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
