/* The status line of idem run. */
#include "run/status_report.h"

#include "test.h"
#include "text/text.h"

#include <fcntl.h>
#include <unistd.h>

/* The line that status_report_tell() writes, with a NUL. */
static const char *line_of(const struct status_report *report, int status)
{
    static char line[4096];
    int ends[2];
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    status_report_tell(report, status, ends[1]);
    n = read(ends[0], line, sizeof(line) - 1);
    assert_true(n > 0);
    line[n] = '\0';
    (void)close(ends[0]);
    (void)close(ends[1]);
    return line;
}

/* The line about an error of @text. */
static const char *tell(const char *text)
{
    struct status_report report;

    status_report_init(&report, idem_str("shop"), idem_str("order-42"));
    status_report_set_error(&report, text);
    return line_of(&report, 69);
}

/* An error is told as it is; one that is no text, letter by letter: the line is
 * JSON whatever a path is made of. */
TEST(report, isJsonWhateverAnErrorSays)
{
    const char *line =
        tell("there is no directory /caf\xc3\xa9: make it first");

    assert_non_null(strstr(line, "\"error\":\"there is no directory "
                                 "/caf\xc3\xa9: make it first\""));
    line = tell("there is no directory /caf\xe9: make it first");
    assert_non_null(strstr(line, "\"error\":\"there is no directory "
                                 "/caf\\\\xe9: make it first\""));
    assert_true(cli_is_utf8(idem_str(line)));
}

/* So is the name of a file. */
TEST(report, isJsonWhateverAFileIsNamed)
{
    struct status_report report;
    const char *line;

    status_report_init(&report, idem_str(""), idem_str("k"));
    status_report_set_journal(&report, strdup("/var/lib/\xe9\"\x01.idj"));
    line = line_of(&report, 75);
    assert_non_null(
        strstr(line, "\"journal\":\"/var/lib/\\\\xe9\\\"\\u0001.idj\""));
    status_report_finish(&report);
}

/* All that there is to say, in the order of the manual. */
TEST(report, tellsAll)
{
    static const struct idem_record record = {.status = IDEM_STATUS_COMPLETED};
    struct idem_attempt attempt = {.verdict = IDEM_STARTED,
                                   .takeover = true,
                                   .record = &record};
    struct idem_record newer = record;
    struct status_report report;

    newer.fence = 42;
    newer.attempts = 2;
    attempt.record = &newer;
    status_report_init(&report, idem_str("shop"), idem_bytes("\xff", 1));
    status_report_set_attempt(&report, &attempt);
    report.executed = true;
    report.recorded = true;
    report.exit_status = 3;
    report.signal = 9;
    report.replayed_bytes = 5;
    assert_string_equal(
        line_of(&report, 137),
        "{\"verdict\":\"STARTED\",\"executed\":true,\"exit_status\":3,"
        "\"signal\":9,\"recorded\":true,\"status\":\"completed\","
        "\"not_kept\":false,\"replayed_bytes\":5,\"scope\":\"shop\","
        "\"key\":null,\"key_hex\":\"ff\",\"fence\":42,\"attempts\":2,"
        "\"takeover\":true,\"idem_status\":137}\n");
}

/* Another is at work: for how long; and where an outcome waits for its store. */
TEST(report, tellsWhatWaits)
{
    static const struct idem_record record = {.status = IDEM_STATUS_IN_PROGRESS,
                                              .fence = 7,
                                              .attempts = 1};
    struct idem_attempt attempt = {.verdict = IDEM_BUSY,
                                   .lease_left_ms = 1500,
                                   .record = &record};
    struct status_report report;

    status_report_init(&report, idem_str(""), idem_str("k"));
    status_report_set_attempt(&report, &attempt);
    status_report_set_journal(&report, strdup("/var/lib/an-earlier.idj"));
    status_report_set_journal(&report, strdup("/var/lib/one.idj"));
    assert_string_equal(
        line_of(&report, 75),
        "{\"verdict\":\"BUSY\",\"executed\":false,\"recorded\":false,"
        "\"status\":\"in_progress\",\"not_kept\":false,"
        "\"replayed_bytes\":0,\"scope\":\"\",\"key\":\"k\",\"fence\":7,"
        "\"attempts\":1,\"takeover\":false,\"lease_left_ms\":1500,"
        "\"journal\":\"/var/lib/one.idj\",\"idem_status\":75}\n");
    status_report_finish(&report);
    assert_null(report.journal);
}

/* Nothing can be written: that is said, and changes nothing else. */
TEST(report, isNobodysTrouble)
{
    struct status_report report;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int err = dup(2);
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

    status_report_init(&report, idem_str(""), idem_str("k"));
    (void)dup2(quiet, 2);
    status_report_tell(&report, 0, full);
    (void)dup2(err, 2);
    (void)close(full);
    (void)close(quiet);
    (void)close(err);
}
