/* In which order idem list shows records, and where it goes on. */
#include "inspect/list_order.h"

#include "options/command.h"
#include "store/index.h"

#include <idem/operator.h>
#include <inttypes.h>

/* Rows of one part of a list that shows all: some megabytes. */
enum {
    PART = 4096,
    PART_OF_WHOLE = 65536 /* All is read again for each. */
};

int cli_list_bad_place(const struct cli_command *command)
{
    return cli_usage(command,
                     "--after: not a place of this list; type the command that "
                     "the page before it ended with");
}

/* "s1763900000000-0123456789abcdef" */
static bool read_place(struct cli_list_order *order)
{
    char again[CLI_LIST_PLACE_MAX];

    if (sscanf(order->after, "s%19" SCNd64 "-%16" SCNx64,
               &order->after_created_ms, &order->after_id) != 2) {
        return false;
    }
    (void)snprintf(again, sizeof(again), "s%" PRId64 "-%016" PRIx64,
                   order->after_created_ms, order->after_id);
    return strcmp(again, order->after) == 0;
}

int cli_list_order(const struct cli_command *command,
                   struct cli_list_order *order,
                   const struct idem_filter *filter, struct idem_store *store,
                   char place[IDEM_PLACE_MAX])
{
    bool remote = idem_store_is_remote(store);
    bool whole = remote && strncmp(idem_store_url(store), "postgres", 8) == 0;
    bool indexed = cli_index_serves(filter) || whole;

    order->sorts = indexed || (remote && order->limit != 0);
    order->stops = !indexed && order->limit != 0;
    order->pages = indexed;
    order->unordered = !indexed && remote;
    order->rows.descending = !order->reverse;
    if (indexed) {
        order->rows.limit = order->limit != 0 ? (size_t)order->limit
                            : whole           ? PART_OF_WHOLE
                                              : PART;
    }
    if (order->after == NULL) {
        return 0;
    }
    if (!indexed && strlen(order->after) < IDEM_PLACE_MAX) {
        (void)strcpy(place, order->after);
        return 0;
    }
    order->goes_on = indexed && read_place(order);
    return order->goes_on ? 0 : cli_list_bad_place(command);
}

bool cli_list_is_full(const struct cli_list_order *order, uint64_t shown)
{
    return order->stops && shown >= order->limit;
}

/* The same in any walk, and in any process. */
static uint64_t tie_of(const struct idem_record *r)
{
    uint64_t tie = 0;
    size_t i;

    for (i = 0; i < sizeof(tie); i++) {
        tie = tie << 8 | r->id[i];
    }
    return tie;
}

static bool is_before(const struct cli_list_order *order,
                      const struct cli_row *row)
{
    struct cli_row place = {.number = order->after_created_ms,
                            .tie = order->after_id};

    return order->goes_on &&
           cli_row_compare(row, &place, order->rows.descending) <= 0;
}

bool cli_list_wants(struct cli_list_order *order, int code,
                    const struct idem_record *record, struct cli_row *ret_row)
{
    ret_row->number = code == 0 ? record->created_ms : 0;
    ret_row->tie = tie_of(record);
    return !is_before(order, ret_row) &&
           cli_rows_wants(&order->rows, ret_row->number, ret_row->tie);
}

/* The last row, if more came after it than the limit lets through. */
static const struct cli_row *last_of_more(const struct cli_list_order *order)
{
    const struct cli_rows *rows = &order->rows;

    return order->pages && rows->added > rows->limit
               ? &rows->list[rows->len - 1]
               : NULL;
}

bool cli_list_next(const struct cli_list_order *order,
                   char place[CLI_LIST_PLACE_MAX])
{
    const struct cli_row *last = last_of_more(order);

    if (last == NULL) {
        return false;
    }
    (void)snprintf(place, CLI_LIST_PLACE_MAX, "s%" PRId64 "-%016" PRIx64,
                   last->number, last->tie);
    return true;
}

bool cli_list_next_part(struct cli_list_order *order)
{
    const struct cli_row *last = last_of_more(order);

    if (last == NULL || order->limit != 0) {
        return false;
    }
    order->goes_on = true;
    order->after_created_ms = last->number;
    order->after_id = last->tie;
    cli_rows_empty(&order->rows);
    return true;
}
