/* Bytes as base64, and lines of a bounded length. */
#include "base64.h"

#include "lines.h"
#include "test.h"

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff", "+/8="},
};

TEST(base64, isTheUsualOne)
{
    uint8_t bytes[16];
    char text[16];
    size_t len;
    size_t i;

    for (i = 0; i < COUNT(vectors); i++) {
        struct idem_slice s = idem_str(vectors[i][0]);

        cli_base64(s, text);
        assert_string_equal(text, vectors[i][1]);
        assert_int_equal(cli_base64_len(s.len), strlen(text));
        assert_true(cli_base64_decode(idem_str(text), bytes, &len));
        assert_int_equal(len, s.len);
        assert_memory_equal(bytes, s.base, len);
    }
}

/* One spelling for each value: neither spaces nor stray bits nor bad padding. */
TEST(base64, hasOneSpelling)
{
    static const char *const bad[] = {"Z",        "Zg",   "Zg=",   "Zh==",
                                      "Zm9=",     "====", "Z===",  "=Zg=",
                                      "Zg==Zg==", "Zm 9", "Zm9\n", "-_8=",
                                      "Zm9{",     "Zm9`", "Zm9[",  "Zm9@",
                                      "Zm9:"};
    uint8_t bytes[16];
    size_t len;
    size_t i;

    for (i = 0; i < COUNT(bad); i++) {
        assert_false(cli_base64_decode(idem_str(bad[i]), bytes, &len));
    }
}

static void check_line(struct cli_lines *lines, enum cli_lines_got want,
                       const char *text)
{
    assert_int_equal(cli_lines_next(lines), want);
    if (text != NULL) {
        assert_string_equal(lines->line, text);
        assert_int_equal(lines->len, strlen(text));
    }
}

/* What is too long is read past; the lines behind it keep their numbers. */
TEST(lines, areBounded)
{
    char text[] = "one\n\n12345\n123456\ntwo\0x\nlast";
    FILE *f = fmemopen(text, sizeof(text) - 1, "r");
    struct cli_lines lines = {.f = f, .max = 5};

    assert_non_null(f);
    check_line(&lines, CLI_LINES_ONE, "one");
    check_line(&lines, CLI_LINES_ONE, "");
    check_line(&lines, CLI_LINES_ONE, "12345");
    check_line(&lines, CLI_LINES_TOO_LONG, NULL);
    check_line(&lines, CLI_LINES_ONE, NULL);
    assert_int_equal(lines.len, 5);
    check_line(&lines, CLI_LINES_ONE, "last");
    assert_int_equal(lines.number, 6);
    check_line(&lines, CLI_LINES_END, NULL);
    cli_lines_finish(&lines);
    (void)fclose(f);
}
