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
