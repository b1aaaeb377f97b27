/* The status line of idem run. */
#include "run/status_report.h"

#include "temp.h"
#include "test.h"
#include "text/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What status_report_tell() writes about an error of @text, with a NUL. */
static void tell(const char *text, char line[4096])
{
    struct status_report report;
    int ends[2];
    ssize_t n;

    status_report_init(&report, idem_str("shop"), idem_str("order-42"));
    status_report_set_error(&report, text);
    assert_int_equal(pipe(ends), 0);
    status_report_tell(&report, 69, ends[1], NULL);
    n = read(ends[0], line, 4095);
    assert_true(n > 0);
    line[n] = '\0';
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* An error is told as it is; one that is no text, letter by letter: the line is
 * JSON whatever a path is made of. */
TEST(report, isJsonWhateverAnErrorSays)
{
    char line[4096];

    tell("there is no directory /caf\xc3\xa9: make it first", line);
    assert_non_null(strstr(line, "\"error\":\"there is no directory "
                                 "/caf\xc3\xa9: make it first\""));
    tell("there is no directory /caf\xe9: make it first", line);
    assert_non_null(strstr(line, "\"error\":\"there is no directory "
                                 "/caf\\\\xe9: make it first\""));
    assert_true(cli_is_utf8(idem_str(line)));
}

/* What the file @path holds, with a NUL. */
static const char *content(const char *path)
{
    static char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    assert_true(fd >= 0);
    n = read(fd, text, sizeof(text) - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    (void)close(fd);
    return text;
}

/* All that there is to say, in the order of the manual. */
TEST(report, tellsAll)
{
    static const struct idem_record record = {.status = IDEM_STATUS_COMPLETED};
    const char *path = temp_path("status");
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
    status_report_tell(&report, 137, -1, path);
    assert_string_equal(
        content(path),
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
    const char *path = temp_path("waits");
    struct idem_attempt attempt = {.verdict = IDEM_BUSY,
                                   .lease_left_ms = 1500,
                                   .record = &record};
    struct status_report report;

    status_report_init(&report, idem_str(""), idem_str("k"));
    status_report_set_attempt(&report, &attempt);
    status_report_set_journal(&report, strdup("/var/lib/an-earlier.idj"));
    status_report_set_journal(&report, strdup("/var/lib/one.idj"));
    status_report_tell(&report, 75, -1, path);
    assert_string_equal(
        content(path),
        "{\"verdict\":\"BUSY\",\"executed\":false,\"recorded\":false,"
        "\"status\":\"in_progress\",\"not_kept\":false,"
        "\"replayed_bytes\":0,\"scope\":\"\",\"key\":\"k\",\"fence\":7,"
        "\"attempts\":1,\"takeover\":false,\"lease_left_ms\":1500,"
        "\"journal\":\"/var/lib/one.idj\",\"idem_status\":75}\n");
    status_report_finish(&report);
    assert_null(report.journal);
}

/* Nobody wants to know; and nothing can be written: that changes nothing else. */
TEST(report, isNobodysTrouble)
{
    const char *directory = temp_path("directory");
    struct status_report report;
    char path[5000];
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int err = dup(2);
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

    assert_int_equal(mkdir(directory, 0700), 0);
    status_report_init(&report, idem_str(""), idem_str("k"));
    status_report_tell(&report, 0, -1, NULL);
    (void)dup2(quiet, 2); /* It says so, each time. */
    status_report_tell(&report, 0, full, NULL);
    status_report_tell(&report, 0, -1, directory);
    (void)snprintf(path, sizeof(path), "%s/no/such/file", directory);
    status_report_tell(&report, 0, -1, path);
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    status_report_tell(&report, 0, -1, path);
    (void)dup2(err, 2);
    (void)close(full);
    (void)close(quiet);
    (void)close(err);
    assert_int_equal(rmdir(directory), 0);
}
