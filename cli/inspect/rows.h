/* rows.h: lines that are sorted before they are printed.
 *
 * A row is its line, ready to be printed, and what it is compared by. With a
 * limit about twice as many rows are held, however many are added; without one
 * what is beyond CLI_ROWS_BYTES is sorted into a file without a name.
 */
#ifndef IDEM_CLI_INSPECT_ROWS_H
#define IDEM_CLI_INSPECT_ROWS_H

#include "inspect/runs.h"

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
