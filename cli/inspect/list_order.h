/* list_order.h: in which order idem list shows records, and where it goes on.
 *
 * A file keeps records in the order in which they came, and is read from the newest
 * on: a list goes on at the store's place ("p..."). An index finds
 * --status without completed, --overdue and --failed, in another order: all of these
 * records are read and sorted by when their keys were first claimed, and the list goes
 * on after that time and id ("s..."). A DynamoDB table has no order: a page of it is sorted by itself.
 */
#ifndef IDEM_CLI_INSPECT_LIST_ORDER_H
#define IDEM_CLI_INSPECT_LIST_ORDER_H

#include "inspect/rows.h"
#include "options/command.h"
#include "record/fields.h"

#include <idem/operator.h>

/* Of a place of any kind, with its zero byte. */
#define CLI_LIST_PLACE_MAX IDEM_PLACE_MAX

struct cli_list_order {
    /* Set by the caller. */
    uint64_t limit;    /* 0: all. */
    const char *after; /* The place where the list goes on; NULL: begins. */
    bool reverse;

    const struct cli_field *field; /* --sort; NULL: none. */
    bool sorts;                    /* Rows are kept, and printed at the end. */
    bool stops;     /* The walk ends with the limit; else all is read. */
    bool pages;     /* Sorted, and goes on after the last row. */
    bool unordered; /* Records come in no order. */
    int64_t after_created_ms;
    uint64_t after_id;
    struct cli_rows rows;
};

/* Takes --sort, "FIELD" or "-FIELD". 0 or a usage error. */
int cli_list_sort(const struct cli_command *command,
                  struct cli_list_order *order, const char *sort);

/* Decides for a list with @filter of a store, which is @remote or not. A place of
 * the store goes to @place. 0 or a usage error. */
int cli_list_order(const struct cli_command *command,
                   struct cli_list_order *order,
                   const struct idem_filter *filter, bool remote,
                   char place[IDEM_PLACE_MAX]);

/* True if the list cannot end before all of the store at @url, as it was given,
 * was read. */
bool cli_list_reads_all(const struct cli_list_order *order,
                        const struct idem_filter *filter, const char *url);

/* "--after: ...": the place is none of this list. */
int cli_list_bad_place(const struct cli_command *command);

/* True if the walk may end, as @shown records are enough. */
bool cli_list_is_full(const struct cli_list_order *order, uint64_t shown);

/* By what a row is sorted. */
struct cli_list_value {
    char *text; /* To be freed. */
    int64_t number;
    uint64_t tie;
};

/* False: the record is not on this page, and needs no row. */
bool cli_list_value(struct cli_list_order *order, int code,
                    const struct idem_record *record,
                    struct cli_list_value *ret_value);

/* Where the page after the sorted rows begins; false: these were all. */
bool cli_list_next(const struct cli_list_order *order,
                   char place[CLI_LIST_PLACE_MAX]);

#endif
