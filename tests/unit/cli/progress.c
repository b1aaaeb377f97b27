/* The line of progress: what it says, and how wide it is. */
#include "test.h"
#include "text/screen.h"

/* A count that is known has a bar, a share, a rate and the time left. */
TEST(progress, hasABarWhereTheEndIsKnown)
{
    char line[CLI_PROGRESS_MAX];
    int len = cli_progress_line("copying", 500, 2000, 2000, 80, line);

    assert_string_equal(line, "copying [=========>                           ]"
                              "  25% 500/2000  250/s  6s left");
    assert_int_equal(len, strlen(line));
    (void)cli_progress_line("copying", 2000, 2000, 4000, 50, line);
    assert_string_equal(line,
                        "copying [========] 100% 2000/2000  500/s  0s left");
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
