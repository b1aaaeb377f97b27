/* rows.h: lines that are sorted before they are printed.
 *
 * A row is its line, ready to be printed, and what it is compared by. With a
 * limit about twice as many rows are held, however many are added; without one
 * what is beyond CLI_ROWS_BYTES is sorted into a file without a name.
 */
#ifndef IDEM_CLI_INSPECT_ROWS_H
#define IDEM_CLI_INSPECT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- Rows in sorted runs in a file without a name, merged at the end --------- */

struct cli_row {
    char *line; /* With its newline. */
    char *text; /* Compared; NULL: @number is. */
    int64_t number;
    uint64_t tie; /* Decides between rows that are alike. */
};

/* Less than 0: @a comes before @b. */
int cli_row_compare(const struct cli_row *a, const struct cli_row *b,
                    bool descending);
void cli_row_finish(struct cli_row *row);

struct cli_sorted_run {
    int64_t at; /* In the file: the next row. */
    int64_t end;
    struct cli_row row; /* Being merged. */
};

struct cli_runs {
    FILE *f; /* NULL: no runs yet. */
    struct cli_sorted_run *list;
    size_t len;
};

/* Adds a run: @rows, in order. 0 or an exit status, after saying why. */
int cli_runs_add(struct cli_runs *runs, const struct cli_row *rows, size_t len);

/* Prints the lines of all runs in order. Likewise. */
int cli_runs_print(struct cli_runs *runs, bool descending, FILE *f);
void cli_runs_finish(struct cli_runs *runs);

/* ---- All rows -------------------------------------------------------------- */

struct cli_rows {
    struct cli_row *list;
    size_t len;
    size_t room;
    size_t limit; /* So many are kept, the first ones in order; 0: all. */
    bool descending;
    bool is_cut;      /* The first @limit of the list are in order, and no row
                          after the last of them is wanted. */
    size_t bytes;     /* Of memory for the rows of the list, about. */
    size_t bytes_max; /* From then on they go to the file; 0: the usual. */
    uint64_t added;   /* Rows, also those that were not wanted. */
    struct cli_runs runs;
};

/* Counts a row; false: it comes after @limit others, and need not be made. */
bool cli_rows_wants(struct cli_rows *rows, const char *text, int64_t number,
                    uint64_t tie);

/* Takes @line and @text, which are freed with the rows; @text may be NULL: @number
 * is compared. 0 or an exit status, after saying why. */
int cli_rows_add(struct cli_rows *rows, char *line, char *text, int64_t number,
                 uint64_t tie);

/* Sorts them, drops what is above the limit, and prints them. The last one of a
 * list with a limit stays in @rows until they are finished. 0 or an exit status. */
int cli_rows_print(struct cli_rows *rows, FILE *f);
void cli_rows_finish(struct cli_rows *rows);

#endif
