/* Lines that are sorted before they are printed. */
#include "inspect/rows.h"

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
        if (cli_rows_wants(&rows, NULL, (int64_t)number, i)) {
            assert_int_equal(cli_rows_add(&rows, strdup(line), NULL,
                                          (int64_t)number, i),
                             0);
        }
    }
    assert_int_equal(rows.added, len);
    assert_int_equal(cli_rows_print(&rows, f), 0);
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
        if (cli_rows_wants(&rows, NULL, i, 0)) {
            assert_int_equal(cli_rows_add(&rows, strdup("x"), NULL, i, 0), 0);
            made++;
        }
        assert_true(rows.len <= 64);
    }
    assert_true(made <= 64);
    cli_rows_finish(&rows);
}

/* Without a limit the file takes what is beyond a bound, and the order is the
 * same: by number or by text, up or down. */
TEST(rows, areMergedFromAFile)
{
    enum {
        LEN = 997
    };
    int way;

    for (way = 0; way < 4; way++) {
        struct cli_rows rows = {.bytes_max = 2000, .descending = way & 1};
        char *text = NULL;
        size_t text_len;
        FILE *f = open_memstream(&text, &text_len);
        char line[32];
        char *p;
        size_t i;

        assert_non_null(f);
        for (i = 0; i < LEN; i++) {
            size_t number = i * 7 % LEN;

            (void)snprintf(line, sizeof(line), "%05zu\n", number);
            assert_int_equal(cli_rows_add(&rows, strdup(line),
                                          way & 2 ? strdup(line) : NULL,
                                          (int64_t)number, 0),
                             0);
            assert_true(rows.len <= 64);
        }
        assert_true(rows.runs.len > 10);
        assert_int_equal(cli_rows_print(&rows, f), 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(strlen(text), 6 * LEN);
        for (i = 0, p = text; i < LEN; i++, p += 6) {
            (void)snprintf(line, sizeof(line), "%05zu\n",
                           way & 1 ? LEN - 1 - i : i);
            assert_memory_equal(p, line, 6);
        }
        free(text);
        cli_rows_finish(&rows);
    }
}

/* Texts are compared as texts; what is alike stays in its order. */
TEST(rows, compareTexts)
{
    struct cli_rows rows = {0};
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    assert_int_equal(cli_rows_add(&rows, strdup("1"), strdup("b"), 0, 1), 0);
    assert_int_equal(cli_rows_add(&rows, strdup("2"), strdup("a"), 0, 2), 0);
    assert_int_equal(cli_rows_add(&rows, strdup("3"), strdup("b"), 0, 3), 0);
    assert_int_equal(cli_rows_print(&rows, f), 0);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, "213");
    free(text);
    cli_rows_finish(&rows);
}
