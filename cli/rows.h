/* rows.h: lines that are sorted before they are printed, or only the last ones.
 *
 * A row is its line, ready to be printed, and what it is compared by. With a
 * limit about twice as many rows are held, however many are added.
 */
#ifndef IDEM_CLI_ROWS_H
#define IDEM_CLI_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cli_row {
    char *line; /* With its newline. */
    char *text; /* What it is compared by; NULL: @number. */
    int64_t number;
    uint64_t turn; /* Rows that are alike stay in this order. */
};

struct cli_rows {
    struct cli_row *list;
    size_t len;
    size_t room;
    size_t limit; /* So many are kept; 0: all. */
    uint64_t turn;
    bool descending;
    bool keeps_last; /* The last rows in order, else the first. */
};

/* Takes @line and @text, which are freed with the rows. 0, or -1: no memory. */
int cli_rows_add(struct cli_rows *rows, char *line, char *text, int64_t number);

/* Sorts them, drops what is above the limit, and prints them. */
void cli_rows_print(struct cli_rows *rows, FILE *f);
void cli_rows_finish(struct cli_rows *rows);

#endif
