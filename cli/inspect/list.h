/* list.h: the parts of idem list.
 *
 *     list.c          options, which records, the walk, and the lines after the records
 *     list_rows.c     columns and rows
 *     list_order.c    in which order, and where it goes on
 */
#ifndef IDEM_CLI_INSPECT_LIST_H
#define IDEM_CLI_INSPECT_LIST_H

#include "options/command.h"
#include "record/record.h"

#include <idem/operator.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The first lines of a list in its order, however many are offered.
 *
 * A row is its line, ready to be printed, and what it is compared by. About twice as
 * many rows as the limit are held. */

struct cli_row {
    char *line; /* With its newline. */
    int64_t number;
    uint64_t tie; /* Decides between rows of the same number. */
};

/* Less than 0: @a comes before @b, since its number is the larger one. */
int cli_row_compare(const struct cli_row *a, const struct cli_row *b);

struct cli_rows {
    struct cli_row *list;
    size_t len;
    size_t room;
    size_t limit;   /* So many are kept, the first ones in order; 0: all. */
    bool is_cut;    /* The first @limit of the list are in order, and no row
                        after the last of them is wanted. */
    uint64_t added; /* Rows, also those that were not wanted. */
};

/* Counts a row; false: it comes after @limit others, and need not be made. */
bool cli_rows_wants(struct cli_rows *rows, int64_t number, uint64_t tie);

/* Takes @line, which is freed with the rows. 0 or an exit status, after an error message. */
int cli_rows_add(struct cli_rows *rows, char *line, int64_t number,
                 uint64_t tie);

/* Sorts the rows, drops those above the limit, and prints the others, which stay in @rows
 * until it is emptied or finished. */
void cli_rows_print(struct cli_rows *rows, FILE *f);

/* Takes out all rows, to begin anew. */
void cli_rows_empty(struct cli_rows *rows);
void cli_rows_finish(struct cli_rows *rows);

/* In which order idem list shows records, and where it goes on.
 *
 * A SQLite file keeps records in the order in which they came, and is read from the
 * newest on: a list goes on at the store's place ("p..."). An index serves --status
 * without completed, --overdue and --failed, but in another order. So all of these
 * records are read and sorted by when their keys were first claimed, and the list goes
 * on after that time and id ("s..."). Without --max it goes on by itself, part by part,
 * so that it holds only one part in memory. PostgreSQL returns records in no order where
 * no index serves, and is read as a whole in the same way. A DynamoDB table has no order
 * either, but reading it costs money, so only the page that was read is sorted. */

/* The longest place of any kind, with its zero byte. */
#define CLI_LIST_PLACE_MAX IDEM_PLACE_MAX

struct cli_list_order {
    /* Set by the caller. */
    uint64_t limit;    /* 0: all. */
    const char *after; /* The place where the list goes on; NULL: begins. */

    bool sorts;     /* Rows are kept, and printed at the end. */
    bool stops;     /* The walk ends with the limit; else all is read. */
    bool pages;     /* Sorted, and goes on after the last row. */
    bool unordered; /* Records come in no order. */
    bool goes_on;   /* It begins after a row, which the next two name. */
    int64_t after_created_ms;
    uint64_t after_id;
    struct cli_rows rows;
};

/* Chooses the order of a list of @store with @filter. Copies @after to @place if it is a
 * place of the store. 0 or a usage error. */
int cli_list_order(const struct cli_command *command,
                   struct cli_list_order *order,
                   const struct idem_filter *filter, struct idem_store *store,
                   char place[IDEM_PLACE_MAX]);

/* Reports that the place of --after does not belong to this list. */
int cli_list_bad_place(const struct cli_command *command);

/* True if the walk may end, as @shown records are enough. */
bool cli_list_is_full(const struct cli_list_order *order, uint64_t shown);

/* False: the record is not on this page, and needs no row. @ret_row has the numbers to
 * add its line with. */
bool cli_list_wants(struct cli_list_order *order, int code,
                    const struct idem_record *record, struct cli_row *ret_row);

/* To be called after the rows were printed: where the page after them begins. False:
 * these were all. */
bool cli_list_next(const struct cli_list_order *order,
                   char place[CLI_LIST_PLACE_MAX]);

/* To be called after the rows were printed: if the list has no limit and there are more,
 * changes @order to that of the next part. False: these were all, or there is a limit. */
bool cli_list_next_part(struct cli_list_order *order);

/* ---- List ---- */

struct list_args {
    const char *statuses;
    bool overdue;
    bool failed;
    const char *scope;
    const char *match;
    int64_t since_ms;
    const char *fields;
    uint64_t limit;
    const char *after;
    bool json;
    const char *store;
};

struct listing {
    const struct list_args *args; /* As the command line says. */
    struct cli_fields fields;
    bool is_tty; /* For a person: headings, ages, local time. */
    bool tabs;   /* --fields in a pipe: nothing is padded. */
    struct cli_list_order order;
    const char *looking; /* The text of the progress. */
    uint64_t shown;      /* As they came, not sorted. */
    bool more;           /* There are certainly more than --max shows. */
    bool maybe_more;
    int status; /* Of the whole command, so far. */
    uint64_t corrupt;
    bool begun; /* The first row, or the headings, are printed. */
};

/* ---- list_rows.c: 0 or an exit status, after an error message ---- */

/* The columns: --fields, else what fits. */
int listing_choose_fields(const struct cli_command *command,
                          struct listing *listing);

/* Prints the headings, but only when the first row comes: a store that cannot be read has
 * none, and until then the terminal shows the progress. */
void listing_begin_output(struct listing *listing);

int listing_print(FILE *f, const struct listing *listing, int code,
                  const struct idem_record *r);

/* Keeps the line until all of them can be sorted. */
int listing_keep(struct listing *listing, int code,
                 const struct idem_record *r);

#endif
