/* How bytes, times and durations read. */
#include "text/text.h"

#include "test.h"

#include <idem/setting.h>
#include <stdlib.h>
#include <time.h>

static void check_escape(const char *bytes, size_t len, const char *want)
{
    char buf[64];

    assert_string_equal(cli_escape(idem_bytes(bytes, len), buf, sizeof(buf)),
                        want);
}

/* What can be seen stays, in any language; no two slices of bytes read the same. */
TEST(escape, showsEveryByte)
{
    check_escape("schl\xc3\xbcssel \xe6\xb3\xa8\xe6\x96\x87 \xf0\x9f\x94\x91",
                 22,
                 "schl\xc3\xbcssel \xe6\xb3\xa8\xe6\x96\x87 \xf0\x9f\x94\x91");
    check_escape("\xc2\x85\xc2\xa0", 4, "\\xc2\\x85\\xc2\\xa0");
    check_escape("\xe2\x80\xae"
                 "a",
                 4,
                 "\\xe2\\x80\\xae"
                 "a");
    check_escape("\xef\xbb\xbf", 3, "\\xef\\xbb\\xbf");
    check_escape("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");
    check_escape("\xc3\xbc", 1, "\\xc3");

    check_escape("", 0, "");
    check_escape("order 42 ~", 10, "order 42 ~");
    check_escape("\\x41", 4, "\\x5cx41");
    check_escape("A", 1, "A");
    check_escape("a\0b", 3, "a\\x00b");
    check_escape("\x1b[31m\n\x7f\xff", 8, "\\x1b[31m\\x0a\\x7f\\xff");
}

/* What does not fit is cut between characters, and says so. */
TEST(escape, cutsWhatDoesNotFit)
{
    char buf[8];

    assert_string_equal(cli_escape(idem_str("1234567"), buf, 8), "1234567");
    assert_string_equal(cli_escape(idem_str("12345678"), buf, 8), "1234...");
    assert_string_equal(cli_escape(idem_str("\xff\xff"), buf, 8), "\\xff...");
    assert_string_equal(cli_escape(idem_str("123\xff"), buf, 8), "123\\xff");
    assert_string_equal(cli_escape(idem_str("1234\xff"), buf, 8), "1234...");
}

static void check_key(struct idem_slice key, const char *want)
{
    char bytes[64];
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    cli_print_key(f, key);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, want);
    if (strncmp(text, CLI_ESCAPED, strlen(CLI_ESCAPED)) == 0) {
        assert_true(cli_unescape(text + strlen(CLI_ESCAPED), bytes,
                                 sizeof(bytes), &len));
        assert_int_equal(len, key.len);
        assert_memory_equal(bytes, key.base, len);
    }
    free(text);
}

/* A key that cannot be typed as it is says so, and is the same one read back. */
TEST(key, isReadBackAsItIsShown)
{
    check_key(idem_str("order-42 \xc3\xbc"), "order-42 \xc3\xbc");
    check_key(idem_bytes("a\0b", 3), "escaped:a\\x00b");
    check_key(idem_str("a\\x41"), "escaped:a\\x5cx41");
    check_key(idem_str("\xff\n"), "escaped:\\xff\\x0a");
    check_key(idem_str("escaped:x"), "escaped:escaped:x");
}

TEST(unescape, refusesAllElse)
{
    static const char *const bad[] = {"\\",  "\\x",   "\\x4", "\\x4g",
                                      "\\n", "\\X41", "12345"};
    char buf[4];
    size_t len;

    EACH(one, bad) {
        if (cli_unescape(*one, buf, sizeof(buf), &len)) {
            fail_with("this was taken: %s", *one);
        }
    }
}

