/* Error codes and words: each has its name, text and kind. */
#include "core/error.h"

#include "test.h"

#include <idem/setting.h>

static const struct {
    int code;
    const char *name;
    enum idem_kind kind;
} codes[] = {
    {IDEM_EINVALID, "INVALID", IDEM_KIND_CALLER},
    {IDEM_EUNAVAILABLE, "UNAVAILABLE", IDEM_KIND_RETRY},
    {IDEM_EUNKNOWN, "UNKNOWN", IDEM_KIND_RETRY},
    {IDEM_ELOST, "LOST", IDEM_KIND_LOST},
    {IDEM_EFULL, "FULL", IDEM_KIND_STORE},
    {IDEM_ECORRUPT, "CORRUPT", IDEM_KIND_STORE},
    {IDEM_EDENIED, "DENIED", IDEM_KIND_STORE},
    {IDEM_ECONFIG, "CONFIG", IDEM_KIND_STORE},
    {IDEM_ENOMEM, "NOMEM", IDEM_KIND_MEMORY},
    {IDEM_ENOTFOUND, "NOTFOUND", IDEM_KIND_CALLER},
};

/* The values are part of the ABI: -1 to -10, in this order. */
TEST(error, hasTheseValues)
{
    size_t i;

    assert_int_equal(IDEM_OK, 0);
    for (i = 0; i < COUNT(codes); i++) {
        assert_int_equal(codes[i].code, -1 - (int)i);
    }
}

/* Each code has a name, a sentence of its own and a kind. */
TEST(error, hasNameTextAndKind)
{
    size_t i;
    size_t j;

    for (i = 0; i < COUNT(codes); i++) {
        assert_string_equal(idem_error_name(codes[i].code), codes[i].name);
        assert_int_equal(idem_error_kind(codes[i].code), codes[i].kind);
        assert_true(strlen(idem_error_text(codes[i].code)) > 8);
        for (j = 0; j < i; j++) {
            assert_string_not_equal(idem_error_text(codes[i].code),
                                    idem_error_text(codes[j].code));
        }
    }
}

/* 0 and codes that do not exist have words too, and no kind. */
TEST(error, knowsWhatIsNoError)
{
    static const int others[] = {1, -11, 1000, -1000, INT32_MAX, INT32_MIN};

    assert_string_equal(idem_error_name(0), "OK");
    assert_int_equal(idem_error_kind(0), IDEM_KIND_NONE);
    assert_non_null(idem_error_text(0));
    EACH(other, others) {
        assert_non_null(idem_error_name(*other));
        assert_non_null(idem_error_text(*other));
        assert_int_equal(idem_error_kind(*other), IDEM_KIND_NONE);
    }
}

/* Each status has the word that the CLI and the man pages use. */
TEST(names, ofStatuses)
{
    static const char *const words[] = {NULL,     "in_progress", "completed",
                                        "failed", "unknown",     "released",
                                        NULL};
    size_t i;

    for (i = 0; i < COUNT(words); i++) {
        const char *got = idem_status_name((enum idem_status)i);

        if (words[i] == NULL) {
            assert_null(got);
        } else {
            assert_string_equal(got, words[i]);
        }
    }
}

/* Each verdict has its word. */
TEST(names, ofVerdicts)
{
    static const char *const words[] = {
        NULL,       "STARTED",  "REPLAY", "FAILED", "UNKNOWN",
        "RELEASED", "MISMATCH", "BUSY",   NULL,
    };
    size_t i;

    for (i = 0; i < COUNT(words); i++) {
        const char *got = idem_verdict_name((enum idem_verdict)i);

        if (words[i] == NULL) {
            assert_null(got);
        } else {
            assert_string_equal(got, words[i]);
        }
    }
}

/* A slice of text ends before its NUL; one of NULL is empty. */
TEST(slice, isMadeOfText)
{
    assert_int_equal(idem_str("abc").len, 3);
    assert_int_equal(idem_str("").len, 0);
    assert_int_equal(idem_str(NULL).len, 0);
    assert_int_equal(idem_bytes("a\0b", 3).len, 3);
}

/* ---- Settings ---- */

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
