/* list_order.h: in which order idem list shows records, and where it goes on.
 *
 * A file keeps records in the order in which they came, and is read from the newest
 * on: a list goes on at the store's place ("p..."). An index finds
 * --status without completed, --overdue and --failed, in another order: all of these
 * records are read and sorted by when their keys were first claimed, and the list goes
 * on after that time and id ("s..."). Without --limit it does so by itself, part by part,
 * so that no more than a part is held. PostgreSQL has no order of what it is asked for
 * without an index, and is read whole likewise. A DynamoDB table has none either, and to
 * read it costs money: a page of it is sorted by itself.
 */
#ifndef IDEM_CLI_INSPECT_LIST_ORDER_H
#define IDEM_CLI_INSPECT_LIST_ORDER_H

#include "inspect/rows.h"
#include "options/command.h"

#include <idem/operator.h>

/* Of a place of any kind, with its zero byte. */
#define CLI_LIST_PLACE_MAX IDEM_PLACE_MAX

struct cli_list_order {
    /* Set by the caller. */
    uint64_t limit;    /* 0: all. */
    const char *after; /* The place where the list goes on; NULL: begins. */
    bool reverse;

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

#endif