/* Pairs of digits in lower case, and no more than there is room for. */
TEST(unhex, takesPairsOfDigits)
{
    static const char *const bad[] = {"0", "0g", "0A", "00112233"};
    uint8_t buf[3] = {0};
    size_t len = 9;

    assert_true(cli_unhex(idem_str("00ff1a"), buf, sizeof(buf), &len));
    assert_int_equal(len, 3);
    assert_memory_equal(buf, "\0\xff\x1a", 3);
    assert_true(cli_unhex(idem_str(""), buf, sizeof(buf), &len));
    assert_int_equal(len, 0);
    EACH(one, bad) {
        assert_false(cli_unhex(idem_str(*one), buf, sizeof(buf), &len));
    }
}

/* Columns are counted, not bytes. */
TEST(columns, areCharacters)
{
    assert_int_equal(cli_columns(""), 0);
    assert_int_equal(cli_columns("abc"), 3);
    assert_int_equal(cli_columns("schl\xc3\xbcssel"), 9);
}

/* Where the clock on the wall says something else than UTC. */
TEST(time, isLocalOnATerminal)
{
    char buf[48];

    (void)setenv("TZ", "CET-1", 1);
    tzset();
    cli_time_for(/* is_tty= */ true, 1795249440123, buf);
    assert_string_equal(buf, "2026-11-21 09:24:00 CET");
    cli_time_for(/* is_tty= */ false, 1795249440123, buf);
    assert_string_equal(buf, "2026-11-21T08:24:00.123Z");
    cli_time_for(/* is_tty= */ true, 0, buf);
    assert_string_equal(buf, "-");
    cli_time_for(/* is_tty= */ true, IDEM_NEVER, buf);
    assert_string_equal(buf, "never");
}

/* Two units at most, and none that nobody counts in. */
TEST(span, isHowPeopleSayIt)
{
    static const struct {
        int64_t ms;
        const char *want;
    } rows[] = {{0, "0ms"},
                {999, "999ms"},
                {2189, "2.1s"},
                {43217, "43s"},
                {119999, "119s"},
                {125000, "2m5s"},
                {725000, "12m"},
                {3600000, "1h"},
                {12000000, "3h20m"},
                {100800000, "28h"},
                {187200000, "2d4h"},
                {2160000000, "25d"},
                {1795392000000, "56y"},
                {IDEM_NEVER, "never"}};
    char buf[32];

    EACH(row, rows) {
        cli_span_text(row->ms, buf);
        assert_string_equal(buf, row->want);
    }
}

/* In words there are two units where the first alone says little. */
TEST(spanWords, areHowPeopleSayIt)
{
    static const struct {
        int64_t ms;
        const char *want;
    } rows[] = {{0, "less than a second"},
                {999, "less than a second"},
                {1999, "1 second"},
                {59999, "59 seconds"},
                {60000, "1 minute"},
                {215000, "3 minutes"},
                {3600000, "1 hour"},
                {3660000, "1 hour 1 minute"},
                {12000000, "3 hours 20 minutes"},
                {50400000, "14 hours"},
                {187200000, "2 days 4 hours"},
                {2160000000, "25 days"},
                {31536000000, "1 year"},
                {1795392000000, "56 years"},
                {INT64_MAX, "292471208 years"}};
    char buf[CLI_WORDS_MAX];

    EACH(row, rows) {
        cli_span_words(row->ms, buf);
        assert_string_equal(buf, row->want);
    }
}

/* The largest unit that loses nothing, or of which there are ten. */
TEST(duration, isInTheUnitThatReadsBest)
{
    static const struct {
        int64_t ms;
        const char *want;
    } rows[] = {{0, "0ms"},
                {1, "1ms"},
                {999, "999ms"},
                {1000, "1s"},
                {9500, "9500ms"},
                {10001, "10s"},
                {43217, "43s"},
                {60000, "1m"},
                {90000, "90s"},
                {3600000, "1h"},
                {5400000, "90m"},
                {86400000, "1d"},
                {86400001, "24h"},
                {864000001, "10d"},
                {IDEM_NEVER, "never"},
                {IDEM_DURATION_MAX_MS, "36525d"}};
    char buf[32];

    EACH(row, rows) {
        idem_setting_time(row->ms, buf);
        assert_string_equal(buf, row->want);
    }
}
