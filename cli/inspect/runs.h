/* runs.h: rows in sorted runs in a file without a name, merged at the end. */
#ifndef IDEM_CLI_INSPECT_RUNS_H
#define IDEM_CLI_INSPECT_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

struct cli_run {
    int64_t at; /* In the file: the next row. */
    int64_t end;
    struct cli_row row; /* Being merged. */
};

struct cli_runs {
    FILE *f; /* NULL: no runs yet. */
    struct cli_run *list;
    size_t len;
};

/* Adds a run: @rows, in order. 0 or an exit status, after saying why. */
int cli_runs_add(struct cli_runs *runs, const struct cli_row *rows, size_t len);

/* Prints the lines of all runs in order. Likewise. */
int cli_runs_print(struct cli_runs *runs, bool descending, FILE *f);
void cli_runs_finish(struct cli_runs *runs);

#endif
