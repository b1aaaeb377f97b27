/* list.h: the parts of idem list.
 *
 *     list.c          options, which records, the walk, and what comes after them
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

/* Sorts them, drops what is above the limit, and prints them; they stay in @rows until
 * those are emptied or finished. */
void cli_rows_print(struct cli_rows *rows, FILE *f);

/* Takes out all rows, to begin anew. */
void cli_rows_empty(struct cli_rows *rows);
void cli_rows_finish(struct cli_rows *rows);

/* In which order idem list shows records, and where it goes on.
 *
 * A file keeps records in the order in which they came, and is read from the newest
 * on: a list goes on at the store's place ("p..."). An index finds
 * --status without completed, --overdue and --failed, in another order: all of these
 * records are read and sorted by when their keys were first claimed, and the list goes
 * on after that time and id ("s..."). Without --max it does so by itself, part by part,
 * so that no more than a part is held. PostgreSQL has no order of what it is asked for
 * without an index, and is read whole likewise. A DynamoDB table has none either, and to
 * read it costs money: a page of it is sorted by itself. */

/* Of a place of any kind, with its zero byte. */
#define CLI_LIST_PLACE_MAX IDEM_PLACE_MAX

struct cli_list_order {
    /* Set by the caller. */
    uint64_t limit;    /* 0: all. */
    const char *after; /* The place where the list goes on; NULL: begins. */

    bool sorts;     /* Rows are kept, and printed at the end. */
    bool stops;     /* The walk ends with the limit; else all is read. */
    bool pages;     /* Sorted, and goes on after the last row. */
    bool unordered; /* Records come in no order. */
    bool goes_on;   /* After a row: the next two say which. */
    int64_t after_created_ms;
    uint64_t after_id;
    struct cli_rows rows;
};

/* Decides for a list of @store with @filter. A place of the store goes to @place. 0 or a
 * usage error. */
int cli_list_order(const struct cli_command *command,
                   struct cli_list_order *order,
                   const struct idem_filter *filter, struct idem_store *store,
                   char place[IDEM_PLACE_MAX]);

/* "--after: ...": the place is none of this list. */
int cli_list_bad_place(const struct cli_command *command);

/* True if the walk may end, as @shown records are enough. */
bool cli_list_is_full(const struct cli_list_order *order, uint64_t shown);

/* False: the record is not on this page, and needs no row. @ret_row is what its line
 * is added with. */
bool cli_list_wants(struct cli_list_order *order, int code,
                    const struct idem_record *record, struct cli_row *ret_row);

/* After the rows were printed: where the page after them begins; false: these were
 * all. */
bool cli_list_next(const struct cli_list_order *order,
                   char place[CLI_LIST_PLACE_MAX]);

/* After the rows were printed: where all are to be shown and there are more, makes
 * @order that of the next part. False: these were all, or as many as were asked for. */
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
    bool is_tty; /* For eyes: headings, ages, local time. */
    bool tabs;   /* --fields in a pipe: nothing is padded. */
    struct cli_list_order order;
    const char *looking; /* The text of the progress. */
    uint64_t shown;      /* As they came, not sorted. */
    bool more;           /* Than --max shows; for certain. */
    bool maybe_more;
    int status; /* Of the whole command, so far. */
    uint64_t corrupt;
    bool begun; /* The first row, or the headings, are printed. */
};

/* ---- list_rows.c: 0 or an exit status, after an error message ---- */

/* The columns: --fields, else what fits. */
int listing_choose_fields(const struct cli_command *command,
                          struct listing *listing);

/* With the first row: a store that cannot be read has no heading, and while it is
 * looked through the terminal shows how far it is. */
void listing_begin_output(struct listing *listing);

int listing_print(FILE *f, const struct listing *listing, int code,
                  const struct idem_record *r);

/* Keeps the line until all of them can be sorted. */
int listing_keep(struct listing *listing, int code,
                 const struct idem_record *r);

#endif
