/* rows.h: the first lines of a list in its order, however many are offered.
 *
 * A row is its line, ready to be printed, and what it is compared by. About twice as
 * many rows as the limit are held.
 */
#ifndef IDEM_CLI_INSPECT_ROWS_H
#define IDEM_CLI_INSPECT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cli_row {
    char *line; /* With its newline. */
    int64_t number;
    uint64_t tie; /* Decides between rows of the same number. */
};

/* Less than 0: @a comes before @b. */
int cli_row_compare(const struct cli_row *a, const struct cli_row *b,
                    bool descending);

struct cli_rows {
    struct cli_row *list;
    size_t len;
    size_t room;
    size_t limit; /* So many are kept, the first ones in order; 0: all. */
    bool descending;
    bool is_cut;    /* The first @limit of the list are in order, and no row
                        after the last of them is wanted. */
    uint64_t added; /* Rows, also those that were not wanted. */
};

/* Counts a row; false: it comes after @limit others, and need not be made. */
bool cli_rows_wants(struct cli_rows *rows, int64_t number, uint64_t tie);

/* Takes @line, which is freed with the rows. 0 or an exit status, after saying why. */
int cli_rows_add(struct cli_rows *rows, char *line, int64_t number,
                 uint64_t tie);

/* Sorts them, drops what is above the limit, and prints them; they stay in @rows until
 * those are emptied or finished. */
void cli_rows_print(struct cli_rows *rows, FILE *f);

/* Takes out all rows, to begin anew. */
void cli_rows_empty(struct cli_rows *rows);
void cli_rows_finish(struct cli_rows *rows);

#endif
