/* How bytes, times, durations, commands and progress read. */
#include "text/text.h"

#include "record/verdict.h"
#include "test.h"
#include "text/error.h"
#include "text/screen.h"

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

/* ---- What somebody may have meant ---- */

static const char *nearest(const char *word)
{
    static const char *const known[] = {"run",   "begin", "renew", "release",
                                        "show",  "list",  "key",   "completion",
                                        "purge", "fail"};
    struct cli_nearest n = {.word = word};

    EACH(one, known) {
        cli_nearest_offer(&n, *one);
    }
    return n.best;
}

/* One slip in a short word, two in a long one, or the beginning of it. */
TEST(nearest, forgivesSlips)
{
    assert_string_equal(nearest("bgin"), "begin");
    assert_string_equal(nearest("bgeni"), "begin");
    assert_string_equal(nearest("rnu"), "run");
    assert_string_equal(nearest("lst"), "list");
    assert_string_equal(nearest("lists"), "list");
    assert_string_equal(nearest("comp"), "completion");
    assert_string_equal(nearest("ru"), "run");
}

/* Nothing is better than something far away. */
TEST(nearest, doesNotGuess)
{
    assert_null(nearest("xyzzy"));
    assert_null(nearest(""));
    assert_null(nearest("k"));
    assert_null(nearest("rabbit"));
    assert_null(nearest("an argument that is longer than any command is"));
}

/* ---- Commands to type ---- */

static void check_quoted(struct idem_slice s, const char *want)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    cli_print_quoted(f, s);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, want);
    free(text);
}

/* Only what a shell would change is quoted. */
TEST(quoted, isOneWordOfAShell)
{
    check_quoted(idem_str("order-42"), "order-42");
    check_quoted(idem_str("a/b.c_d:e@f%g+h,i"), "a/b.c_d:e@f%g+h,i");
    check_quoted(idem_str(""), "''");
    check_quoted(idem_str("a b"), "'a b'");
    check_quoted(idem_str("~root"), "'~root'");
    check_quoted(idem_str("=ls"), "'=ls'");
    check_quoted(idem_str("$(id) `id` *"), "'$(id) `id` *'");
    check_quoted(idem_str("it's"), "'it'\\''s'");
    check_quoted(idem_str("schl\xc3\xbcssel"), "'schl\xc3\xbcssel'");
    check_quoted(idem_str("a\nb"), "$'a\\012b'");
    check_quoted(idem_str("\xff'\\7"), "$'\\377\\047\\1347'");
}

static void check_mend(const char *scope, struct idem_slice key,
                       const char *want)
{
    struct idem_record record = {.scope = idem_str(scope), .key = key};
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    cli_print_remedy(f, "show", " --json", &record, "sqlite:a b");
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, want);
    free(text);
}

/* A key that looks like an option stands behind "--". */
TEST(mend, isReadyToBeTyped)
{
    (void)unsetenv("IDEM_SCOPE");
    check_mend("", idem_str("k"), "idem show --store='sqlite:a b' --json k");
    check_mend("s", idem_str("-k"),
               "idem show --store='sqlite:a b' --scope=s --json -- -k");
    check_mend("", idem_str("escaped:k"),
               "idem show --store='sqlite:a b' --json escaped:escaped:k");
    check_mend("", idem_str("escaped:a\\b"),
               "idem show --store='sqlite:a b' --json "
               "'escaped:escaped:a\\x5cb'");
    check_mend("", idem_str("escaped:\n"),
               "idem show --store='sqlite:a b' --json "
               "'escaped:escaped:\\x0a'");
    check_mend("", idem_str("a\\b"),
               "idem show --store='sqlite:a b' --json 'a\\b'");
    check_mend("", idem_bytes("a\0b", 3),
               "idem show --store='sqlite:a b' --json --key-file=FILE");
}

/* An empty scope is said where another one would be taken. */
TEST(mend, saysAnEmptyScopeIfItMust)
{
    (void)setenv("IDEM_SCOPE", "acme", /* overwrite= */ 1);
    check_mend("", idem_str("k"),
               "idem show --store='sqlite:a b' --scope='' --json k");
    (void)unsetenv("IDEM_SCOPE");
}

/* ---- Progress ---- */

/* A count that is known has a share, a rate and the time left. */
TEST(progress, hasAShareWhereTheEndIsKnown)
{
    char line[CLI_PROGRESS_MAX];
    int len = cli_progress_line("copying", 500, 2000, 2000, 80, line);

    assert_string_equal(line, "copying  25% 500/2000  250/s  6s left");
    assert_int_equal(len, strlen(line));
    (void)cli_progress_line("copying", 2000, 2000, 4000, 50, line);
    assert_string_equal(line, "copying 100% 2000/2000  500/s  0s left");
}

/* One that is not has what was done, a rate and the time so far. */
TEST(progress, doesWithoutAnEnd)
{
    char line[CLI_PROGRESS_MAX];

    (void)cli_progress_line("purging", 3000, 0, 61000, 80, line);
    assert_string_equal(line, "purging 3000  49/s  61s");
    (void)cli_progress_line("purging", 3000, 0, 0, 80, line);
    assert_string_equal(line, "purging 3000");
    (void)cli_progress_line("purging", 0, 0, 5000, 80, line);
    assert_string_equal(line, "purging 0  0/s");
}

/* Whatever is to be said, it stays on its line. */
TEST(progress, fitsTheTerminal)
{
    static const uint64_t numbers[] = {
        0, 1, 999, 1234567, UINT64_MAX / 2, UINT64_MAX};
    char line[CLI_PROGRESS_MAX];
    int columns;
    size_t i;

    for (columns = 20; columns < 400; columns += 7) {
        for (i = 0; i < COUNT(numbers); i++) {
            EACH(number, numbers) {
                int len = cli_progress_line("looking through the store",
                                            numbers[i], *number,
                                            (int64_t)i * 100000, columns, line);

                assert_int_equal(len, strlen(line));
                assert_true(len < columns);
            }
        }
    }
}

/* More than all, of a store that grows meanwhile, is all. */
TEST(progress, endsAtTheEnd)
{
    char line[CLI_PROGRESS_MAX];

    (void)cli_progress_line("copying", 30, 20, 1000, 60, line);
    assert_non_null(strstr(line, "100% 20/20"));
}
