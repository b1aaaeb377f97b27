/* The first lines of a list in its order. */
#include "inspect/list.h"

#include "test.h"

#include <stdlib.h>

/* Adds the numbers 0 to @len - 1, shuffled, and compares what is printed. */
static void check_numbers(struct cli_rows rows, size_t len, const char *want)
{
    char *text = NULL;
    size_t text_len;
    FILE *f = open_memstream(&text, &text_len);
    char line[32];
    size_t i;

    assert_non_null(f);
    for (i = 0; i < len; i++) {
        size_t number = i * 7 % len; /* 7 and @len have no common factor. */

        (void)snprintf(line, sizeof(line), "%zu ", number);
        if (cli_rows_wants(&rows, (int64_t)number, i)) {
            assert_int_equal(cli_rows_add(&rows, strdup(line), (int64_t)number,
                                          i),
                             0);
        }
    }
    assert_int_equal(rows.added, len);
    cli_rows_print(&rows, f);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, want);
    free(text);
    cli_rows_finish(&rows);
}

TEST(rows, areSortedAndCut)
{
    check_numbers((struct cli_rows){0}, 5, "0 1 2 3 4 ");
    check_numbers((struct cli_rows){.descending = true}, 5, "4 3 2 1 0 ");
    check_numbers((struct cli_rows){.limit = 3}, 1000, "0 1 2 ");
    check_numbers((struct cli_rows){.limit = 3, .descending = true}, 1000,
                  "999 998 997 ");
    check_numbers((struct cli_rows){.limit = 7}, 5, "0 1 2 3 4 ");
    check_numbers((struct cli_rows){.limit = 3}, 0, "");
}

/* However many are added, a limit bounds what is held; and what comes after the
 * limit is not even made. */
TEST(rows, areFewWithALimit)
{
    struct cli_rows rows = {.limit = 10};
    int made = 0;
    int i;

    for (i = 0; i < 10000; i++) {
        if (cli_rows_wants(&rows, i, 0)) {
            assert_int_equal(cli_rows_add(&rows, strdup("x"), i, 0), 0);
            made++;
        }
        assert_true(rows.len <= 64);
    }
    assert_true(made <= 64);
    cli_rows_finish(&rows);
}

/* Emptied, they begin anew. */
TEST(rows, areEmptied)
{
    struct cli_rows rows = {.limit = 1};

    assert_true(cli_rows_wants(&rows, 1, 0));
    assert_int_equal(cli_rows_add(&rows, strdup("x"), 1, 0), 0);
    cli_rows_print(&rows, stderr);
    assert_false(cli_rows_wants(&rows, 2, 0));
    cli_rows_empty(&rows);
    assert_int_equal(rows.added, 0);
    assert_true(cli_rows_wants(&rows, 2, 0));
    cli_rows_finish(&rows);
}
