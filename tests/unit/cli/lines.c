/* Lines of a bounded length, from files that may fail. */
#include "text/lines.h"

#include "test.h"

#include <errno.h>
#include <stdlib.h>

static FILE *file_of(struct idem_slice bytes)
{
    FILE *f = fmemopen((void *)(uintptr_t)bytes.base, bytes.len, "r");

    assert_non_null(f);
    return f;
}

/* Lines come one by one, the last with or without its newline; a NUL is a byte
 * like any other. */
TEST(lines, comeOneByOne)
{
    struct idem_slice text = idem_bytes("one\n\nth\0ree\nlast", 16);
    struct cli_lines lines = {.f = file_of(text), .max = 10};

    assert_int_equal(cli_lines_next(&lines), CLI_LINES_ONE);
    assert_text(idem_bytes(lines.line, lines.len), "one");
    assert_int_equal(lines.line[lines.len], '\0');
    assert_int_equal(cli_lines_next(&lines), CLI_LINES_ONE);
    assert_int_equal(lines.len, 0);
    assert_int_equal(cli_lines_next(&lines), CLI_LINES_ONE);
    assert_slice(idem_bytes(lines.line, lines.len), idem_bytes("th\0ree", 6));
    assert_int_equal(lines.number, 3);
    assert_int_equal(cli_lines_next(&lines), CLI_LINES_ONE);
    assert_text(idem_bytes(lines.line, lines.len), "last");
    assert_int_equal(cli_lines_next(&lines), CLI_LINES_END);
    cli_lines_finish(&lines);
    (void)fclose(lines.f);
}

/* What is longer than a line may be is read past, to its end or the file's. */
TEST(lines, areNeverTooLong)
{
    struct cli_lines lines = {.f = file_of(idem_str("1234\n12345\n1\n123456")),
                              .max = 4};
    static const enum cli_lines_got want[] = {CLI_LINES_ONE, CLI_LINES_TOO_LONG,
                                              CLI_LINES_ONE, CLI_LINES_TOO_LONG,
                                              CLI_LINES_END};
    size_t i;

    for (i = 0; i < COUNT(want); i++) {
        assert_int_equal(cli_lines_next(&lines), want[i]);
        assert_int_equal(lines.number, i + 1);
    }
    cli_lines_finish(&lines);
    (void)fclose(lines.f);
}

/* Longer lines than there is room at first. */
TEST(lines, growAsLongAsTheyMay)
{
    enum {
        LONG = 300000
    };
    char *text = malloc(LONG + 1);
    struct cli_lines lines = {.max = LONG};

    assert_non_null(text);
    memset(text, 'x', LONG);
    text[LONG] = '\n';
    lines.f = file_of(idem_bytes(text, LONG + 1));
    assert_int_equal(cli_lines_next(&lines), CLI_LINES_ONE);
    assert_int_equal(lines.len, LONG);
    assert_int_equal(cli_lines_next(&lines), CLI_LINES_END);
    cli_lines_finish(&lines);
    (void)fclose(lines.f);
    free(text);
}

static ssize_t read_some(void *cookie, char *buf, size_t size)
{
    int *left = cookie;

    (void)size;
    if (*left == 0) {
        errno = EIO;
        return -1;
    }
    --*left;
    *buf = 'x';
    return 1;
}

/* A file that cannot be read any further is no end of it, in a line that is told
 * and in one that is read past. */
TEST(lines, failWithTheirFile)
{
    static const cookie_io_functions_t io = {.read = read_some};
    int bytes;

    for (bytes = 0; bytes < 8; bytes++) {
        int left = bytes;
        struct cli_lines lines = {.f = fopencookie(&left, "r", io), .max = 4};

        assert_non_null(lines.f);
        errno = 0;
        assert_int_equal(cli_lines_next(&lines), CLI_LINES_FAILED);
        assert_int_equal(errno, EIO);
        cli_lines_finish(&lines);
        (void)fclose(lines.f);
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

/* A line that is too long is read past; those after it keep their numbers. */
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
