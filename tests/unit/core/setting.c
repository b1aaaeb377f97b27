/* Values of settings: what is taken, and the sentence of what is not. */
#include <idem/setting.h>

#include "test.h"

static const struct idem_setting never = {.kind = IDEM_SETTING_TIME,
                                          .min = 2000,
                                          .or_never = true};
static const struct idem_setting size = {.kind = IDEM_SETTING_SIZE,
                                         .max = 1 << 30};
static const struct idem_setting count = {.kind = IDEM_SETTING_COUNT,
                                          .min = 1,
                                          .or_never = true}; /* No time. */

TEST(setting, readsWhatIsWritten)
{
    const struct {
        const struct idem_setting *setting;
        const char *text;
        int64_t value;
    } rows[] = {
        {&never, "2000ms", 2000},
        {&never, "2s", 2000},
        {&never, "36525d", IDEM_DURATION_MAX_MS},
        {&never, "never", IDEM_NEVER},
        {&size, "0", 0},
        {&size, "64k", 65536},
        {&size, "8m", 8 << 20},
        {&size, "1G", 1 << 30},
        {&count, "9223372036854775807", INT64_MAX},
        {IDEM_SETTING_POLICY, "rerun", IDEM_RERUN},
        {IDEM_SETTING_POLICY, "hold", IDEM_HOLD},
    };
    struct idem_error error = {0};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t value = -1;

        assert_code(0, idem_setting_read(rows[i].setting, "--x", rows[i].text,
                                         &value, &error));
        assert_int_equal(value, rows[i].value);
    }
}

TEST(setting, refusesWithOneSentence)
{
    const struct {
        const struct idem_setting *setting;
        const char *text;
        const char *why;
    } rows[] = {
        {&never, "1s",
         "--x: \"1s\" is not a time from 2s to 36525d, or never (500ms, 30s, "
         "5m, 2h, 7d)"},
        {IDEM_SETTING_WAIT, "never",
         "--x: \"never\" is not a time from 0ms to 36525d (500ms, 30s, 5m, 2h, "
         "7d)"},
        {IDEM_SETTING_WAIT, "60",
         "--x: \"60\" is not a time from 0ms to 36525d (500ms, 30s, 5m, 2h, "
         "7d)"},
        {&size, "18446744073709551616",
         "--x: \"18446744073709551616\" is not a number of bytes from 0 to "
         "1073741824 (512, 64k, 8M, 1G)"},
        {&count, "-1",
         "--x: \"-1\" is not a number from 1 to 9223372036854775807"},
        {&count, "never",
         "--x: \"never\" is not a number from 1 to 9223372036854775807"},
        {&count, "", "--x: \"\" is not a number from 1 to 9223372036854775807"},
        {IDEM_SETTING_POLICY, "\033[2J\\",
         "--x: \"\\x1b[2J\\x5c\" is not one of rerun, hold"},
    };
    struct idem_error error = {0};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t value = -1;

        assert_code(IDEM_EINVALID,
                    idem_setting_read(rows[i].setting, "--x", rows[i].text,
                                      &value, &error));
        assert_string_equal(error.text, rows[i].why);
        assert_int_equal(value, -1);
    }
}
